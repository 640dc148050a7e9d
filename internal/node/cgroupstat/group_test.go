package cgroupstat

import (
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// alike is the expected reading of group /a on both fake machines.
var alike = record.GroupMemory{
	Usage: 100000000, Peak: 120000000, Anon: 40000000, File: 30000000, Mapped: 10000000, Shmem: 20000000,
	Kernel: 9000000, Sock: 4096, Swap: 8192, InactiveFile: 7000000,
}

func alike2() *record.GroupMemory {
	m := alike
	m.Slab, m.Stacks, m.PageTables, m.Percpu = 5000000, 100000, 250000, 30000
	return &m
}

func TestRead(t *testing.T) {
	limited := alike
	limited.Limit = 1 << 30
	limited2 := alike2()
	limited2.Limit = 1 << 30
	bare := record.GroupMemory{Usage: 100000000, Anon: 40000000, File: 30000000, Mapped: 10000000, Shmem: 20000000, Swap: 8192, InactiveFile: 7000000}
	parts := alike2()
	parts.Kernel = 5000000 + 100000 + 250000 + 30000 + 12288
	hybrid := machine1().with(files{
		"/proc/self/mountinfo":           machine1()["/proc/self/mountinfo"] + "30 10 0:30 / /cg/unified rw - cgroup2 cgroup2 rw\n",
		"/cg/unified/cgroup.controllers": "\n",
		"/cg/unified/a/cpu.stat":         "usage_usec 1\n",
		"/cg/unified/only/cpu.stat":      "usage_usec 3\nuser_usec 1\nsystem_usec 2\n",
		"/cg/unified/only/io.stat":       "8:0 rbytes=1 wbytes=1\n",
	})
	for _, c := range []struct {
		claim string
		files files
		path  string
		want  record.Group
	}{
		{"version 1", machine1(), "/a", record.Group{Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"},
			Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"cgroup v2 has the same values", machine2(), "/a", record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
			Memory: alike2(), CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"limit", machine1().with(files{"/cg/memory/a/memory.limit_in_bytes": "1073741824\n"}), "/a", record.Group{Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"},
			Memory: &limited, CPU: new(int64(7000000001)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"limit of the parent", machine2().with(files{"/cg/memory.max": "1073741824\n"}), "/a", record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
			Memory: limited2, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"limit below that of the parent", machine2().with(files{"/cg/memory.max": "1073741825\n", "/cg/a/memory.max": "1073741824\n"}), "/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: limited2, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"limit above that of the parent", machine2().with(files{"/cg/memory.max": "1073741824\n", "/cg/a/memory.max": "1073741825\n"}), "/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: limited2, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"kernel without kmem and bandwidth control, older I/O file", machine1().with(files{
			"/cg/memory/a/memory.kmem.usage_in_bytes": "-", "/cg/memory/a/memory.kmem.tcp.usage_in_bytes": "-",
			"/cg/memory/a/memory.max_usage_in_bytes": "-", "/cg/cpu,cpuacct/a/cpu.stat": "-", "/cg/pids/a/pids.current": "-",
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "-",
			"/cg/blkio/a/blkio.throttle.io_service_bytes":           "8:0 Read 1\n8:0 Write 2\nTotal 3\n"}), "/a",
			record.Group{Controllers: []string{"memory", "cpuacct", "blkio"}, Memory: &bare, CPU: new(int64(7000000001)), ReadBytes: 1, WriteBytes: 2}},
		{"kernel without the line kernel: sum of its parts", machine2().with(files{
			"/cg/a/memory.stat": strings.Replace(stat2, "kernel 9000000\n", "", 1)}), "/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: parts, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"no I/O", machine1().with(files{
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
			"/cg/blkio/blkio.throttle.io_service_bytes_recursive":   "8:0 Read 4096\n8:0 Write 8192\nTotal 12288\n"}), "/a", record.Group{
			Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"}, Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, Pids: 12}},
		{"no I/O, older I/O file", machine1().with(files{
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "-",
			"/cg/blkio/a/blkio.throttle.io_service_bytes":           "Total 0\n",
			"/cg/blkio/blkio.throttle.io_service_bytes":             "8:0 Read 4096\n8:0 Write 8192\nTotal 12288\n"}), "/a", record.Group{
			Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"}, Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, Pids: 12}},
		{"hierarchy without I/O accounting", machine1().with(files{
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
			"/cg/blkio/blkio.throttle.io_service_bytes_recursive":   "Total 0\n"}), "/a", record.Group{
			Controllers: []string{"memory", "cpuacct", "cpu", "pids"}, Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, Pids: 12}},
		{"group without controllers has CPU time only", machine2(), "/a/b",
			record.Group{Controllers: []string{"cpu"}, CPU: new(int64(9000))}},
		{"v1 is read if v2 has no controllers", hybrid, "/a", record.Group{Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"},
			Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"group only in a v2 hierarchy without controllers", hybrid, "/only", record.Group{Controllers: []string{"cpu"}, CPU: new(int64(3000))}},
		{"some controllers in v2", hybrid.with(files{
			"/proc/self/mountinfo": mounts +
				"21 10 0:21 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"22 10 0:22 / /cg/blkio rw - cgroup cgroup rw,blkio\n" +
				"30 10 0:30 / /cg/unified rw - cgroup2 cgroup2 rw\n",
			"/cg/unified/cgroup.controllers": "memory pids\n",
			"/cg/unified/a/memory.current":   "100000000\n", "/cg/unified/a/memory.stat": stat2,
			"/cg/unified/a/memory.peak": "120000000\n", "/cg/unified/a/memory.swap.current": "8192\n",
			"/cg/unified/a/memory.max": "max\n", "/cg/unified/a/pids.current": "12\n",
			"/cg/unified/a/io.stat": "8:0 rbytes=1 wbytes=1\n"}), "/a", record.Group{Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"},
			Memory: alike2(), CPU: new(int64(7000000001)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"mounts of a container", machine2().with(files{
			"/proc/self/mountinfo": mounts + "20 10 0:20 /docker/1 /cg rw - cgroup2 cgroup2 rw\n"}), "/docker/1/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: alike2(), CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
	} {
		g := c.files.open(t).group(t, c.path)
		got := record.Group{Charge: record.ChargePod, Lane: 3, Nested: true, Pids: 99, Throttled: 99, Memory: &record.GroupMemory{}}
		c.want.Path, c.want.Charge, c.want.Lane, c.want.Nested = c.path, record.ChargePod, 3, true
		for range 2 { // the second reading is equal
			must.OK(t, g.Read(&got))
			check.Equal(t, c.claim, got, c.want)
		}
		var s Sample
		must.OK(t, g.Sample(&s))
		want := Sample{HaveCPU: true, CPU: *c.want.CPU}
		if m := c.want.Memory; m != nil {
			want.HaveMemory, want.Usage, want.Anon, want.File, want.Shmem, want.InactiveFile = true, m.Usage, m.Anon, m.File, m.Shmem, m.InactiveFile
		}
		check.Equal(t, c.claim, s, want)
	}
}

func TestMissingGroupIsGone(t *testing.T) {
	s := machine1().with(files{"/proc/self/mountinfo": mounts +
		"20 10 0:20 /docker/1 /cg/memory rw - cgroup cgroup rw,memory\n" +
		"21 10 0:21 /../.. /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"}).open(t)
	for _, path := range []string{"/b", "/a", "/docker/1a", "/docker/1/a/memory.stat", "/../../a/b"} {
		g, err := s.Group(path)
		want := ErrGone
		if path == "/../../a/b" {
			want = errPath
		}
		check.That(t, errors.Is(err, want), "%s: %v, %v", path, g, err)
	}
	s.group(t, "/docker/1/a")
}

func TestInvalidPathsAreRefused(t *testing.T) {
	s := machine1().open(t)
	for _, path := range []string{"", "a", "/..", "/../a", "/a/../..", "/a/..", "a/../b", "/a\x00b", "/" + strings.Repeat("a", 5000)} {
		g, err := s.Group(path)
		check.That(t, errors.Is(err, errPath), "%.40q: %v, %v", path, g, err)
	}
	for _, path := range []string{"/a/", "//a", "/./a", "/a/."} {
		g := s.group(t, path)
		check.That(t, g.path == "/a", "%q: got %q", path, g.path)
	}
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	root := machine1().make(t)
	must.OK(t, os.Symlink("a", string(root)+"/cg/memory/link"))
	s := must.Get(Open(root))(t)
	defer s.Close()
	g, err := s.Group("/link")
	check.That(t, errors.Is(err, ErrGone), "%v, %v", g, err)
}

func TestNothingMountedIsAnError(t *testing.T) {
	for claim, f := range map[string]files{
		"nothing":          {"/proc/self/mountinfo": mounts},
		"no controllers":   {"/proc/self/mountinfo": mounts + "20 10 0:20 / /cg rw - cgroup cgroup rw,name=systemd\n", "/cg/x": ""},
		"unreadable mount": {"/proc/self/mountinfo": mounts + "20 10 0:20 / /cg rw - cgroup cgroup rw,memory\n"},
		"no mountinfo":     {},
	} {
		s, err := Open(f.make(t))
		check.That(t, err != nil, "%s: %+v", claim, s)
	}
}

func TestMalformedFilesAreDiscarded(t *testing.T) {
	const memory, cpu, blkio = "/cg/memory/a/", "/cg/cpu,cpuacct/a/", "/cg/blkio/a/blkio.throttle.io_service_bytes_recursive"
	type part int
	const (
		noMemory part = iota
		noCPU
		noThrottled
		noIO
		noPids
		noPeak
	)
	for _, c := range []struct {
		claim, file, text string
		lost              part
	}{
		{"usage is empty", memory + "memory.usage_in_bytes", "", noMemory},
		{"usage is negative", memory + "memory.usage_in_bytes", "-1\n", noMemory},
		{"usage is too large", memory + "memory.usage_in_bytes", "18446744073709551615\n", noMemory},
		{"usage overflows", memory + "memory.usage_in_bytes", "184467440737095516160\n", noMemory},
		{"usage has a second line", memory + "memory.usage_in_bytes", "1\n2\n", noMemory},
		{"memory.stat is empty", memory + "memory.stat", "", noMemory},
		{"memory.stat lacks a line", memory + "memory.stat", strings.Replace(stat1, "total_shmem ", "total_other ", 1), noMemory},
		{"memory.stat has a malformed line", memory + "memory.stat", strings.Replace(stat1, "total_rss 4", "total_rss x", 1), noMemory},
		{"memory.stat has an overlong number", memory + "memory.stat", strings.Replace(stat1, "total_rss 4", "total_rss "+strings.Repeat("9", 1000), 1), noMemory},
		{"memory.stat has another format", memory + "memory.stat", stat2, noMemory},
		{"memory.stat is oversized", memory + "memory.stat", strings.Repeat(stat1, 1000), noMemory},
		{"peak is a word", memory + "memory.max_usage_in_bytes", "high\n", noPeak},
		{"CPU time is a word", cpu + "cpuacct.usage", "many\n", noCPU},
		{"CPU time has a fraction", cpu + "cpuacct.usage", "1.5\n", noCPU},
		{"throttled time is a word", cpu + "cpu.stat", "throttled_time x\n", noThrottled},
		{"I/O is a word", blkio, "8:0 Read x\n", noIO},
		{"I/O overflows", blkio, "8:0 Read 9223372036854775807\n8:0 Read 1\n", noIO},
		{"pids.current is too large", "/cg/pids/a/pids.current", "99999999999\n", noPids},
	} {
		g := machine1().with(files{c.file: c.text}).open(t).group(t, "/a")
		var got record.Group
		err := g.Read(&got)
		check.That(t, errors.Is(err, errForm) && strings.Contains(err.Error(), c.file) && len(err.Error()) <= 1000,
			"%s: got the error %v", c.claim, err)
		var s Sample
		sampled := g.Sample(&s)
		inSample := c.lost == noMemory || c.lost == noCPU
		check.That(t, errors.Is(sampled, errForm) == inSample, "%s: Sample returned %v", c.claim, sampled)
		if (got.Memory == nil) != (c.lost == noMemory) || s.HaveMemory == (c.lost == noMemory) ||
			(got.CPU == nil) != (c.lost == noCPU) || s.HaveCPU == (c.lost == noCPU) ||
			(got.Throttled == 0) != (c.lost == noThrottled) || (got.ReadBytes+got.WriteBytes == 0) != (c.lost == noIO) ||
			(got.Pids == 0) != (c.lost == noPids) || got.Memory != nil && (got.Memory.Peak == 0) != (c.lost == noPeak) {
			t.Errorf("%s: got %+v, %+v", c.claim, got, s)
		}
	}
}

func TestMalformedFilesOfV2AreDiscarded(t *testing.T) {
	for claim, f := range map[string]files{
		"CPU time overflows":        {"/cg/a/cpu.stat": "usage_usec 9223372036854775807\n"},
		"CPU time is missing":       {"/cg/a/cpu.stat": "user_usec 1\n"},
		"throttled time is a word":  {"/cg/a/cpu.stat": "usage_usec 1\nthrottled_usec x\n"},
		"limit is an unknown word":  {"/cg/a/memory.max": "min\n"},
		"memory.stat is truncated":  {"/cg/a/memory.stat": stat2[:60]},
		"kernel memory is negative": {"/cg/a/memory.stat": strings.Replace(stat2, "kernel 9", "kernel -9", 1)},
		"I/O is a word":             {"/cg/a/io.stat": "8:0 rbytes=x wbytes=1\n"},
	} {
		g := machine2().with(f).open(t).group(t, "/a")
		var got record.Group
		err := g.Read(&got)
		check.That(t, errors.Is(err, errForm), "%s: %v, %+v", claim, err, got)
	}
}

func TestRemovedGroupHasNoValues(t *testing.T) {
	root := machine2().make(t)
	s := must.Get(Open(root))(t)
	defer s.Close()
	g := s.group(t, "/a")
	// Regular files stay readable while open, unlike cgroup files.
	must.OK(t, os.Rename(string(root)+"/cg/a", string(root)+"/cg/b"))
	var got record.Group
	err := g.Read(&got)
	check.That(t, errors.Is(err, ErrGone) && got.Memory == nil && got.CPU == nil && got.Path == "/a", "%v, %+v", err, got)
	// A new group with the same name is another group.
	must.OK(t, os.CopyFS(string(root)+"/cg/a", os.DirFS(string(root)+"/cg/b")))
	err = g.Read(&got)
	check.That(t, errors.Is(err, ErrGone) && got.Memory == nil && got.CPU == nil, "new group with the same name: %v, %+v", err, got)
	s.group(t, "/a") // the new group
	g.Close()
	check.Is(t, g.Read(&got), ErrGone)
	var sample Sample
	err = g.Sample(&sample)
	check.That(t, errors.Is(err, ErrGone) && !sample.HaveCPU, "after Close: %v, %+v", err, sample)
}

func TestFilesAreReopenedWithoutSpareDescriptors(t *testing.T) {
	s := machine1().open(t)
	s.most = 2
	g, other := s.group(t, "/a"), s.group(t, "/a")
	var got record.Group
	for range 2 {
		err := errors.Join(g.Read(&got), other.Read(&got))
		check.That(t, err == nil && reflect.DeepEqual(got.Memory, &alike) && *got.CPU == 7000000001 && got.Pids == 12, "%v, %+v", err, got)
	}
	check.Equal(t, "open descriptors", s.kept, 2)
	g.Close()
	check.Equal(t, "open descriptors after Close", s.kept, 0)
	must.OK(t, os.RemoveAll(string(s.root)+"/cg/memory/a"))
	var sample Sample
	err := other.Sample(&sample)
	check.That(t, errors.Is(err, ErrGone) && !sample.HaveMemory, "%v, %+v", err, sample)
}

func TestSkipIdle(t *testing.T) {
	s := machine1().open(t)
	g := s.group(t, "/a")
	set := func(name, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(string(s.root)+name, []byte(text), 0))
	}
	const stat, usage, cpu = "/cg/memory/a/memory.stat", "/cg/memory/a/memory.usage_in_bytes", "/cg/cpu,cpuacct/a/cpuacct.usage"
	anon := func(n string) string { return strings.Replace(stat1, "total_rss 40000000", "total_rss "+n, 1) }
	for _, c := range []struct {
		claim      string
		idle       time.Duration
		file, text string
		want       int64
	}{
		{"first sample is read", time.Hour, "", "", 40000000},
		{"idle group is skipped", time.Hour, stat, anon("1"), 40000000},
		{"changed usage is read", time.Hour, usage, "100000001\n", 1},
		{"idle again", time.Hour, stat, anon("2"), 1},
		{"changed CPU time is read", time.Hour, cpu, "7000000002\n", 2},
		{"old sample is read again", time.Nanosecond, stat, anon("3"), 3},
		{"without SkipIdle it is read", 0, stat, anon("4"), 4},
		{"after disabling SkipIdle it is read", 0, stat, anon("5"), 5},
	} {
		if c.file != "" {
			set(c.file, c.text)
		}
		s.SkipIdle(c.idle)
		var got Sample
		err := g.Sample(&got)
		check.That(t, err == nil && got.Anon == c.want && got.HaveMemory && got.HaveCPU && got.File == 30000000, "%s: %v, %+v", c.claim, err, got)
	}
	s.SkipIdle(time.Hour)
	var got Sample
	check.Equal(t, "allocations", testing.AllocsPerRun(100, func() { _ = g.Sample(&got) }), 0)
}

// Go raises the soft limit at program start, so allowance need not.
func TestSoftLimitEqualsHardLimit(t *testing.T) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	check.That(t, err == nil && l.Cur == l.Max, "%+v, %v", l, err)
	n := allowance()
	check.That(t, n > 0 && uint64(n) < l.Cur, "allowance of %d descriptors, limit %d", n, l.Cur)
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(stat1))
	f.Add([]byte(stat2))
	f.Add([]byte("8:0 rbytes=4096 wbytes=8192\n8:0 Read 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s stats
		for version := range 2 {
			for _, most := range []key{needed, keys} {
				err := s.parse(b, version+1, most)
				check.That(t, err != nil || slices.Min(s[:]) >= 0, "%q: %+v", b, s)
			}
			r, w, err := transfers(b, version+1, func([]byte) bool { return true })
			check.That(t, err != nil || min(r, w) >= 0, "%q: %d, %d", b, r, w)
		}
		n, err := limit(b)
		check.That(t, err != nil || n >= 0 && n < maxBytes, "%q: %d", b, n)
	})
}
