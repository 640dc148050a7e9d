package proof

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// memfdEnv makes this test binary a helper that keeps memory in an unmapped memfd.
const memfdEnv = "TARE_PROOF_MEMFD"

const inMemfd = 512 * mib // large enough to exceed the noise of a busy machine

func holdMemfd() {
	fd, err := unix.MemfdCreate("trick", 0)
	piece := make([]byte, mib)
	for n := 0; err == nil && n < inMemfd; n += len(piece) {
		_, err = unix.Write(fd, piece)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// A runtime that hides its cost, or kills its sandbox, must not be reported as cheap. The
// runtimes are wrappers of real ones that apply a trick after each start. Processes that
// they leave running become children of the lane, because the wrapper has exited.
func TestHiddenRuntimeCostIsReported(t *testing.T) {
	need.Root(t)
	need.Long(t)
	self := must.Get(os.Executable())(t)
	const left = " </dev/null >/dev/null 2>&1 & )"
	for name, c := range map[string]struct {
		trick string // shell code with the container's id in $id and the runtime in $runtime
		check string
		says  string // expected finding
		open  float64
		fails bool // the phase fails and has no podFixed
	}{
		"helper that spins":         {"( setsid sh -c 'while :; do :; done'" + left, "10m,500Mi", "is not enough: phase idle with 1 sandbox needs ", 0, false},
		"helper that holds a memfd": {"( " + memfdEnv + "=1 setsid " + self + left, "1,64Mi", "per sandbox are unexplained", inMemfd * 0.75, false},
		"killed sandbox":            {"( setsid sh -c \"sleep 2; $runtime --root $root kill $id KILL\"" + left, "1,500Mi", ": killed by SIGKILL", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := folders(t)
			// Measure one target at a time. Otherwise the exit of one target's helper
			// would free memory while another target allocates memory.
			code, text, said := invoke(t, "overhead", "--phases", "idle", "--sandboxes", "1", "--rounds", "1", "--hold", "5s", "--settle", "1s", "--check", c.check,
				"-o", filepath.Join(p.dir, "r.jsonl"), "-q", "runc="+wrapped(t, need.Tool(t, "runc"), c.trick))
			_, j := stored(p, filepath.Join(p.dir, "r.jsonl"), overhead.Judge)
			check.That(t, code == cli.ExitFailed, "exit %d\n%s\n%s", code, text, said)
			for i := range j.Check {
				k := &j.Check[i]
				var all []string
				for _, f := range j.Findings {
					if f.Target == k.Target {
						all = append(all, f.Message)
					}
				}
				check.That(t, strings.Contains(strings.Join(all, "\n"), c.says) && k.Answer != overhead.Enough,
					"%s is %s, want a finding with %q in:\n%s", k.Target, k.Answer, c.says, strings.Join(all, "\n"))
			}
			check.That(t, len(j.Check) == 1 && c.fails == (len(j.Classes) == 0), "%+v\n%+v", j.Check, j.Classes)
			for i := range j.Tables {
				for k := range j.Tables[i].Cells {
					l := &j.Tables[i].Cells[k].Ledger
					// By kind, because other programs on the machine free other kinds of memory.
					if c.open > 0 && float64(l.ResidualBy.Shmem) < c.open {
						t.Errorf("%s: %d bytes of shared memory are unexplained", j.Tables[i].Cells[k].Target, l.ResidualBy.Shmem)
					}
					for _, r := range l.Rows {
						if strings.Contains(name, "spins") && r.Role == record.RoleRuntime && r.CPU == 0 {
							t.Errorf("%s: no CPU time of the helper: %+v", j.Tables[i].Cells[k].Target, r)
						}
					}
				}
			}
		})
	}
}

// wrapped writes a runtime with the same name that applies a trick after each start.
func wrapped(t *testing.T, runtime, trick string) string {
	path := filepath.Join(t.TempDir(), filepath.Base(runtime))
	script := fmt.Sprintf(`#!/bin/sh
runtime=%s
$runtime "$@" || exit
start= root=
for id; do
	case $id in start|run) start=1;; esac
	case $before in --root) root=$id;; esac
	before=$id
done
[ -z "$start" ] || %s
exit 0
`, runtime, trick)
	must.OK(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

// untraced checks at the end of the test that no tracer objects are left in the kernel.
// Objects of concurrent tracers are ignored.
func untraced(t *testing.T) {
	t.Helper()
	before := traces(t)
	t.Cleanup(func() {
		var left []string
		for range 100 { // the kernel frees programs asynchronously
			left = left[:0]
			held := map[string]bool{}
			for pid := range everybody() {
				for _, what := range holds(pid) {
					held[what] = true
					if pid == fmt.Sprint(os.Getpid()) {
						left = append(left, "this process holds "+what)
					}
				}
			}
			for what := range traces(t) {
				if !before[what] && !held[what] {
					left = append(left, what)
				}
			}
			if len(left) == 0 {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Errorf("left in the kernel: %s", strings.Join(left, ", "))
	})
}

// traces returns tare's BPF programs by id.
func traces(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return all
		}
		must.OK(t, err)
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // removed since
		}
		info, err := p.Info()
		_ = p.Close()
		if err == nil && strings.HasPrefix(info.Name, "tare_") {
			all[program(fmt.Sprint(id))] = true
		}
	}
}

func program(id string) string { return "BPF program " + id }

func everybody() map[string]bool {
	all := map[string]bool{}
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range found {
		all[filepath.Base(dir)] = true
	}
	return all
}

// holds returns the BPF programs that a process has open, directly or through a link. See
// proc_pid_fdinfo(5).
func holds(pid string) (all []string) {
	found, _ := filepath.Glob(filepath.Join("/proc", pid, "fdinfo", "*"))
	for _, file := range found {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if id, ok := strings.CutPrefix(line, "prog_id:"); ok {
				all = append(all, program(strings.TrimSpace(id)))
			}
		}
	}
	return all
}

// ungrouped checks at the end of the test that no cgroup of a container is left in any
// hierarchy.
func ungrouped(t *testing.T, container string) {
	t.Helper()
	hs := must.Get(cgroup.Hierarchies())(t)
	t.Cleanup(func() {
		for _, h := range hs {
			_ = filepath.WalkDir(h.Mount, func(path string, d os.DirEntry, err error) error {
				check.That(t, err != nil || !d.IsDir() || d.Name() != container, "left behind: %s", path)
				return nil // ignore errors of concurrent exits
			})
		}
	})
}
