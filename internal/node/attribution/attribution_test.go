package attribution

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func FuzzPaths(f *testing.F) {
	f.Add("/kubepods/burstable/pod12345678-1234/0123")
	f.Add("/run/vc/vm/abc/qmp.sock")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := locate(text)
		check.That(t, !ok || p.dir != "", "%q: %+v", text, p)
		kataID([]string{text})
	})
}

func TestSnapshotReadsTheFilesOfAProcess(t *testing.T) {
	root := tree(t, proc{pid: 7, ppid: 1, args: "/bin/a b c", exe: "/bin/a (deleted)", nspid: "7 3 1", cgroup: v1("/x"), threads: []thread{{}}, anon: 400, start: 77})
	r, s := snapshot(t, root)
	for range 2 { // the second snapshot uses the cache
		p := s.byPid[7]
		must.That(t, p != nil && p.PPid == 1 && p.Start == 77 && p.Comm == "a" && p.Exe == "/bin/a" && strings.Join(p.Args, " ") == "/bin/a b c" &&
			p.Groups.Memory() == "/x" && slices.Equal(p.NSpid, []int{7, 3, 1}) && p.Threads == 2 && p.RssAnon == 400<<10 && p.depth() == 2, "%+v", p)
		var err error
		if s, err = r.Snapshot(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSnapshotRereadsAProcessAfterAnExec(t *testing.T) {
	root := tree(t, proc{pid: 7, args: "runc init", cgroup: v1("/x"), start: 77})
	r, s := snapshot(t, root)
	must.That(t, s.byPid[7].isInit(), "%+v", s.byPid[7])
	dir := filepath.Join(string(root), "proc/7")
	for _, exec := range []struct{ stat, cmdline, want string }{
		{"7 (probe) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 77 0 0 0 0 0 7000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 9077 0 0 0 0\n", "/probe\x00", "/probe"},
		{"7 (probe) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 77 0 0 0 0 0 7000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 9999 0 0 0 0\n", "/probe\x00hold\x00", "/probe hold"},
	} {
		file(t, dir, "stat", exec.stat)
		file(t, dir, "cmdline", exec.cmdline)
		s, err := r.Snapshot(t.Context())
		check.That(t, err == nil && strings.Join(s.byPid[7].Args, " ") == exec.want, "%v %v", s.byPid[7].Args, err)
	}
}

func TestEndedAndReusedPidsAreCounted(t *testing.T) {
	threads := []thread{{}}
	root := tree(t, proc{pid: 7, args: "/a", cgroup: v1("/g/x"), threads: threads}, proc{pid: 8, args: "/b", cgroup: v1("/g/x"), threads: threads},
		proc{pid: 9, args: "/c", cgroup: v1("/g/x"), threads: threads}, proc{pid: 10, args: "/d", cgroup: v1("/g/x") + "nonsense\n"})
	dir := filepath.Join(string(root), "proc")
	must.OK(t, os.RemoveAll(filepath.Join(dir, "9", "status"))) // the process exited during the read
	r, s := snapshot(t, root)
	check.That(t, s.byPid[9] == nil && s.Problems.Gone == 1 && s.Problems.Broken == 1 && len(s.Problems.Examples) == 2, "%+v", s.Problems)
	must.OK(t, os.RemoveAll(filepath.Join(dir, "7")))
	proc{pid: 8, args: "/other", cgroup: v1("/y"), start: 999}.write(t, string(root))
	var problems record.Problems
	members := s.Members([]Sandbox{{Group: "/g/x"}}, nil, &problems)
	short, long := roles(members)
	check.That(t, short == "10=workload@0" && problems.Gone == 1 && problems.Reused == 1, "%+v%s", problems, long)
	problems = record.Problems{}
	for pid, want := range map[int]record.Problems{7: {Gone: 1}, 8: {Reused: 1}} {
		problems = record.Problems{}
		_, err := r.Process(Member{Process: s.byPid[pid]}, true, &problems)
		check.That(t, errors.Is(err, procs.ErrGone) && problems.Gone == want.Gone && problems.Reused == want.Reused,
			"%d: %v %+v", pid, err, problems)
	}
}

func TestUnreadableMemoryIsMarked(t *testing.T) {
	root := tree(t, proc{pid: 7, args: "/a", cgroup: v1("/g/x"), anon: 10}, proc{pid: 8, args: "/a", cgroup: v1("/g/x"), anon: 10}, proc{pid: 9, args: "/a", cgroup: v1("/g/x"), anon: 10})
	rollup := func(pid int) string { return filepath.Join(string(root), "proc", strconv.Itoa(pid), "smaps_rollup") }
	for _, pid := range []int{8, 9} {
		must.OK(t, os.Remove(rollup(pid)))
	}
	// Reading a folder fails like a read refused by the kernel. A file mode does not make
	// reads of root fail.
	must.OK(t, os.Mkdir(rollup(8), 0o700))
	r, s := snapshot(t, root)
	for pid, want := range map[int]record.Process{
		7: {Read: true, RSS: 110 << 10, PSSAnon: 10 << 10, PSSFile: 50 << 10, PSSShmem: 3 << 10, Swap: 8 << 10, Huge: 6144 << 10},
		8: {RSS: 110 << 10},
		9: {RSS: 110 << 10},
	} {
		var problems record.Problems
		p, err := r.Process(Member{Process: s.byPid[pid]}, true, &problems)
		check.That(t, err == nil && p.Read == want.Read && p.RSS == want.RSS && p.PSSAnon == want.PSSAnon && p.PSSFile == want.PSSFile &&
			p.PSSShmem == want.PSSShmem && p.Swap == want.Swap && p.Huge == want.Huge && p.PageTables == 44<<10, "%d: %+v %v", pid, p, err)
		bad := problems.Broken + problems.Denied
		check.That(t, (bad != 0) != want.Read, "%d: %+v", pid, problems)
	}
	var problems record.Problems
	procs.Count(&problems, &os.PathError{Op: "open", Path: "x", Err: os.ErrPermission})
	check.Equal(t, "unreadable processes", problems.Denied, 1)
}

func TestSnapshotEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (&Reader{Root: tree(t, proc{pid: 7, cgroup: root1})}).Snapshot(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_, err := (&Reader{Root: "/nowhere"}).Snapshot(t.Context())
	check.Error(t, err, "is /proc mounted?")
}

func TestCycleOfParentsTerminates(t *testing.T) {
	_, s := snapshot(t, tree(t, proc{pid: 7, ppid: 8, args: "/a", cgroup: v1("/g/x")}, proc{pid: 8, ppid: 7, args: "/a", cgroup: v1("/g/x")}))
	var problems record.Problems
	short, long := roles(s.Members([]Sandbox{{Group: "/g/x"}}, nil, &problems))
	check.That(t, short == "7=workload@0 8=workload@0", "%s", long)
}

// BenchmarkSnapshot reads /proc of this machine with a thousand additional processes. It
// measures the first snapshot of a reader, and later ones.
func BenchmarkSnapshot(b *testing.B) {
	for range 1000 {
		cmd := exec.Command("sleep", "600")
		must.OK(b, cmd.Start())
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	}
	for _, first := range []bool{true, false} {
		b.Run(map[bool]string{true: "first", false: "again"}[first], func(b *testing.B) {
			r, n := new(Reader), 0
			for b.Loop() {
				if first {
					r = new(Reader)
				}
				s, err := r.Snapshot(b.Context())
				must.That(b, err == nil && len(s.Processes) >= 1000, "%v", err)
				n += len(s.Processes)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n)/1000, "µs/process")
		})
	}
}
