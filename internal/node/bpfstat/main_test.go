package bpfstat

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// deniedVariable makes this test binary a process that only tries to open a meter.
const deniedVariable = "TARE_TEST_BPF_DENIED"

func TestMain(m *testing.M) {
	if os.Getenv(deniedVariable) != "" {
		_, err := Open()
		fmt.Println(errors.Is(err, errUnsupported), err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestMissingCapabilityIsNamed(t *testing.T) {
	needRoot(t)
	for _, c := range []struct {
		claim string
		attr  *syscall.SysProcAttr
		want  string
	}{
		{"ordinary user", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "CAP_SYS_ADMIN is missing"},
		{"root of a user namespace", &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}, GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}},
		}, "a separate user namespace"},
	} {
		t.Run(c.claim, func(t *testing.T) {
			// The child cannot access the binary by its path, so pass an open descriptor.
			self := must.Get(os.Open("/proc/self/exe"))(t)
			defer self.Close()
			cmd := exec.CommandContext(t.Context(), "/proc/self/fd/3")
			cmd.ExtraFiles = []*os.File{self}
			cmd.Env = append(os.Environ(), deniedVariable+"=1")
			cmd.SysProcAttr = c.attr
			out, err := cmd.CombinedOutput()
			must.That(t, err == nil, "%v: %s", err, out)
			text := string(out)
			check.That(t, strings.HasPrefix(text, "true ") && strings.Contains(text, c.want), "got %q; want ErrUnsupported with %q", text, c.want)
		})
	}
}

// toolProgram is a program as listed by bpftool.
type toolProgram struct {
	ID      uint32   `json:"id"`
	Type    string   `json:"type"`
	Name    string   `json:"name"`
	Tag     string   `json:"tag"`
	Time    uint64   `json:"run_time_ns"`
	Count   uint64   `json:"run_cnt"`
	Memlock int64    `json:"bytes_memlock"`
	Xlated  int64    `json:"bytes_xlated"`
	Jited   int64    `json:"bytes_jited"`
	Maps    []uint32 `json:"map_ids"`
}

func bpftool(t *testing.T) map[uint32]toolProgram {
	t.Helper()
	path := need.Tool(t, "bpftool")
	out := must.Get(exec.CommandContext(t.Context(), path, "prog", "show", "-j").Output())(t)
	var list []toolProgram
	err := json.Unmarshal(out, &list)
	must.That(t, err == nil, "bpftool: %v: %s", err, out)
	programs := map[uint32]toolProgram{}
	for _, p := range list {
		programs[p.ID] = p
	}
	return programs
}

func TestBpftoolAgrees(t *testing.T) {
	needRoot(t)
	a := newMap(t, &ebpf.MapSpec{Name: "tare_t_tool", Type: ebpf.Hash, KeySize: 4, ValueSize: 4, MaxEntries: 10})
	p := newProgram(t, &ebpf.ProgramSpec{Name: "tare_t_bpftool", Type: ebpf.SocketFilter, Instructions: using(a)})
	m := openMeter(t)
	release, _, err := m.Statistics()
	must.OK(t, err)
	defer release()
	must.Get(p.Run(&ebpf.RunOptions{Data: frame, Repeat: 1000}))(t)
	before := list(t, m, Filter{})
	tool := bpftool(t)
	after := list(t, m, Filter{})
	describe(t, m, before)
	compared := 0
	for i, p := range before.Programs {
		said, ok := tool[p.ID]
		if !ok {
			continue // removed in the meantime
		}
		compared++
		at := slices.IndexFunc(after.Counters, func(c Counters) bool { return c.ID == p.ID })
		if at < 0 {
			continue
		}
		from, to := before.Counters[i], after.Counters[at]
		check.That(t, said.Count >= from.Count && said.Count <= to.Count && said.Time >= from.Time && said.Time <= to.Time,
			"program %d: bpftool reports %d runs in %d ns, want between %+v and %+v", p.ID, said.Count, said.Time, from, to)
		var maps []uint32
		for _, a := range p.Maps {
			maps = append(maps, a.ID)
		}
		slices.Sort(said.Maps)
		if said.Name != p.Name && said.Name != p.Full || said.Type != p.Kind || said.Tag != p.Tag || said.Memlock != p.Memory || said.Xlated != 8*p.Instructions || said.Jited != p.Jited || !slices.Equal(said.Maps, maps) {
			t.Errorf("bpftool reports %+v, want %+v", said, p)
		}
	}
	check.That(t, compared >= 1, "no program was compared")
	said := tool[idOf(t, p)]
	check.That(t, said.Count == 1000, "bpftool counts %d runs, want 1000", said.Count)
}

// The programs of the two benchmarks, with two maps each.
const loaded = 200

func BenchmarkFirstListing(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	for b.Loop() {
		m := must.Get(Open())(b)
		l := list(b, m, Filter{})
		must.That(b, len(l.Programs) >= loaded && len(l.Maps) >= 2*loaded, "%d programs and %d maps", len(l.Programs), len(l.Maps))
		b.StopTimer()
		m.Close()
		b.StartTimer()
	}
}

func BenchmarkRefresh(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	m := openMeter(b)
	l := list(b, m, Filter{})
	var ids []uint32
	for i := range l.Programs {
		ids = append(ids, l.Programs[i].ID)
	}
	b.Run("listing", func(b *testing.B) {
		for b.Loop() {
			list(b, m, Filter{})
		}
	})
	b.Run("counters", func(b *testing.B) {
		var into []Counters
		for b.Loop() {
			var err error
			if into, err = m.Counters(ids, into); err != nil || len(into) != len(ids) {
				b.Fatal(len(into), err)
			}
		}
	})
	b.Run("description", func(b *testing.B) {
		for b.Loop() {
			must.OK(b, m.Describe(l))
		}
	})
}

// BenchmarkBareLoop is the baseline for the other benchmarks.
func BenchmarkBareLoop(b *testing.B) {
	needRoot(b)
	many(b, loaded)
	for b.Loop() {
		must.OK(b, bareProgramLoop())
	}
}

// bareProgramLoop iterates over all programs. It gets the next ID, opens a descriptor,
// reads the info, and closes the descriptor.
func bareProgramLoop() error {
	s := &scratch{}
	return (&Meter{scratch: s}).walk(unix.BPF_PROG_GET_NEXT_ID, 0, "walk", func(id uint32) error {
		fd, err := s.open(unix.BPF_PROG_GET_FD_BY_ID, id)
		if err != nil {
			return nil // removed in the meantime
		}
		defer closeFast(fd)
		s.program = programInfo{}
		return info(s, fd, &s.program)
	})
}
