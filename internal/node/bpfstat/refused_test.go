package bpfstat

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestWhatTheKernelRefusesIsExplained(t *testing.T) {
	for _, c := range []struct {
		claim       string
		err         error
		unsupported bool
		want        string
	}{
		{"no BPF", unix.ENOSYS, true, "CONFIG_BPF_SYSCALL"},
		{"an old kernel", unix.EINVAL, true, "it takes Linux 5.8"},
		{"what breaks otherwise", unix.EIO, false, "list them: "},
	} {
		t.Run(c.claim, func(t *testing.T) {
			err := unsupported("list them", "5.8", c.err)
			if errors.Is(err, errUnsupported) != c.unsupported || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q, unsupported %v", err, c.want, c.unsupported)
			}
		})
	}
	if err := opening("program", 7, unix.EMFILE); errors.Is(err, errUnsupported) || !strings.Contains(err.Error(), "ulimit -n") {
		t.Errorf("without descriptors: %v", err)
	}
}

func TestKindsThatAreNewerAreTheirNumbers(t *testing.T) {
	for n, want := range map[uint32]string{1: "socket_filter", 18: "cgroup_sock_addr", 32: "netfilter", 33: "type 33", 1<<32 - 1: "type 4294967295"} {
		if got := kindOf(programKinds, n); got != want {
			t.Errorf("program type %d is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint32]string{12: "array_of_maps", 27: "ringbuf", 34: "insn_array"} {
		if got := kindOf(mapKinds, n); got != want {
			t.Errorf("map type %d is %q, want %q", n, got, want)
		}
	}
	for n, want := range map[uint32]string{10: "connect4", 37: "xdp", 46: "ingress", 47: "egress", 49: "connect_unix", 58: "fsession"} {
		if got := kindOf(attachKinds, n); got != want {
			t.Errorf("attach type %d is %q, want %q", n, got, want)
		}
	}
}
