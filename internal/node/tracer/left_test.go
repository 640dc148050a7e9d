package tracer

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

func TestCloseLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	tr := only(record.MethodBPF)(t)
	b := tr.source.(*bpf)
	there := map[string]func() bool{} // by number: other tracers may be at work
	for _, p := range append(b.programs, b.mark) {
		info, err := p.Info()
		if err != nil {
			t.Fatal(err)
		}
		id, ok := info.ID()
		if !ok {
			t.Fatal("programs have no numbers")
		}
		there["program "+info.Name] = func() bool {
			p, err := ebpf.NewProgramFromID(id)
			return err == nil && p.Close() == nil
		}
	}
	for _, m := range []*ebpf.Map{b.maps.cpus, b.maps.tracked, b.maps.events, b.maps.scratch} {
		info, err := m.Info()
		if err != nil {
			t.Fatal(err)
		}
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
	for deadline := time.Now().Add(5 * time.Second); len(there) > 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
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

func TestTracefsLeavesNoInstance(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	name := fmt.Sprintf("tare-sweep%d", os.Getpid())
	o := Options{Instance: name + "-1", Only: []string{record.MethodTracefs}}
	tr, err := Open(o)
	if err != nil {
		t.Skip(err)
	}
	if _, err := Open(o); err == nil {
		t.Error("two have one instance")
	}
	if err := errors.Join(tr.Close(), tr.Close()); err != nil {
		t.Error(err)
	}
	root, err := tracefsRoot()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	exists := func(name string) bool {
		return unix.Faccessat(root, "instances/"+name, unix.F_OK, 0) == nil
	}
	if exists(o.Instance) {
		t.Error("Close leaves its instance")
	}
	for _, left := range []string{name + "-2", name + "-3"} {
		if err := unix.Mkdirat(root, "instances/"+left, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := Sweep(name); err != nil || exists(name+"-2") || exists(name+"-3") {
		t.Errorf("instances of a dead run are still there: %v", err)
	}
	for _, bad := range []string{"", "../x", "a/b"} {
		if err := Sweep(bad); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestWhoCannotTraceIsToldWhy(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("tracing wants root")
	}
	for name, tt := range map[string]struct {
		as   syscall.SysProcAttr
		want string
	}{
		"in another pid namespace": {syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}, "pid namespace"},
		"without capabilities":     {syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}, "CAP_BPF"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := part("open")
			cmd.SysProcAttr = &tt.as
			out, err := cmd.CombinedOutput()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			if err != nil || len(lines) != 3 || !strings.Contains(lines[0], tt.want) {
				t.Errorf("%v: %s", err, out)
			}
			for _, line := range lines {
				// The connector speaks to everyone since Linux 6.6.
				if strings.HasSuffix(line, "<nil>") && line != record.MethodConnector+" <nil>" {
					t.Errorf("it works: %s", line)
				}
			}
		})
	}
}

func TestAMethodThatDoesNotExistIsRefused(t *testing.T) {
	if tr, err := Open(Options{Only: []string{"crystal"}}); err == nil {
		tr.Close()
		t.Error("it was opened")
	}
}

// What a process costs when it is watched: its fork, exec and exit and the
// switches between.
func BenchmarkProcess(b *testing.B) {
	if os.Geteuid() != 0 {
		b.Skip("tracing wants root")
	}
	for _, method := range []string{record.MethodNone, record.MethodBPF, record.MethodTracefs, record.MethodConnector} {
		b.Run(method, func(b *testing.B) {
			var tr *Tracer
			if method != record.MethodNone {
				tr = only(method)(b)
			}
			for b.Loop() {
				if err := exec.Command("true").Run(); err != nil {
					b.Fatal(err)
				}
			}
			if tr != nil {
				take(b, tr)
				b.ReportMetric(float64(tr.CPU())/float64(b.N), "own-ns/op")
			}
		})
	}
}
