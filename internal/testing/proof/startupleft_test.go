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

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/must"
)

// untraced looks at the test's end whether the kernel still has anything of a
// watch. Others may watch at the same time: what they hold is theirs.
func untraced(t *testing.T) {
	t.Helper()
	before := traces(t)
	t.Cleanup(func() {
		var left []string
		for range 100 { // the kernel takes programs apart when it has time
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

// traces are tare's BPF programs, by their ids.
func traces(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			return all
		}
		if err != nil {
			t.Fatalf("the kernel's BPF programs: %v", err)
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // gone
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

// holds are the BPF programs that a process has open, itself or by a link, see
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

// ungrouped looks at the test's end whether a container's cgroup is left, wherever
// its runtime has put it.
func ungrouped(t *testing.T, container string) {
	t.Helper()
	hs, err := cgroup.Hierarchies()
	must.OK(t, err)
	t.Cleanup(func() {
		for _, h := range hs {
			_ = filepath.WalkDir(h.Mount, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() && d.Name() == container {
					t.Errorf("left is %s", path)
				}
				return nil // of what ends meanwhile
			})
		}
	})
}
