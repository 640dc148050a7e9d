package cgroupstat

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
)

// tree1, tree2 and the others are files of a machine: what is mounted, and the
// groups of its hierarchies.
type files map[string]string

const mounts = "10 1 8:1 / / rw - ext4 /dev/sda1 rw\n"

// stat1 is the memory.stat of a kernel 6.18 with version 1, cut to what is near.
const stat1 = `cache 1
rss 2
shmem 3
mapped_file 4
swap 5
inactive_file 6
hierarchical_memory_limit 9223372036854771712
total_cache 50000000
total_rss 40000000
total_rss_huge 2097152
total_shmem 20000000
total_mapped_file 10000000
total_dirty 237568
total_swap 8192
total_swapcached 4096
total_inactive_anon 22749184
total_inactive_file 7000000
total_active_file 1114738688
total_unevictable 22044672
`

// stat2 is that of a kernel 6.18 with version 2.
const stat2 = `anon 40000000
file 50000000
kernel 9000000
kernel_stack 100000
pagetables 200000
sec_pagetables 50000
percpu 30000
sock 4096
vmalloc 12288
shmem 20000000
file_mapped 10000000
file_dirty 0
swapcached 4096
inactive_anon 1
inactive_file 7000000
slab_reclaimable 1
slab_unreclaimable 2
slab 5000000
pgfault 12
`

func machine1() files {
	return files{
		"/proc/self/mountinfo": mounts +
			"20 10 0:20 / /cg/memory rw - cgroup cgroup rw,memory\n" +
			"21 10 0:21 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"22 10 0:22 / /cg/blkio rw - cgroup cgroup rw,blkio\n" +
			"23 10 0:23 / /cg/pids rw - cgroup cgroup rw,pids\n" +
			"24 10 0:24 / /cg/systemd rw - cgroup cgroup rw,name=systemd\n",
		"/cg/systemd/a/tasks":                                   "",
		"/cg/memory/a/memory.usage_in_bytes":                    "100000000\n",
		"/cg/memory/a/memory.stat":                              stat1,
		"/cg/memory/a/memory.max_usage_in_bytes":                "120000000\n",
		"/cg/memory/a/memory.limit_in_bytes":                    "9223372036854771712\n",
		"/cg/memory/a/memory.kmem.usage_in_bytes":               "9000000\n",
		"/cg/memory/a/memory.kmem.tcp.usage_in_bytes":           "4096\n",
		"/cg/cpu,cpuacct/a/cpuacct.usage":                       "7000000001\n",
		"/cg/cpu,cpuacct/a/cpu.stat":                            "nr_periods 3\nnr_throttled 1\nthrottled_time 5000\n",
		"/cg/blkio/a/blkio.throttle.io_service_bytes_recursive": "8:0 Read 4096\n8:0 Write 8192\n8:0 Sync 1\n8:0 Total 12288\n253:0 Read 4096\n253:0 Write 8192\nTotal 24576\n",
		"/cg/pids/a/pids.current":                               "12\n",
		"/sys/block/sda/dev":                                    "8:0\n",
		"/sys/block/dm-0/dev":                                   "253:0\n",
		"/sys/block/dm-0/slaves/sda":                            "",
	}
}

func machine2() files {
	return files{
		"/proc/self/mountinfo":        mounts + "20 10 0:20 / /cg rw - cgroup2 cgroup2 rw\n",
		"/cg/cgroup.controllers":      "cpu io memory pids\n",
		"/cg/a/memory.current":        "100000000\n",
		"/cg/a/memory.stat":           stat2,
		"/cg/a/memory.peak":           "120000000\n",
		"/cg/a/memory.max":            "max\n",
		"/cg/a/memory.swap.current":   "8192\n",
		"/cg/a/cpu.stat":              "usage_usec 7000000\nuser_usec 1\nsystem_usec 2\nnr_periods 3\nnr_throttled 1\nthrottled_usec 5\n",
		"/cg/a/io.stat":               "8:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n253:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n259:0 \n",
		"/cg/a/pids.current":          "12\n",
		"/cg/a/b/memory.swap.current": "1\n", // its parent hands down nothing else
		"/cg/a/b/cpu.stat":            "usage_usec 9\nuser_usec 1\nsystem_usec 2\n",
		"/sys/block/sda/dev":          "8:0\n",
		"/sys/block/dm-0/dev":         "253:0\n",
		"/sys/block/dm-0/slaves/sda":  "",
	}
}

// with returns the files with others in place of or beside them; those that are
// "-" are left out.
func (f files) with(others files) files {
	out := maps.Clone(f)
	for name, text := range others {
		if text == "-" {
			delete(out, name)
		} else {
			out[name] = text
		}
	}
	return out
}

func (f files) make(t *testing.T) machine.Root {
	t.Helper()
	root := t.TempDir()
	for name, text := range f {
		must.OK(t, os.MkdirAll(filepath.Dir(root+name), 0o755))
		must.OK(t, os.WriteFile(root+name, []byte(text), 0o644))
	}
	return machine.Root(root)
}

func (f files) open(t *testing.T) *System {
	t.Helper()
	s, err := Open(f.make(t))
	must.OK(t, err)
	t.Cleanup(s.Close)
	return s
}

func (s *System) group(t *testing.T, path string) *Group {
	t.Helper()
	g, err := s.Group(path)
	must.OK(t, err)
	t.Cleanup(g.Close)
	return g
}
