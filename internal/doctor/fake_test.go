package doctor

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
)

// fakeKernel answers as told; its zero value allows everything to root.
type fakeKernel struct {
	uid                           int
	bpf, stats, clock, cycles, rt error
	free                          uint64
	freeErr                       error
	wait                          func()
}

func (k fakeKernel) EffectiveUID() int               { return k.uid }
func (k fakeKernel) LoadBPF() error                  { return k.bpf }
func (k fakeKernel) EnableBPFStats() error           { return k.stats }
func (k fakeKernel) OpenPerfClock() error            { return k.clock }
func (k fakeKernel) OpenPerfCycles() error           { return k.cycles }
func (k fakeKernel) SetRealtime() error              { return k.rt }
func (k fakeKernel) FreeDisk(string) (uint64, error) { return k.free, k.freeErr }
func (k fakeKernel) Wait(time.Duration) {
	if k.wait != nil {
		k.wait()
	}
}

// files are what a root is made of; an empty text takes a file away.
type files map[string]string

// healthy is a machine on which everything can be weighed.
var healthy = files{
	"dev/kvm": "x", "dev/vhost-vsock": "x",
	"proc/sys/kernel/osrelease":           "6.12.1",
	"proc/sys/kernel/cap_last_cap":        "40",
	"proc/sys/kernel/bpf_stats_enabled":   "0",
	"proc/sys/kernel/perf_event_paranoid": "1",
	"proc/self/uid_map":                   "         0          0 4294967295\n",
	"proc/self/status":                    "Name:\ttare\nCapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\nCpus_allowed_list:\t0-3\n",
	"proc/self/mountinfo": "10 1 8:1 / / rw - ext4 /dev/sda1 rw\n11 10 0:20 / /sys rw - sysfs sysfs rw\n" +
		"12 11 0:21 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
	"proc/self/ns/mnt": "x", "proc/self/ns/pid": "x", "proc/self/ns/net": "x", "proc/self/ns/ipc": "x",
	"proc/self/ns/uts": "x", "proc/self/ns/cgroup": "x", "proc/self/ns/time": "x",
	"proc/filesystems":                                     "nodev\tproc\nnodev\toverlay\n\text4\n",
	"proc/modules":                                         "kvm 1 0 - Live 0x0\n",
	"proc/pressure/cpu":                                    "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
	"proc/stat":                                            "cpu  1000 0 1000 98000 0 0 0 0 0 0\n",
	"proc/loadavg":                                         "0.10 0.10 0.10 1/100 1000\n",
	"proc/meminfo":                                         "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n",
	"sys/fs/cgroup/cgroup.controllers":                     "cpuset cpu io memory pids\n",
	"sys/devices/system/cpu/online":                        "0-3\n",
	"sys/devices/system/cpu/smt/active":                    "0\n",
	"sys/devices/system/cpu/smt/control":                   "off\n",
	"sys/devices/system/cpu/cpufreq/boost":                 "0\n",
	"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
	"sys/devices/system/clocksource/clocksource0/current_clocksource":   "tsc\n",
	"sys/devices/system/clocksource/clocksource0/available_clocksource": "tsc hpet acpi_pm\n",
}

// with returns the machine with some files changed.
func (f files) with(changed files) files {
	all := maps.Clone(f)
	maps.Copy(all, changed)
	return all
}

// write makes the machine's root.
func (f files) write(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range f {
		if text == "" {
			continue
		}
		path := filepath.Join(root, name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Write(t, path, text)
	}
	return root
}
