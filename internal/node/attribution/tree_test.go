package attribution

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// proc is a process of a fake /proc.
type proc struct {
	pid, ppid int
	comm      string // defaults to the base name of the first argument
	args      string // split at spaces
	exe       string
	cgroup    string
	nspid     string // "12 1"; defaults to the pid
	start     int    // 0: the pid
	flags     int
	threads   []thread // all but the first
	anon      int      // kB
}

type thread struct {
	comm, cgroup string // default to those of the process
	ns           int64
	guest        int // ticks
}

const root1 = "4:memory:/\n2:cpuacct:/\n1:cpu:/\n0::/\n"

// v1 returns a cgroup file with the same path in every hierarchy.
func v1(path string) string {
	var b strings.Builder
	for i, c := range []string{"name=systemd", "pids", "blkio", "freezer", "devices", "memory", "cpuset", "cpuacct", "cpu"} {
		fmt.Fprintf(&b, "%d:%s:%s\n", 9-i, c, path)
	}
	return b.String() + "0::/\n"
}

func v2(path string) string { return "0::" + path + "\n" }

// numbered replaces short names in case files by long IDs. shortened does the opposite.
var (
	numbered  = strings.NewReplacer("HEX1", hex, "HEX2", hex2, "PODUID", podUIDs)
	shortened = strings.NewReplacer(hex, "HEX1", hex2, "HEX2", hex[:12], "SHORT1", podUIDs, "PODUID")
)

// processesIn reads the rows of a case file: pid, parent, cgroup, pids in namespaces,
// executable, name, arguments and threads. A thread has a name, CPU time, guest time and
// cgroup.
func processesIn(t *testing.T, rows string) (all []proc) {
	t.Helper()
	number := func(text string) int { return must.Get(strconv.Atoi(text))(t) }
	for row := range strings.Lines(numbered.Replace(rows)) {
		f := strings.Split(row+"|", "|")
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		p := proc{pid: number(f[0]), ppid: number(f[1]), cgroup: cgroupIn(f[2]), nspid: f[3], exe: f[4], comm: f[5], args: f[6]}
		if strings.HasPrefix(p.comm, "vhost-") {
			p.flags = 0x00200000 // a kernel thread
		}
		for of := range strings.SplitSeq(f[7], "; ") {
			if th := strings.Split(of, ","); len(th) == 4 {
				p.threads = append(p.threads, thread{comm: th[0], ns: int64(number(th[1])), guest: number(th[2]), cgroup: cgroupIn(th[3])})
			}
		}
		all = append(all, p)
	}
	return all
}

// cgroupIn returns the cgroup file for a version and a path.
func cgroupIn(text string) string {
	version, path, _ := strings.Cut(text, " ")
	switch version {
	case "v1":
		return v1(path)
	case "v2":
		return v2(path)
	}
	return ""
}

func tree(t testing.TB, procs ...proc) machine.Root {
	t.Helper()
	root := t.TempDir()
	for _, p := range procs {
		p.write(t, root)
	}
	return machine.Root(root)
}

func (p proc) write(t testing.TB, root string) {
	t.Helper()
	args := strings.Fields(p.args)
	if p.comm == "" && len(args) > 0 {
		p.comm = filepath.Base(args[0])
	}
	p.comm = p.comm[:min(15, len(p.comm))]
	if p.nspid == "" {
		p.nspid = strconv.Itoa(p.pid)
	}
	if p.start == 0 {
		p.start = p.pid
	}
	dir := filepath.Join(root, "proc", strconv.Itoa(p.pid))
	stat := func(tid int, comm string, guest int) string {
		return fmt.Sprintf("%d (%s) S %d 1 1 0 -1 %d 0 0 0 0 10 5 0 0 20 0 %d 0 %d 0 0 0 0 0 7000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 %d 0 0 0 0 %d 0 0 0 0\n",
			tid, comm, p.ppid, p.flags, len(p.threads)+1, p.start, guest, 9000+p.start)
	}
	guest := 0 // of the process: the sum of its threads
	for _, th := range p.threads {
		guest += th.guest
	}
	cmdline := ""
	if len(args) > 0 {
		cmdline = strings.Join(args, "\x00") + "\x00"
	}
	file(t, dir, "stat", stat(p.pid, p.comm, guest))
	file(t, dir, "cmdline", cmdline)
	file(t, dir, "cgroup", p.cgroup)
	file(t, dir, "status", fmt.Sprintf("Name:\t%s\nNSpid:\t%s\nVmRSS:\t%d kB\nRssAnon:\t%d kB\nVmPTE:\t44 kB\n", p.comm, strings.ReplaceAll(p.nspid, " ", "\t"), p.anon+100, p.anon))
	file(t, dir, "statm", fmt.Sprintf("1000 %d 25 0 0 0 0\n", p.anon*1024/int(int64(os.Getpagesize()))+25))
	file(t, dir, "smaps_rollup", fmt.Sprintf("0-1 ---p 0 00:00 0 [rollup]\nRss: %d kB\nPss: 1 kB\nPss_Anon: %d kB\nPss_File: 50 kB\nPss_Shmem: 3 kB\nShared_Hugetlb: 2048 kB\nPrivate_Hugetlb: 4096 kB\nSwap: 9 kB\nSwapPss: 8 kB\n", p.anon+100, p.anon))
	if p.exe != "" {
		must.OK(t, os.Symlink(p.exe, filepath.Join(dir, "exe")))
	}
	for i, th := range append([]thread{{}}, p.threads...) {
		tid := p.pid
		if i > 0 {
			tid = p.pid*100 + i
		}
		if th.comm == "" {
			th.comm = p.comm
		}
		if th.cgroup == "" {
			th.cgroup = p.cgroup
		}
		task := filepath.Join(dir, "task", strconv.Itoa(tid))
		file(t, task, "cgroup", th.cgroup)
		file(t, task, "comm", th.comm+"\n")
		file(t, task, "stat", stat(tid, th.comm, th.guest))
		file(t, task, "schedstat", fmt.Sprintf("%d 5 1\n", th.ns))
	}
}

func file(t testing.TB, dir, name, text string) {
	t.Helper()
	must.OK(t, os.MkdirAll(dir, 0o755))
	must.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
}

// kata returns the process tree of the sandbox "kk". testdata/kata/proc was recorded on a
// machine, without threads. kata adds them: one of the four of QEMU is in the cgroup of the
// pod.
func kata(t testing.TB) machine.Root {
	t.Helper()
	root := t.TempDir()
	proc{pid: 1, args: "/sbin/init", cgroup: root1}.write(t, root)
	proc{pid: 500, ppid: 1, args: "/opt/kata/ctd/containerd -c x", cgroup: root1}.write(t, root)
	must.OK(t, os.CopyFS(filepath.Join(root, "proc"), os.DirFS("testdata/kata/proc")))
	for pid, names := range map[int][]string{
		26365: repeat("containerd-shim", 12), 26376: repeat("ld-linux-x86-64", 1), 26379: repeat("ld-linux-x86-64", 5), 26387: repeat("ld-linux-x86-64", 4),
		26377: {"qemu-system-x86", "call_rcu", "IO mon_iothread", "CPU 0/TCG"},
	} {
		for i, comm := range names {
			group, ns := v1("/kata_overhead/kk"), 1000
			if comm == "CPU 0/TCG" {
				group, ns = v1("/default/kk"), 3_900_000_000
			}
			tid := pid
			if i > 0 {
				tid = pid*10 + i
			}
			task := filepath.Join(root, "proc", strconv.Itoa(pid), "task", strconv.Itoa(tid))
			file(t, task, "cgroup", group)
			file(t, task, "comm", comm+"\n")
			file(t, task, "schedstat", fmt.Sprintf("%d 0 1\n", ns))
		}
	}
	return machine.Root(root)
}

func repeat(s string, n int) []string { return strings.Split(strings.Repeat(s+"\n", n-1)+s, "\n") }

func snapshot(t testing.TB, root machine.Root) (*Reader, *Snapshot) {
	t.Helper()
	r := &Reader{Root: root}
	s := must.Get(r.Snapshot(t.Context()))(t)
	return r, s
}

// full formats members completely.
func full(t testing.TB, r *Reader, members []Member) []record.Process {
	t.Helper()
	var out []record.Process
	var problems record.Problems
	for _, m := range members {
		p := must.Get(r.Process(m, true, &problems))(t)
		out = append(out, p)
	}
	return out
}

// roles formats members as "pid=role@lane". long also has their rules, for messages.
func roles(members []Member) (short string, long string) {
	for _, m := range members {
		short += fmt.Sprintf("%d=%s@%d ", m.Pid, m.Role, m.Lane)
		long += fmt.Sprintf("\n  %d %s %q lane %d: %s", m.Pid, m.Comm, m.Role, m.Lane, m.Rule)
	}
	return strings.TrimSpace(short), long
}

func charges(groups []record.Group) string {
	var out []string
	for _, g := range groups {
		nested := ""
		if g.Nested {
			nested = " nested"
		}
		out = append(out, fmt.Sprintf("%s=%s@%d%s", g.Path, g.Charge, g.Lane, nested))
	}
	return strings.Join(out, " ")
}
