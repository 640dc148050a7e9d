package tracer

import (
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestCloseLeavesNothing(t *testing.T) {
	tr := watch(t)
	there := map[string]func() bool{} // by number: other tracers may be at work
	for _, p := range append(tr.programs(), tr.loaded.TareMark) {
		info, err := p.Info()
		must.OK(t, err)
		id, ok := info.ID()
		if !ok {
			t.Fatal("programs have no numbers")
		}
		there["program "+info.Name] = func() bool {
			p, err := ebpf.NewProgramFromID(id)
			return err == nil && p.Close() == nil
		}
	}
	for _, m := range []*ebpf.Map{tr.loaded.TareCpus, tr.loaded.TareTracked, tr.loaded.TareEvents, tr.loaded.TareScratch} {
		info, err := m.Info()
		must.OK(t, err)
		id, ok := info.ID()
		if !ok {
			t.Fatal("maps have no numbers")
		}
		there["map "+info.Name] = func() bool {
			m, err := ebpf.NewMapFromID(id)
			return err == nil && m.Close() == nil
		}
	}
	for name, is := range there {
		if !is() {
			t.Fatalf("%s is not there before", name)
		}
	}
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Error(err)
	}
	// The kernel frees what is closed a moment later.
	for deadline := time.Now().Add(time.Minute); len(there) > 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for name, is := range there {
			if !is() {
				delete(there, name)
			}
		}
	}
	for name := range there {
		t.Errorf("%s is still there", name)
	}
}

func TestWhoCannotTraceIsToldWhy(t *testing.T) {
	needRoot(t)
	for name, tt := range map[string]struct {
		role string
		as   syscall.SysProcAttr
		want []string
	}{
		"in another pid namespace": {"open", syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, []string{"pid namespace", "--pid=host"}},
		"without capabilities": {"open", syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}},
			[]string{"no CAP_BPF and no CAP_PERFMON", "run it as root, or give it CAP_BPF and CAP_PERFMON"}},
		"on a kernel without BTF": {"open without BTF", syscall.SysProcAttr{}, []string{"CONFIG_DEBUG_INFO_BTF", "true"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := part(tt.role)
			cmd.SysProcAttr = &tt.as
			out, err := cmd.CombinedOutput()
			for _, want := range tt.want {
				if err != nil || !strings.Contains(string(out), want) {
					t.Errorf("%v: %s, want %s", err, out, want)
				}
			}
		})
	}
}

// What a process costs when it is watched: its fork, exec and exit and the
// switches between.
func BenchmarkProcess(b *testing.B) {
	needRoot(b)
	for _, name := range []string{"not watched", "watched"} {
		b.Run(name, func(b *testing.B) {
			var tr *Tracer
			if name == "watched" {
				tr = watch(b)
			}
			for b.Loop() {
				must.OK(b, exec.Command("true").Run())
			}
			if tr != nil {
				take(b, tr)
				b.ReportMetric(float64(tr.CPU())/float64(b.N), "own-ns/op")
			}
		})
	}
}
