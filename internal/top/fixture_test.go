package top

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
)

// fixture is a simulated machine with cgroup v1 or v2.
type fixture struct {
	t     *testing.T
	root  string
	clock time.Time
	v2    bool
}

func newFixture(t *testing.T, v2 bool) *fixture {
	f := &fixture{t: t, root: t.TempDir(), clock: time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), v2: v2}
	mounts := "10 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	if v2 {
		mounts += "20 10 0:20 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
		f.write("/sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n")
	} else {
		for i, c := range []string{"memory", "cpuacct", "blkio"} {
			mounts += fmt.Sprintf("%d 10 0:%d / /sys/fs/cgroup/%s rw - cgroup cgroup rw,%s\n", 20+i, 20+i, c, c)
			must.OK(t, os.MkdirAll(filepath.Join(f.root, "sys/fs/cgroup", c), 0o755))
		}
	}
	f.write("/proc/self/mountinfo", mounts)
	f.write("/proc/meminfo", "MemTotal: 8000000 kB\nMemFree: 4000000 kB\nMemAvailable: 6000000 kB\nBuffers: 0 kB\nCached: 2000000 kB\nSwapCached: 0 kB\nShmem: 0 kB\nAnonPages: 0 kB\nSlab: 0 kB\nKernelStack: 0 kB\nPageTables: 0 kB\nPercpu: 0 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n")
	f.write("/proc/zoneinfo", "")
	f.write("/proc/loadavg", "0.42 0.30 0.20 1/100 1234\n")
	f.stat(1000)
	f.write("/proc/cpuinfo", "")
	f.process(1, 0, 1, "init", "/", 1000, 0)
	return f
}

// stat sets the busy CPU time of the node, in ticks.
func (f *fixture) stat(busy int) {
	f.write("/proc/stat", fmt.Sprintf("cpu  %d 0 0 %d 0 0 0 0 0 0\n", busy, busy*4))
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	name = filepath.Join(f.root, name)
	must.OK(f.t, os.MkdirAll(filepath.Dir(name), 0o755))
	must.OK(f.t, os.WriteFile(name, []byte(text), 0o644))
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	must.OK(f.t, os.RemoveAll(filepath.Join(f.root, name)))
}

// process writes the files of a process. It is in a nested PID namespace if it has its own
// cgroup. ticks is its CPU time.
func (f *fixture) process(pid, ppid, start int, args, group string, pages, ticks int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/"
	words := strings.Fields(args)
	comm := words[0]
	comm = comm[strings.LastIndexByte(comm, '/')+1:]
	comm = comm[:min(15, len(comm))]
	nspid := strconv.Itoa(pid)
	if group != "/" && !strings.Contains(args, "shim") && !strings.Contains(group, "service") {
		nspid += "\t1"
	}
	cgroup := "0::" + group + "\n"
	if !f.v2 {
		cgroup = "3:memory:" + group + "\n2:cpuacct:" + group + "\n1:blkio:" + group + "\n"
	}
	f.write(dir+"cgroup", cgroup)
	f.write(dir+"stat", fmt.Sprintf("%d (%s) S %d 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d 0 %d 0 0 0 0 0 7000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 9000 0 0 0 0\n", pid, comm, ppid, ticks, start, pages))
	f.write(dir+"status", fmt.Sprintf("Name:\t%s\nNSpid:\t%s\nVmRSS:\t%d kB\nRssAnon:\t%d kB\nVmPTE:\t44 kB\n", comm, nspid, pages*4, pages*4))
	f.write(dir+"statm", fmt.Sprintf("9000 %d 0 0 0 0 0\n", pages))
	f.write(dir+"cmdline", strings.Join(words, "\x00")+"\x00")
	f.write(dir+"smaps_rollup", fmt.Sprintf("0-1 ---p 0 00:00 0 [rollup]\nRss: %d kB\nPss: 1 kB\nPss_Anon: %d kB\nPss_File: 0 kB\nPss_Shmem: 0 kB\nShared_Hugetlb: 0 kB\nPrivate_Hugetlb: 0 kB\nSwapPss: 0 kB\n", pages*4, pages*2))
}

// charge is the usage of a cgroup.
type charge struct {
	anon, file, limit int64 // bytes
	cpu               int64 // ns
	io                int64 // bytes written
}

func (f *fixture) group(path string, u charge) {
	if f.v2 {
		dir := "/sys/fs/cgroup" + path + "/"
		limit := "max"
		if u.limit > 0 {
			limit = strconv.FormatInt(u.limit, 10)
		}
		f.write(dir+"memory.current", strconv.FormatInt(u.anon+u.file, 10)+"\n")
		f.write(dir+"memory.max", limit+"\n")
		f.write(dir+"memory.stat", fmt.Sprintf("anon %d\nfile %d\nkernel 0\nshmem 0\nfile_mapped 0\ninactive_file 0\n", u.anon, u.file))
		f.write(dir+"cpu.stat", fmt.Sprintf("usage_usec %d\nuser_usec 0\nsystem_usec 0\n", u.cpu/1000))
		f.write(dir+"io.stat", fmt.Sprintf("8:0 rbytes=0 wbytes=%d rios=0 wios=0\n", u.io))
		return
	}
	dir := "/sys/fs/cgroup/memory" + path + "/"
	limit := u.limit
	if limit == 0 {
		limit = 9223372036854771712
	}
	f.write(dir+"memory.usage_in_bytes", strconv.FormatInt(u.anon+u.file, 10)+"\n")
	f.write(dir+"memory.limit_in_bytes", strconv.FormatInt(limit, 10)+"\n")
	f.write(dir+"memory.stat", fmt.Sprintf("cache 0\ntotal_cache %d\ntotal_rss %d\ntotal_shmem 0\ntotal_mapped_file 0\ntotal_inactive_file 0\n", u.file, u.anon))
	f.write("/sys/fs/cgroup/cpuacct"+path+"/cpuacct.usage", strconv.FormatInt(u.cpu, 10)+"\n")
	f.write("/sys/fs/cgroup/blkio"+path+"/blkio.throttle.io_service_bytes_recursive", fmt.Sprintf("8:0 Read 0\n8:0 Write %d\n", u.io))
}

// open returns a collector that uses the clock of the fixture.
func (f *fixture) open(cfg config) *collector {
	f.t.Helper()
	cfg.Root = machine.Root(f.root)
	c, err := open(cfg)
	must.OK(f.t, err)
	f.t.Cleanup(c.Close)
	c.now = func() time.Time { return f.clock }
	c.system.SkipIdle(0)
	return c
}

// pass advances the clock and returns the next reading.
func (f *fixture) pass(c *collector, d time.Duration) *view {
	f.t.Helper()
	f.clock = f.clock.Add(d)
	v, err := c.Tick(f.t.Context(), nil)
	must.OK(f.t, err)
	return v
}

func only(t *testing.T, v *view) *Sandbox {
	t.Helper()
	must.That(t, len(v.Sandboxes) == 1, "%d sandboxes, want 1: %+v", len(v.Sandboxes), v.Sandboxes)
	return &v.Sandboxes[0]
}

func near(m Maybe, want float64) bool { return m.OK && m.V > want-1e-6 && m.V < want+1e-6 }

const (
	hexID  = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	hexID2 = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
)

// docker returns a machine with one Docker container, and the cgroup of the container. The
// shim is charged to the cgroup of the daemon.
func docker(t *testing.T, v2 bool) (*fixture, string) {
	f := newFixture(t, v2)
	group := "/docker/" + hexID
	f.process(50, 1, 50, "/usr/bin/containerd", "/system.slice/containerd.service", 5000, 0)
	f.process(60, 1, 60, "/usr/bin/containerd-shim-runc-v2 -namespace moby -id "+hexID, "/system.slice/containerd.service", 2560, 100)
	f.process(61, 60, 61, "sleep 100", group, 256, 5)
	f.group(group, charge{anon: 64 << 20, file: 32 << 20, limit: 256 << 20, cpu: 1e9, io: 1 << 20})
	f.group("/system.slice/containerd.service", charge{anon: 900 << 20, cpu: 7e9})
	return f, group
}
