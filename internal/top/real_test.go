package top

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

const held = 24 << 20

// runc starts a container and returns its ID and cgroup. One process holds memory, and
// another one uses a third of a CPU.
func runc(t *testing.T) (id, group string) {
	t.Helper()
	need.Runtime(t, "runc")
	dir, run := t.TempDir(), fmt.Sprintf("%08x", os.Getpid())
	hs := must.Get(cgroup.Hierarchies())(t)
	t.Cleanup(func() { must.OK(t, cgroup.Remove(hs, cgroup.Prefix+run)) })
	id = "top-" + run
	bundle := filepath.Join(dir, id)
	must.OK(t, oci.WriteBundle(bundle, run, subject.DefaultLimits))
	log := must.Get(os.Create(filepath.Join(dir, "log")))(t)
	defer log.Close()
	command := func(args ...string) {
		t.Helper()
		cmd := exec.Command("runc", append([]string{"--root", filepath.Join(dir, "state")}, args...)...)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%s: %v: %s", cmd, err, text)
		}
	}
	command("run", "--detach", "--bundle", bundle, id)
	t.Cleanup(func() { command("delete", "--force", id) })
	command(append([]string{"exec", "--detach", id, "/" + probe.Name}, probe.HoldArgs(held, time.Hour)[1:]...)...)
	command(append([]string{"exec", "--detach", id, "/" + probe.Name}, probe.SpinArgs(0.3, time.Hour)[1:]...)...)
	group = "/" + cgroup.Prefix + run + "/" + id
	// A detached exec returns before runc has executed the command. Wait for that, and until
	// the memory is allocated.
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		own, holds := false, false
		for _, pid := range cgroup.Procs(hs, group) {
			comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			own = own || err == nil && strings.HasPrefix(string(comm), "runc")
			var size, resident int
			statm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
			_, _ = fmt.Sscan(string(statm), &size, &resident)
			holds = holds || resident*os.Getpagesize() >= held
		}
		if holds && !own {
			return id, group
		}
	}
	t.Fatal("the commands did not start within a minute")
	return "", ""
}

func TestOnceListsARealContainer(t *testing.T) {
	_, group := runc(t)
	var out bytes.Buffer
	interval := time.Second
	began, before := time.Now(), used(t, group)
	must.OK(t, Run(t.Context(), &out, Options{Interval: interval, Once: true, JSON: true, Selection: Selection{Filter: group}}))
	whole := used(t, group) - before
	// One thread spins, possibly during all of the unobserved time.
	unseen := time.Since(began) - interval
	var v struct {
		Count     int
		Sandboxes []struct {
			Name, Engine string
			IDs          []string
			CPU          float64
			Memory       int64
			Processes    int
			Limit        *int64
			Groups       []struct{ Path, Charge string }
			Roles        []struct {
				Role      string
				PSS       int64
				Processes []struct {
					Pid    int
					Rule   string
					Groups []struct{ Paths map[string]string }
				}
			}
		}
	}
	err := json.Unmarshal(out.Bytes(), &v)
	must.That(t, err == nil && v.Count >= 1 && len(v.Sandboxes) == 1, "%v: %s", err, out.String())
	s := v.Sandboxes[0]
	check.That(t, s.Engine == "oci" && s.Processes == 3 && s.Memory >= held && s.Memory <= held+16<<20 && s.Limit != nil, "%+v", s)
	if seen := time.Duration(s.CPU * float64(interval)); seen < 0 || seen > whole+whole/20 || seen < whole-whole/20-unseen {
		t.Errorf("CPU time %v, want %v of the cgroup, minus at most %v unobserved", seen, whole, unseen)
	}
	check.That(t, len(s.Groups) == 1 && s.Groups[0].Path == group && s.Groups[0].Charge == "pod", "%+v", s.Groups)
	must.That(t, len(s.Roles) == 1 && s.Roles[0].Role == "workload" && len(s.Roles[0].Processes) == 3 && s.Roles[0].PSS >= held,
		"%+v", s.Roles)
	for _, p := range s.Roles[0].Processes {
		check.That(t, p.Pid > 0 && p.Rule != "" && len(p.Groups) == 1 && p.Groups[0].Paths["memory"]+p.Groups[0].Paths[""] != "", "%+v", p)
	}
	out.Reset()
	err = Run(t.Context(), &out, Options{Interval: 100 * time.Millisecond, Once: true, Selection: Selection{Filter: group}})
	check.That(t, err == nil && strings.Contains(out.String(), filepath.Base(group)[:12]), "%v:\n%s", err, out.String())
}

// used returns the CPU time of a cgroup.
func used(t *testing.T, group string) time.Duration {
	t.Helper()
	hs := must.Get(cgroup.Hierarchies())(t)
	for _, h := range hs {
		var n int64
		unit, line := time.Nanosecond, "%d"
		path := filepath.Join(h.Mount, group, "cpuacct.usage")
		if h.Version == 2 {
			unit, line, path = time.Microsecond, "usage_usec %d", filepath.Join(h.Mount, group, "cpu.stat")
		}
		if b, err := os.ReadFile(path); err != nil {
			continue // the hierarchy of another controller
		} else if _, err := fmt.Sscanf(string(b), line, &n); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return time.Duration(n) * unit
	}
	t.Fatalf("no hierarchy has the CPU time of %s", group)
	return 0
}

// twice is a writer that calls end after the second block.
type twice struct {
	text []byte
	end  func()
}

func (w *twice) Write(b []byte) (int, error) {
	w.text = append(w.text, b...)
	if bytes.Count(w.text, []byte("\nnode   memory")) >= 2 {
		w.end()
	}
	return len(b), nil
}

func TestPlainOutputHasABlockPerInterval(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := twice{end: cancel}
	err := Run(ctx, &out, Options{Interval: 200 * time.Millisecond})
	check.That(t, errors.Is(err, context.Canceled), "%v:\n%s", err, out.text)
	check.That(t, !bytes.ContainsRune(out.text, '\x1b'), "the output contains an escape character: %q", out.text)
}
