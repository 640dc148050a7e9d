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

// alike is the expected reading of the group /a on both fake machines.
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
		{"version 2 says the same in its own files", machine2(), "/a", record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
			Memory: alike2(), CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a limit", machine1().with(files{"/cg/memory/a/memory.limit_in_bytes": "1073741824\n"}), "/a", record.Group{Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"},
			Memory: &limited, CPU: new(int64(7000000001)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a limit of a group above", machine2().with(files{"/cg/memory.max": "1073741824\n"}), "/a", record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
			Memory: limited2, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a limit below that of a group above", machine2().with(files{"/cg/memory.max": "1073741825\n", "/cg/a/memory.max": "1073741824\n"}), "/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: limited2, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a limit above that of a group above", machine2().with(files{"/cg/memory.max": "1073741824\n", "/cg/a/memory.max": "1073741825\n"}), "/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: limited2, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a kernel without kmem and bandwidth control, and with the older file of I/O", machine1().with(files{
			"/cg/memory/a/memory.kmem.usage_in_bytes": "-", "/cg/memory/a/memory.kmem.tcp.usage_in_bytes": "-",
			"/cg/memory/a/memory.max_usage_in_bytes": "-", "/cg/cpu,cpuacct/a/cpu.stat": "-", "/cg/pids/a/pids.current": "-",
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "-",
			"/cg/blkio/a/blkio.throttle.io_service_bytes":           "8:0 Read 1\n8:0 Write 2\nTotal 3\n"}), "/a",
			record.Group{Controllers: []string{"memory", "cpuacct", "blkio"}, Memory: &bare, CPU: new(int64(7000000001)), ReadBytes: 1, WriteBytes: 2}},
		{"a kernel before the line kernel: the sum of its parts", machine2().with(files{
			"/cg/a/memory.stat": strings.Replace(stat2, "kernel 9000000\n", "", 1)}), "/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: parts, CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a group without I/O in a hierarchy that counts it", machine1().with(files{
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
			"/cg/blkio/blkio.throttle.io_service_bytes_recursive":   "8:0 Read 4096\n8:0 Write 8192\nTotal 12288\n"}), "/a", record.Group{
			Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"}, Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, Pids: 12}},
		{"a group without I/O on a kernel with the older file of it", machine1().with(files{
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "-",
			"/cg/blkio/a/blkio.throttle.io_service_bytes":           "Total 0\n",
			"/cg/blkio/blkio.throttle.io_service_bytes":             "8:0 Read 4096\n8:0 Write 8192\nTotal 12288\n"}), "/a", record.Group{
			Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"}, Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, Pids: 12}},
		{"a hierarchy that does not count I/O has no figure of I/O", machine1().with(files{
			"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "Total 0\n",
			"/cg/blkio/blkio.throttle.io_service_bytes_recursive":   "Total 0\n"}), "/a", record.Group{
			Controllers: []string{"memory", "cpuacct", "cpu", "pids"}, Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, Pids: 12}},
		{"a group without controllers has CPU time only", machine2(), "/a/b",
			record.Group{Controllers: []string{"cpu"}, CPU: new(int64(9000))}},
		{"v1 is read if v2 has no controllers", hybrid, "/a", record.Group{Controllers: []string{"memory", "cpuacct", "cpu", "blkio", "pids"},
			Memory: &alike, CPU: new(int64(7000000001)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
		{"a group that only the empty version 2 has", hybrid, "/only", record.Group{Controllers: []string{"cpu"}, CPU: new(int64(3000))}},
		{"some controllers are in version 2", hybrid.with(files{
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
		{"a container sees a part of the hierarchies as the whole", machine2().with(files{
			"/proc/self/mountinfo": mounts + "20 10 0:20 /docker/1 /cg rw - cgroup2 cgroup2 rw\n"}), "/docker/1/a",
			record.Group{Controllers: []string{"memory", "cpu", "io", "pids"},
				Memory: alike2(), CPU: new(int64(7000000000)), Throttled: 5000, ReadBytes: 4096, WriteBytes: 8192, Pids: 12}},
	} {
		g := c.files.open(t).group(t, c.path)
		got := record.Group{Charge: record.ChargePod, Lane: 3, Nested: true, Pids: 99, Throttled: 99, Memory: &record.GroupMemory{}}
		c.want.Path, c.want.Charge, c.want.Lane, c.want.Nested = c.path, record.ChargePod, 3, true
		for range 2 { // the second as the first
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
		check.That(t, g.Path() == "/a", "%q is %q", path, g.Path())
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
		"nothing":                       {"/proc/self/mountinfo": mounts},
		"no controllers":                {"/proc/self/mountinfo": mounts + "20 10 0:20 / /cg rw - cgroup cgroup rw,name=systemd\n", "/cg/x": ""},
		"a mount that cannot be opened": {"/proc/self/mountinfo": mounts + "20 10 0:20 / /cg rw - cgroup cgroup rw,memory\n"},
		"no mountinfo":                  {},
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
		{"usage is more than there is", memory + "memory.usage_in_bytes", "18446744073709551615\n", noMemory},
		{"usage overflows", memory + "memory.usage_in_bytes", "184467440737095516160\n", noMemory},
		{"usage has a second line", memory + "memory.usage_in_bytes", "1\n2\n", noMemory},
		{"the statistics are empty", memory + "memory.stat", "", noMemory},
		{"the statistics lack a line", memory + "memory.stat", strings.Replace(stat1, "total_shmem ", "total_other ", 1), noMemory},
		{"the statistics have a bad line", memory + "memory.stat", strings.Replace(stat1, "total_rss 4", "total_rss x", 1), noMemory},
		{"the statistics have a number without an end", memory + "memory.stat", strings.Replace(stat1, "total_rss 4", "total_rss "+strings.Repeat("9", 1000), 1), noMemory},
		{"the statistics are of another kind", memory + "memory.stat", stat2, noMemory},
		{"the statistics have no end", memory + "memory.stat", strings.Repeat(stat1, 1000), noMemory},
		{"the peak is a word", memory + "memory.max_usage_in_bytes", "high\n", noPeak},
		{"CPU time is a word", cpu + "cpuacct.usage", "many\n", noCPU},
		{"CPU time has a fraction", cpu + "cpuacct.usage", "1.5\n", noCPU},
		{"throttled time is a word", cpu + "cpu.stat", "throttled_time x\n", noThrottled},
		{"I/O is a word", blkio, "8:0 Read x\n", noIO},
		{"I/O overflows", blkio, "8:0 Read 9223372036854775807\n8:0 Read 1\n", noIO},
		{"there are more processes than numbers for them", "/cg/pids/a/pids.current", "99999999999\n", noPids},
	} {
		g := machine1().with(files{c.file: c.text}).open(t).group(t, "/a")
		var got record.Group
		err := g.Read(&got)
		check.That(t, errors.Is(err, errForm) && strings.Contains(err.Error(), c.file) && len(err.Error()) <= 1000,
			"%s: the error is %v", c.claim, err)
		var s Sample
		sampled := g.Sample(&s)
		inSample := c.lost == noMemory || c.lost == noCPU
		check.That(t, errors.Is(sampled, errForm) == inSample, "%s: a sample gives %v", c.claim, sampled)
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
		"CPU time overflows":       {"/cg/a/cpu.stat": "usage_usec 9223372036854775807\n"},
		"CPU time is not there":    {"/cg/a/cpu.stat": "user_usec 1\n"},
		"throttled is a word":      {"/cg/a/cpu.stat": "usage_usec 1\nthrottled_usec x\n"},
		"a limit is another word":  {"/cg/a/memory.max": "min\n"},
		"the statistics are cut":   {"/cg/a/memory.stat": stat2[:60]},
		"the kernel's is negative": {"/cg/a/memory.stat": strings.Replace(stat2, "kernel 9", "kernel -9", 1)},
		"I/O is a word":            {"/cg/a/io.stat": "8:0 rbytes=x wbytes=1\n"},
	} {
		g := machine2().with(f).open(t).group(t, "/a")
		var got record.Group
		err := g.Read(&got)
		check.That(t, errors.Is(err, errForm), "%s: %v, %+v", claim, err, got)
	}
}

func TestRemovedGroupHasNoFigures(t *testing.T) {
	root := machine2().make(t)
	s := must.Get(Open(root))(t)
	defer s.Close()
	g := s.group(t, "/a")
	// Unlike cgroup files, regular files stay readable while open.
	must.OK(t, os.Rename(string(root)+"/cg/a", string(root)+"/cg/b"))
	var got record.Group
	err := g.Read(&got)
	check.That(t, errors.Is(err, ErrGone) && got.Memory == nil && got.CPU == nil && got.Path == "/a", "%v, %+v", err, got)
	// A new group of the same name is another group.
	must.OK(t, os.CopyFS(string(root)+"/cg/a", os.DirFS(string(root)+"/cg/b")))
	err = g.Read(&got)
	check.That(t, errors.Is(err, ErrGone) && got.Memory == nil && got.CPU == nil, "another took its name: %v, %+v", err, got)
	s.group(t, "/a") // the new one
	g.Close()
	check.Is(t, g.Read(&got), ErrGone)
	var sample Sample
	err = g.Sample(&sample)
	check.That(t, errors.Is(err, ErrGone) && !sample.HaveCPU, "after Close: %v, %+v", err, sample)
}

func TestWithoutDescriptorsFilesAreOpenedForEverySample(t *testing.T) {
	s := machine1().open(t)
	s.most = 2
	g, other := s.group(t, "/a"), s.group(t, "/a")
	var got record.Group
	for range 2 {
		err := errors.Join(g.Read(&got), other.Read(&got))
		check.That(t, err == nil && reflect.DeepEqual(got.Memory, &alike) && *got.CPU == 7000000001 && got.Pids == 12, "%v, %+v", err, got)
	}
	check.Equal(t, "descriptors kept", s.kept, 2)
	g.Close()
	check.Equal(t, "descriptors kept after Close", s.kept, 0)
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
		{"at first it is read", time.Hour, "", "", 40000000},
		{"while nothing moves it is not", time.Hour, stat, anon("1"), 40000000},
		{"when usage has moved it is", time.Hour, usage, "100000001\n", 1},
		{"and is not again", time.Hour, stat, anon("2"), 1},
		{"when CPU time has moved it is", time.Hour, cpu, "7000000002\n", 2},
		{"when it was long ago it is", time.Nanosecond, stat, anon("3"), 3},
		{"without leave it always is", 0, stat, anon("4"), 4},
		{"also when there was leave before", 0, stat, anon("5"), 5},
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

// Go raises the soft limit at program start; otherwise allowance would have to.
func TestSoftLimitEqualsHardLimit(t *testing.T) {
	var l unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	check.That(t, err == nil && l.Cur == l.Max, "%+v, %v", l, err)
	n := allowance()
	check.That(t, n > 0 && uint64(n) < l.Cur, "%d of %d may be kept", n, l.Cur)
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
