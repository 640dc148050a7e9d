package bpfstat

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestGlobsMatchBothNames(t *testing.T) {
	for _, c := range []struct {
		claim, glob, name, full string
		want                    bool
	}{
		{"short name", "sockops_prog", "sockops_prog", "", true},
		{"glob", "sock*", "sockops_prog", "", true},
		{"full name matches a truncated name", "cgroup_connect4_prog", "cgroup_connect4", "", true},
		{"long glob matches a truncated name", "cgroup_*_connect4_prog", "cgroup_x_connec", "", true},
		{"other prefix does not match a truncated name", "cgroup_connect6_prog", "cgroup_connect4", "", false},
		{"suffix glob does not match a truncated name", "*_prog", "cgroup_connect4", "", false},
		{"suffix glob matches the full name", "*_prog", "cgroup_connect4", "cgroup_connect4_prog", true},
		{"other full name does not match", "cgroup_connect4_else", "cgroup_connect4", "cgroup_connect4_prog", false},
		{"longer name does not match an untruncated name", "sockops_prog_longer", "sockops_prog", "", false},
		{"character class", "[st]ockops*", "sockops_prog", "", true},
		{"no match", "x*", "sockops_prog", "", false},
	} {
		t.Run(c.claim, func(t *testing.T) {
			check.Equal(t, fmt.Sprintf("%q on %q (%q)", c.glob, c.name, c.full), matches(c.glob, c.name, c.full), c.want)
		})
	}
}

func TestOwnersAreFoundByMapsPinsAndNames(t *testing.T) {
	maps := func(names ...string) (out []record.ProgramMap) {
		for _, name := range names {
			out = append(out, record.ProgramMap{Name: name})
		}
		return out
	}
	for _, c := range []struct {
		claim string
		p     record.Program
		want  string
	}{
		{"Kmesh by map", record.Program{Name: "sockops_prog", Maps: maps("other", "km_service")}, "kmesh"},
		{"Kmesh by outer map", record.Program{Maps: maps("kmesh_map64")}, "kmesh"},
		{"Kmesh by pin", record.Program{Pins: []string{"/sys/fs/bpf/bpf_kmesh_workload/sockconn/prog"}}, "kmesh"},
		{"program names of Kmesh are not enough", record.Program{Name: "cgroup_connect4"}, ""},
		{"similar map name", record.Program{Maps: maps("kmx", "xkm_a")}, ""},
		{"Cilium by map", record.Program{Maps: maps("cilium_lb4_serv")}, "cilium"},
		{"Cilium by pin", record.Program{Pins: []string{"/run/cilium/bpffs/tc/globals/cilium_calls"}}, "cilium"},
		{"Cilium by name", record.Program{Name: "cil_from_netdev"}, "cilium"},
		{"systemd by name", record.Program{Name: "sd_devices"}, "systemd"},
		{"systemd by pin", record.Program{Pins: []string{"/sys/fs/bpf/systemd/x"}}, "systemd"},
		{"tare", record.Program{Name: "tare_connect4"}, "tare"},
		{"unknown owner", record.Program{Name: "x", Maps: maps("y"), Pins: []string{"/sys/fs/bpf/z"}}, ""},
	} {
		t.Run(c.claim, func(t *testing.T) {
			check.Equal(t, "owner", ownerOf(&c.p), c.want)
		})
	}
}

func TestProgramsAreFoundByTheirPins(t *testing.T) {
	needRoot(t)
	a := newMap(t, &ebpf.MapSpec{Name: "tare_t_pinned", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	user := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_user", Type: ebpf.SocketFilter, Instructions: using(a)})
	pinned := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_pin", Type: ebpf.SocketFilter, Instructions: using()})
	kmesh := newProgram(t, &ebpf.ProgramSpec{Name: "sockops_prog", Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, Instructions: using()})
	linked := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_link", Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, Instructions: using()})
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroup(t), Attach: ebpf.AttachCGroupInet4Connect, Program: linked})
	closing(t, l, err)
	m := openMeter(t)
	place := t.TempDir()
	privately(t, func() {
		if err := unix.Mount("bpf", place, "bpf", 0, "mode=0700"); err != nil {
			t.Errorf("mount a bpffs: %v", err)
			return
		}
		dir, kmeshs := filepath.Join(place, "folder", "deep"), filepath.Join(place, "bpf_kmesh_workload")
		for _, err := range []error{
			os.MkdirAll(dir, 0o755), os.Mkdir(kmeshs, 0o755), a.Pin(place + "/map"), pinned.Pin(dir + "/program"), l.Pin(place + "/folder/link"), kmesh.Pin(kmeshs + "/sockops"),
		} {
			if err != nil {
				t.Error(err)
				return
			}
		}
		own := []uint32{idOf(t, user), idOf(t, pinned), idOf(t, kmesh), idOf(t, linked)}
		alias := filepath.Join(t.TempDir(), "alias")
		check.Error(t, os.Symlink(place+"/folder", alias), "")
		for _, c := range []struct {
			claim string
			f     Filter
			want  []*ebpf.Program
		}{
			{"pin of a program", Filter{Pins: []string{dir + "/program"}}, []*ebpf.Program{pinned}},
			{"pin of a map selects its users", Filter{Pins: []string{place + "/map"}}, []*ebpf.Program{user}},
			{"pin of a link", Filter{Pins: []string{place + "/folder/link"}}, []*ebpf.Program{linked}},
			{"symlink to a folder", Filter{Pins: []string{alias}}, []*ebpf.Program{pinned, linked}},
			{"folder with subfolders", Filter{Pins: []string{place + "/folder"}}, []*ebpf.Program{pinned, linked}},
			{"two pins", Filter{Pins: []string{dir, place + "/map"}}, []*ebpf.Program{user, pinned}},
			{"folder of Kmesh", Filter{Kmesh: true}, []*ebpf.Program{kmesh}},
			{"pin and name", Filter{Pins: []string{place}, Names: []string{"tare_t_l*"}}, []*ebpf.Program{linked}},
		} {
			found, err := m.List(c.f)
			if err != nil {
				t.Errorf("%s: %v", c.claim, err)
				continue
			}
			if c.f.Kmesh { // the machine may run Kmesh
				found.Programs = slices.DeleteFunc(found.Programs, func(p record.Program) bool { return !slices.Contains(own, p.ID) })
			}
			programsAre(t, c.claim, found, c.want)
		}
		found, err := m.List(Filter{Names: []string{"sockops_prog"}, Pins: []string{kmeshs}})
		if err != nil || len(found.Programs) != 1 || m.Describe(found) != nil {
			t.Errorf("%+v, %v", found, err)
			return
		}
		p := found.Programs[0]
		check.That(t, p.Owner == "kmesh" && slices.Equal(p.Pins, []string{kmeshs + "/sockops"}), "owner %q, pins %q", p.Owner, p.Pins)
	})
}

func TestInvalidFiltersAreRefusedWithAdvice(t *testing.T) {
	needRoot(t)
	m := openMeter(t)
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o644))
	for _, c := range []struct {
		claim string
		f     Filter
		want  string
	}{
		{"regular file", Filter{Pins: []string{file}}, "is not in a file system of type bpf"},
		{"folder outside of a bpffs", Filter{Pins: []string{filepath.Dir(file)}}, "is not in a file system of type bpf"},
		{"missing path", Filter{Pins: []string{file + "x"}}, "no such file"},
		{"missing process", Filter{Owners: []string{"4194305"}}, "no such process"},
		{"folder that is not a cgroup", Filter{Cgroups: []string{filepath.Dir(file)}}, "is not a cgroup2 directory"},
		{"file as a cgroup", Filter{Cgroups: []string{file}}, "not a directory"},
		{"invalid glob", Filter{Names: []string{"[a"}}, `"[a"`},
	} {
		t.Run(c.claim, func(t *testing.T) {
			_, err := m.List(c.f)
			check.Error(t, err, c.want)
		})
	}
}

func TestKernelErrorsAreExplained(t *testing.T) {
	for _, c := range []struct {
		claim       string
		err         error
		unsupported bool
		want        string
	}{
		{"no BPF", unix.ENOSYS, true, "CONFIG_BPF_SYSCALL"},
		{"old kernel", unix.EINVAL, true, "it needs Linux 5.8"},
		{"other error", unix.EIO, false, "list them: "},
	} {
		t.Run(c.claim, func(t *testing.T) {
			err := unsupported("list them", "5.8", c.err)
			check.That(t, errors.Is(err, errUnsupported) == c.unsupported && errors.Is(err, c.err) && strings.Contains(err.Error(), c.want),
				"%v, want %q, unsupported %v", err, c.want, c.unsupported)
		})
	}
	err := opening("program", 7, unix.EMFILE)
	check.That(t, !errors.Is(err, errUnsupported) && strings.Contains(err.Error(), "ulimit -n"), "without descriptors: %v", err)
}

func TestUnknownTypesAreNumbers(t *testing.T) {
	for n, want := range map[uint32]string{1: "socket_filter", 18: "cgroup_sock_addr", 32: "netfilter", 33: "type 33", 1<<32 - 1: "type 4294967295"} {
		check.Equal(t, fmt.Sprintf("program type %d", n), kindOf(programKinds, n), want)
	}
	for n, want := range map[uint32]string{12: "array_of_maps", 27: "ringbuf", 34: "insn_array"} {
		check.Equal(t, fmt.Sprintf("map type %d", n), kindOf(mapKinds, n), want)
	}
	for n, want := range map[uint32]string{10: "connect4", 37: "xdp", 46: "ingress", 47: "egress", 49: "connect_unix", 58: "fsession"} {
		check.Equal(t, fmt.Sprintf("attach type %d", n), kindOf(attachKinds, n), want)
	}
}
