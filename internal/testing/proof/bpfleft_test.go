package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/bpflist"
	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// programs is the place of runs that measure BPF programs.
type programs struct{ *place }

// playBPF prepares the test. At the end it checks for leftovers in the kernel, in this
// process and among its children, and that statistics are disabled.
func playBPF(t *testing.T) *programs {
	t.Helper()
	s := &programs{folders(t)}
	untraced(t)
	t.Cleanup(func() {
		left := opened("/proc/self/fd/*", "anon_inode:bpf")
		check.That(t, len(left) == 0, "this process has open: %q", left)
		left = children()
		check.That(t, len(left) == 0, "clients or servers are left: %q", left)
		uncounted(t)
	})
	return s
}

// weigh runs a command that writes one record.
func (s *programs) weigh(args ...string) (*record.Record, *bpf.Judgement) {
	s.t.Helper()
	recs, judged, _ := tare(s.place, bpf.Judge, args...)
	return recs[0], judged[0]
}

// listed is the output of tare bpf list, or its error.
type listed struct {
	*bpflist.View
	err error
}

func list(t *testing.T, args ...string) listed {
	code, out, said := invoke(t, append([]string{"bpf", "list", "--format", "json"}, args...)...)
	if code != cli.ExitDone {
		return listed{err: fmt.Errorf("exit %d: %s", code, said)}
	}
	v := new(bpflist.View)
	return listed{v, json.Unmarshal([]byte(out), v)}
}

// attachment attaches a datapath with kernel statistics enabled. It returns the datapath
// and its cgroup.
func attachment(t *testing.T) (*datapath.Datapath, string) {
	t.Helper()
	group, remove, err := datapath.Place(fmt.Sprintf("proof-%d", os.Getpid()))
	must.OK(t, err)
	t.Cleanup(func() { must.OK(t, remove()) })
	backend := must.Get(load.Serve(t.Context()))(t)
	t.Cleanup(func() { _ = backend.Close() }) // already closed by the end of the test
	d := must.Get(datapath.Attach(datapath.Options{Cgroup: group, Most: 1, Backend: backend.Addr()}))(t)
	t.Cleanup(func() { must.OK(t, d.Close()) })
	statistics := must.Get(ebpf.EnableStats(unix.BPF_STATS_RUN_TIME))(t)
	t.Cleanup(func() { statistics.Close() })
	return d, group
}

// toolProgram is a program as listed by bpftool.
type toolProgram struct {
	ID      uint32   `json:"id"`
	Time    uint64   `json:"run_time_ns"`
	Count   uint64   `json:"run_cnt"`
	Memlock int64    `json:"bytes_memlock"`
	Maps    []uint32 `json:"map_ids"`
}

// bpftool queries programs one by one, because others appear and disappear.
func bpftool(t *testing.T, ids []uint32) map[uint32]toolProgram {
	t.Helper()
	path := need.Tool(t, "bpftool")
	all := map[uint32]toolProgram{}
	for _, id := range ids {
		out, err := exec.CommandContext(t.Context(), path, "prog", "show", "id", strconv.Itoa(int(id)), "-j").Output()
		must.That(t, err == nil, "bpftool: %v: %s", err, out)
		var p toolProgram
		err = json.Unmarshal(out, &p)
		must.That(t, err == nil && p.ID == id, "bpftool: %v: %s", err, out)
		all[id] = p
	}
	return all
}

// checkMemory compares a program with bpftool. It also compares the memory of the program
// and its maps with the kernel's values for the test's descriptors.
func checkMemory(t *testing.T, p *record.Program, tool toolProgram) {
	t.Helper()
	told, stop := descriptors()
	stop()
	check.That(t, p.Memory == tool.Memlock && told[held{p.ID, false}][p.Memory],
		"%s: %d bytes; bpftool has %d, the kernel %v", p.Name, p.Memory, tool.Memlock, told[held{p.ID, false}])
	var ids []uint32
	for _, m := range p.Maps {
		ids = append(ids, m.ID)
		check.That(t, told[held{m.ID, true}][m.Memory], "%s: %d bytes; the kernel has %v", m.Name, m.Memory, told[held{m.ID, true}])
	}
	slices.Sort(ids)
	slices.Sort(tool.Maps)
	if !slices.Equal(ids, tool.Maps) || len(ids) == 0 {
		t.Errorf("%s: maps %v, by bpftool %v", p.Name, ids, tool.Maps)
	}
}

// held is a program or map opened by this process.
type held struct {
	id    uint32
	isMap bool
}

// descriptors collects the kernel's memory values of open programs and maps until it is
// stopped. See proc_pid_fdinfo(5).
func descriptors() (told map[held]map[int64]bool, stop func()) {
	told = map[held]map[int64]bool{}
	look := func() {
		found, _ := filepath.Glob("/proc/self/fdinfo/*")
		for _, path := range found {
			text, _ := os.ReadFile(path) // may be closed by now
			values := map[string]int64{}
			for line := range strings.Lines(string(text)) {
				name, value, _ := strings.Cut(line, ":")
				if n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64); err == nil {
					values[name] = n
				}
			}
			memory, some := values["memlock"]
			program, isProgram := values["prog_id"]
			aMap, isMap := values["map_id"]
			key := held{uint32(program + aMap), isMap}
			if !some || isProgram == isMap {
				continue
			}
			if told[key] == nil {
				told[key] = map[int64]bool{}
			}
			told[key][memory] = true
		}
	}
	look()
	end := make(chan struct{})
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
				look()
			}
		}
	})
	return told, func() { close(end); ended.Wait() }
}

// opened returns the paths in /proc of descriptors of a given kind.
func opened(descriptors, kind string) (all []string) {
	found, _ := filepath.Glob(descriptors)
	for _, path := range found {
		if what, err := os.Readlink(path); err == nil && strings.HasPrefix(what, kind) {
			all = append(all, path+" is "+what)
		}
	}
	return all
}

// children returns the clients and servers of a load that run this test's binary.
func children() (all []string) {
	own, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return []string{err.Error()}
	}
	for pid := range everybody() {
		exe, _ := os.Readlink(filepath.Join("/proc", pid, "exe"))
		line, _ := os.ReadFile(filepath.Join("/proc", pid, "cmdline"))
		if exe == own && bytes.Contains(line, []byte("\x00-load-")) {
			all = append(all, pid+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// uncounted checks that kernel statistics are disabled: the count of a running program
// must stop once concurrent users of statistics are done.
func uncounted(t *testing.T) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: "proof_still", Type: ebpf.SocketFilter, License: "MIT", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	must.OK(t, err)
	defer p.Close()
	count := func() uint64 {
		s := must.Get(p.Stats())(t)
		return s.RunCount
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		before := count()
		must.Get(p.Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 10}))(t)
		if count() == before {
			return
		}
		if time.Now().Before(deadline) { // others release theirs; a leak of this test remains
			continue
		}
		t.Errorf("the kernel still counts runs; statistics are enabled by %q", opened("/proc/[0-9]*/fd/*", "anon_inode:bpf-stats"))
		return
	}
}
