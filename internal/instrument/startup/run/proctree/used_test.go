package proctree

import (
	"testing"

	"github.com/tare-bench/tare/record"
)

const id1 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// docker run, beside a containerd that serves it, a dockerd that it asked, another
// engine's daemon and another's shim, all of which work meanwhile.
func TestOnlyWhatCanBelongToACommandsStartCounts(t *testing.T) {
	roots := []Root{
		{Pid: 1, Kind: record.KindDaemon, Name: "containerd"}, {Pid: 2, Kind: record.KindDaemon, Name: "dockerd"},
		{Pid: 3, Kind: record.KindDaemon, Name: "crio"}, {Pid: 4, Kind: record.KindShim, Name: "containerd-shim-runc-v2"},
	}
	const ms = int64(1e6)
	for name, c := range map[string]struct {
		more []Root
		used map[int]int64 // at the end, more than at the beginning; of what was born meanwhile in all
		want int64
	}{
		// Of the client and of shim start, which ended, 0.5 ms each.
		"who served, and who was asked":          {nil, map[int]int64{1: 20 * ms, 2: 10 * ms, 3: 500 * ms, 4: 900 * ms, 12: 7 * ms}, 38 * ms},
		"of two that could be asked neither":     {[]Root{{Pid: 5, Kind: record.KindDaemon, Name: "dockerd"}}, map[int]int64{1: 20 * ms, 2: 10 * ms, 3: 500 * ms, 4: 900 * ms, 5: 3 * ms, 12: 7 * ms}, 28 * ms},
		"nothing where it is not known of a one": {nil, map[int]int64{1: 20 * ms, 2: 10 * ms, 3: 500 * ms, 4: 900 * ms}, -1},
	} {
		s := &script{}
		s.run(9, 10, "/usr/bin/docker run web")
		s.run(1, 11, "/bin/containerd-shim-runc-v2 -id "+id1+" start")
		s.run(11, 12, "/bin/containerd-shim-runc-v2 -id "+id1)
		s.exit(11, 10)
		a := Asked{Ended: s.now + ms, Client: 10, Roots: append(c.more, roots...)}
		first, last := map[int]int64{}, map[int]int64{}
		for pid, used := range c.used {
			if pid < 10 {
				first[pid], last[pid] = 3600e9, 3600e9
			}
			last[pid] += used
		}
		a.Used = []Used{{At: 0, CPU: first}, {At: s.now, CPU: last}}
		k := Gather(s.events, a)
		got := int64(-1)
		if n := len(k.Own); n > 0 {
			got = k.Own[n-1].CPU - k.Own[0].CPU
		}
		// From its fork to its exec the shim used 0.3 ms, which are told by its exec.
		if got >= 0 {
			got = got / ms * ms
		}
		if got != c.want {
			t.Errorf("%s: %d ns, want %d: %+v", name, got, c.want, k.Own)
		}
	}
}

// Kata's configuration may name a script, or a program of any name, as its QEMU.
func TestAVMMIsWhoRunsAGuestWhateverItIsCalled(t *testing.T) {
	s := &script{}
	s.run(1, 11, "/bin/containerd-shim-kata-v2 -id "+id1)
	s.fork(11, 12)
	s.exec(12, "/bin/sh /opt/kata/qemu-wrapper -name sandbox-"+id1)
	s.exec(12, "/opt/kata/hypervisor -name sandbox-"+id1)
	s.run(11, 13, "/opt/kata/vhost-thing --vm")
	a := Asked{Ended: s.now + 1e6, Roots: []Root{{Pid: 1, Kind: record.KindDaemon, Name: "containerd"}}, Containers: []string{id1}, Guests: []int{11, 12}}
	a.Used = []Used{{At: 3e6, CPU: map[int]int64{12: 3e5}}, {At: 4e6, CPU: map[int]int64{12: 3e5}}, {At: 5e6, CPU: map[int]int64{12: 3e5}}, {At: 6e6, CPU: map[int]int64{12: 2e6}}}
	kinds := map[string]string{}
	for _, p := range Gather(s.events, a).Processes {
		kinds[p.Name] = p.Kind
		if p.Kind == record.KindVMM && (p.CPU != 17e5 || len(p.Used) == 0 || p.Ended != 0) {
			t.Errorf("%+v", p)
		}
	}
	for name, want := range map[string]string{"hypervisor": record.KindVMM, "containerd-shim-kata-v2": record.KindShim, "vhost-thing": record.KindOther} {
		if kinds[name] != want {
			t.Errorf("%s is a %q of %v", name, kinds[name], kinds)
		}
	}
}
