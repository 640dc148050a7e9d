package nodestat

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// files are the files of a machine.
type files map[string]string

func (f files) make(t *testing.T, changes ...string) machine.Root {
	t.Helper()
	root := t.TempDir()
	for i := 0; i+1 < len(changes); i += 2 {
		f[changes[i]] = changes[i+1]
	}
	for name, text := range f {
		if text == "-" {
			continue
		}
		must.Write(t, root+name, text)
	}
	return machine.Root(root)
}

//go:embed testdata/meminfo
var info string

//go:embed testdata/zoneinfo
var zones string

// disks lists a disk with a partition and a volume, an NVMe disk with its hidden path, and
// disks in memory or in a file.
//
//go:embed testdata/diskstats
var diskstats string

func node1() files {
	return files{
		"/proc/meminfo":            info,
		"/proc/zoneinfo":           zones,
		"/proc/stat":               "cpu  100 20 30 4000 50 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 1 2 3\n",
		"/proc/loadavg":            "1.25 0.35 0.31 1/87 10696\n",
		"/proc/diskstats":          diskstats,
		"/proc/sys/kernel/pid_max": "32768\n", "/proc/sys/kernel/threads-max": "190000\n",
		"/proc/pressure/cpu":          "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n",
		"/proc/pressure/memory":       "some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n",
		"/proc/pressure/io":           "some avg10=0.00 avg60=0.00 avg300=0.00 total=13\n",
		"/sys/block/loop0/dev":        "7:0\n",
		"/sys/block/sda/dev":          "8:0\n",
		"/sys/block/sdb/dev":          "8:16\n",
		"/sys/block/sdc/dev":          "8:32\n",
		"/sys/block/dm-0/dev":         "253:0\n",
		"/sys/block/dm-0/slaves/sda1": "",
		"/sys/block/zram0/dev":        "254:0\n",
		"/sys/block/nvme0n1/dev":      "259:0\n",
		"/sys/block/nvme0n1/hidden":   "0\n",
		"/sys/block/nvme0c0n1/hidden": "1\n",
		"/sys/block/cciss!c0d0/dev":   "104:0\n",
	}
}

func TestReadHost(t *testing.T) {
	listed := 123 * int64(os.Getpagesize())
	want := func(change func(*record.Host)) record.Host {
		h := record.Host{
			Total: 1000000 << 10, Free: 400000<<10 + listed, Listed: listed, Available: 700000 << 10,
			Buffers: 1000 << 10, Cached: 300000 << 10, SwapCached: 10 << 10, Shmem: 50000 << 10, Anon: 100000 << 10,
			Slab: 40000 << 10, Stacks: 2000 << 10, PageTables: 3100 << 10, Percpu: 500 << 10, Huge: 4 << 20, HugeFree: 10 << 20, SwapUsed: 500 << 10,
			Busy: 1630000000, Steal: 80000000, IOWait: 500000000, Load1: 1.25, Tasks: 87, MaxTasks: 32768,
			HavePSI: true, PSICPU: 11000, PSIMemory: 12000, PSIIO: 13000,
			ReadBytes: (100 + 1 + 3) * 512, WriteBytes: (200 + 2 + 4) * 512,
		}
		if change != nil {
			change(&h)
		}
		return h
	}
	for _, c := range []struct {
		claim   string
		changes []string
		want    record.Host
	}{
		{"all values", nil, want(nil)},
		{"without PSI", []string{"/proc/pressure/cpu", "-", "/proc/pressure/memory", "-", "/proc/pressure/io", "-"}, want(func(h *record.Host) {
			h.HavePSI, h.PSICPU, h.PSIMemory, h.PSIIO = false, 0, 0, 0
		})},
		{"older kernel", []string{"/proc/meminfo", strings.NewReplacer("SecPageTables:      100 kB\n", "", "Percpu:             500 kB\n", "").Replace(info)},
			want(func(h *record.Host) { h.PageTables, h.Percpu = 3000<<10, 0 })},
		{"several sizes of huge pages", []string{
			"/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "7\n", "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "5\n",
			"/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "4\n", "/sys/kernel/mm/hugepages/hugepages-1048576kB/free_hugepages", "1\n"},
			want(func(h *record.Host) { h.Huge, h.HugeFree = 3<<30+4<<20, 1<<30+10<<20 })},
		{"no disks", []string{"/proc/diskstats", ""}, want(func(h *record.Host) { h.ReadBytes, h.WriteBytes = 0, 0 })},
	} {
		check.Equal(t, c.claim, must.Get(ReadHost(node1().make(t, c.changes...)))(t), c.want)
	}
}

func TestReadHostReportsMalformedFiles(t *testing.T) {
	for _, c := range []struct{ claim, file, text string }{
		{"missing line", "/proc/meminfo", strings.Replace(info, "Slab:", "Slob:", 1)},
		{"other unit", "/proc/meminfo", strings.Replace(info, "400000 kB", "400000 MB", 1)},
		{"negative amount", "/proc/meminfo", strings.Replace(info, "400000 kB", "-4 kB", 1)},
		{"impossible amount", "/proc/meminfo", strings.Replace(info, "400000 kB", "9223372036854775807 kB", 1)},
		{"nothing", "/proc/meminfo", ""},
		{"truncated", "/proc/meminfo", strings.Repeat(info, 1000)},
		{"malformed count", "/proc/zoneinfo", strings.Replace(zones, "count:    20", "count:    x", 1)},
		{"impossible count", "/proc/zoneinfo", strings.Replace(zones, "count:    20", "count: 99999999999", 1)},
		{"nothing", "/proc/zoneinfo", "\n"},
		{"missing file", "/proc/zoneinfo", "-"},
		{"overflowing counter", "/proc/stat", "cpu  922337203686 20 30 4000 50 6 7 8 9 10\n"},
		{"word", "/proc/loadavg", "high\n"},
		{"overflowing total", "/proc/pressure/io", "some total=18446744073709551615\n"},
		{"missing file", "/proc/diskstats", "-"},
	} {
		_, err := ReadHost(node1().make(t, c.file, c.text))
		check.Error(t, err, filepath.Dir(c.file))
	}
}

func TestFast(t *testing.T) {
	listed := 123 * int64(os.Getpagesize())
	all := Tick{Used: (1000000-400000-301000+50000)<<10 - listed - 10<<20, Available: 700000 << 10, Cache: 251000 << 10,
		Busy: 1630000000, Read: 104 * 512, Write: 206 * 512, Load1000: 1250}
	with := func(change func(*Tick)) Tick {
		x := all
		change(&x)
		return x
	}
	for _, c := range []struct {
		claim   string
		changes []string
		want    Tick
		fails   bool
	}{
		{"all values", nil, all, false},
		{"no disks and load", []string{"/proc/diskstats", "-", "/proc/loadavg", "-"},
			with(func(x *Tick) { x.Read, x.Write, x.Load1000 = -1, -1, -1 }), false},
		{"malformed load", []string{"/proc/loadavg", "1.2.3\n"}, with(func(x *Tick) { x.Load1000 = -1 }), true},
		{"load with one decimal", []string{"/proc/loadavg", "1.5 1 1\n"}, with(func(x *Tick) { x.Load1000 = -1 }), true},
		{"broken CPUs", []string{"/proc/stat", "cpu  1 2 3\n"}, with(func(x *Tick) { x.Busy = -1 }), true},
		{"overflowing counter", []string{"/proc/stat", "cpu  922337203686 20 30 4000 50 6 7 8 9 10\n"}, with(func(x *Tick) { x.Busy = -1 }), true},
		{"malformed lists", []string{"/proc/zoneinfo", "x\n"}, with(func(x *Tick) { x.Used = -1 }), true},
		{"malformed memory", []string{"/proc/meminfo", "x\n"}, with(func(x *Tick) { x.Used, x.Available, x.Cache = -1, -1, -1 }), true},
	} {
		f := must.Get(OpenFast(node1().make(t, c.changes...)))(t)
		var got Tick
		for range 2 {
			err := f.Read(&got)
			check.That(t, got == c.want && (err != nil) == c.fails, "%s: %v\n got %+v\nwant %+v", c.claim, err, got, c.want)
		}
		f.Close()
	}
	f, err := OpenFast(node1().make(t, "/proc/meminfo", "-"))
	check.That(t, errors.Is(err, fs.ErrNotExist), "without memory: %v, %v", f, err)
}

func TestFastFindsNewDisks(t *testing.T) {
	root := node1().make(t)
	f := must.Get(OpenFast(root))(t)
	defer f.Close()
	// The name sdaa begins with the name of another disk, but it is not a partition of that
	// disk.
	more := diskstats + " 65 0 sdaa 1 0 10 0 1 0 20 0 0 0 0\n 66 0 odd 1 0 10 0 1 0 20 0 0 0 0\n"
	must.OK(t, errors.Join(os.MkdirAll(string(root)+"/sys/block/sdaa", 0o755), os.WriteFile(string(root)+"/proc/diskstats", []byte(more), 0)))
	var got Tick
	err := f.Read(&got)
	check.That(t, err == nil && got.Read == 114*512 && got.Write == 226*512, "%v, %+v", err, got)
}

func TestSlowListsAreReadOnceASecond(t *testing.T) {
	root := node1().make(t)
	f := must.Get(OpenFast(root))(t)
	defer f.Close()
	var first, second, third Tick
	must.OK(t, f.Read(&first))
	f.lists.slow = true
	must.OK(t, os.WriteFile(string(root)+"/proc/zoneinfo", []byte(strings.Replace(zones, "count:    20", "count:    21", 1)), 0))
	err := f.Read(&second)
	check.That(t, err == nil && second == first, "immediately: %v, %+v", err, second)
	f.lists.at -= 2e9
	err = f.Read(&third)
	check.That(t, err == nil && third.Used == first.Used-int64(os.Getpagesize()), "a second later: %v, %+v", err, third)
}

func TestHostAndFastAgreeOnThisMachine(t *testing.T) {
	Refresh()
	f := must.Get(OpenFast(""))(t)
	defer f.Close()
	var x Tick
	h, err := ReadHost("")
	must.OK(t, errors.Join(err, f.Read(&x)))
	check.That(t, h.Used() > 0 && h.Used() < h.Total && h.Free <= h.Total && h.Busy > 0 && h.Anon > 0 && h.Kernel() > 0, "%+v", h)
	// On a busy machine a long time may pass between the two readings.
	for _, c := range []struct {
		name       string
		host, tick int64
		most       int64
	}{
		{name: "used", host: h.Used(), tick: x.Used, most: h.Total / 4},
		{name: "available", host: h.Available, tick: x.Available, most: h.Total / 4},
		{name: "cache", host: h.Cache(), tick: x.Cache, most: h.Total / 4},
		{name: "busy", host: h.Busy, tick: x.Busy, most: 600e9},
		{name: "read", host: h.ReadBytes, tick: x.Read, most: 64 << 30},
		{name: "written", host: h.WriteBytes, tick: x.Write, most: 64 << 30},
		{name: "load", host: int64(h.Load1 * 1000), tick: x.Load1000, most: 100_000},
	} {
		d := c.tick - c.host
		check.That(t, max(d, -d) <= c.most && c.tick >= 0, "%s: tick %d, host %d", c.name, c.host, c.tick)
	}
	check.Equal(t, "allocations per tick", testing.AllocsPerRun(100, func() { _ = f.Read(&x) }), 0)
}

func FuzzZones(f *testing.F) {
	f.Add([]byte(zones))
	f.Fuzz(func(t *testing.T, b []byte) {
		n, err := listed(b)
		check.That(t, err != nil || n >= 0, "%q: %d", b, n)
	})
}
