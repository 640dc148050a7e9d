package doctor

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAHealthyMachineIsOK(t *testing.T) {
	checks := facilities(machine.Root(healthy.write(t)), fakeKernel{free: 50 * gib}, nil)
	for _, c := range checks {
		if c.Status != OK || c.Fix != "" {
			t.Errorf("%s %s: %s: %s → %s", c.Area, c.Name, c.Status, c.Why, c.Fix)
		}
	}
	if len(checks) < 25 {
		t.Errorf("only %d checks", len(checks))
	}
}

func TestFacilities(t *testing.T) {
	const v1 = "10 1 8:1 / / rw - ext4 a rw\n11 10 0:20 / /sys rw - sysfs s rw\n" +
		"12 11 0:30 / /sys/fs/cgroup/all rw - cgroup c rw,cpu,memory,pids\n"
	const v2 = "14 11 0:31 / /sys/fs/cgroup/unified rw - cgroup2 c rw\n"
	caps := func(effective, bounding string) files {
		return files{"proc/self/status": "CapEff:\t" + effective + "\nCapBnd:\t" + bounding + "\nCpus_allowed_list:\t0-3\n"}
	}
	config := func(lines string) files { return files{"boot/config-6.12.1": lines} }
	clock := "sys/devices/system/clocksource/clocksource0/"

	for _, c := range []struct {
		claim   string
		changed files
		kernel  fakeKernel
		name    string
		status  Status
		why     string // a part of it
		fix     string // all of it
	}{
		{"a user is told of sudo", nil, fakeKernel{uid: 1000}, "root", Missing, "need root", "sudo tare doctor"},
		{"root in a user namespace is half a root", files{"proc/self/uid_map": "0 100000 65536\n"}, fakeKernel{},
			"root", Limited, "user namespace", ""},

		{"a capability outside the bounding set is another's to grant", caps("000001fffeffffff", "000001fffeffffff"), fakeKernel{},
			"CAP_SYS_RESOURCE", Limited, "--cap-add=SYS_RESOURCE", ""},
		{"a capability that was dropped can come back", caps("000001fffeffffff", "000001ffffffffff"), fakeKernel{},
			"CAP_SYS_RESOURCE", Limited, "dropped", ""},
		{"a user gets capabilities by sudo", caps("0", "000001ffffffffff"), fakeKernel{uid: 1000},
			"CAP_SYS_ADMIN", Missing, "no such right", "sudo tare doctor"},
		{"CAP_SYS_ADMIN stands in for CAP_BPF", caps("0000000000200000", "000001ffffffffff"), fakeKernel{},
			"CAP_BPF", OK, "CAP_SYS_ADMIN includes it", ""},
		{"capabilities that can't be read are not taken for granted", files{"proc/self/status": ""}, fakeKernel{},
			"capabilities", Limited, "could not be read", ""},

		{"real time is refused for want of a budget", nil, fakeKernel{rt: unix.EPERM},
			"real-time priority", Limited, "EPERM", "sysctl -w kernel.sched_rt_runtime_us=-1"},
		{"real time is refused for want of a capability", caps("0", "000001ffffffffff"), fakeKernel{uid: 1000, rt: unix.EPERM},
			"real-time priority", Limited, "EPERM", "sudo tare doctor"},

		{"hybrid cgroups are ok but for crun", files{"proc/self/mountinfo": v1 + v2, "sys/fs/cgroup/unified/cgroup.controllers": "hugetlb\n"}, fakeKernel{},
			"cgroups", OK, "crun refuses", ""},
		{"version 1 alone is ok", files{"proc/self/mountinfo": v1}, fakeKernel{}, "cgroups", OK, "cpu, memory and pids", ""},
		{"no cgroups can be mounted", files{"proc/self/mountinfo": "10 1 8:1 / / rw - ext4 a rw\n"}, fakeKernel{},
			"cgroups", Missing, "nothing is mounted", "mount -t cgroup2 cgroup2 /sys/fs/cgroup"},
		{"a lacking controller is named", files{"sys/fs/cgroup/cgroup.controllers": "cpu io\n"}, fakeKernel{},
			"cgroups", Limited, "memory, pids", ""},

		{"no time namespace is a limit", files{"proc/self/ns/time": ""}, fakeKernel{}, "namespaces", Limited, "time", ""},
		{"no pid namespace is a lack", files{"proc/self/ns/time": "", "proc/self/ns/pid": ""}, fakeKernel{}, "namespaces", Missing, "pid", ""},

		{"without KVM a VM is emulated", files{"dev/kvm": ""}, fakeKernel{}, "KVM", Limited, "are the emulator's", ""},
		{"vsock may be a module", files{"dev/vhost-vsock": ""}, fakeKernel{}, "vhost-vsock", Limited, "cannot reach the agent", "modprobe vhost_vsock"},
		{"overlayfs may be a module", files{"proc/filesystems": "nodev\tproc\n"}, fakeKernel{},
			"overlayfs", Missing, "copy image layers", "modprobe overlay"},
		{"without modules nothing can be loaded", files{"proc/filesystems": "nodev\tproc\n", "proc/modules": ""}, fakeKernel{},
			"overlayfs", Missing, "no modules", ""},
		{"what was not built can't be loaded", files{"proc/filesystems": "nodev\tproc\n"}.with(config("CONFIG_MODULES=y\n# CONFIG_OVERLAY_FS is not set\n")), fakeKernel{},
			"overlayfs", Missing, "built without CONFIG_OVERLAY_FS", ""},
		{"a type that only ends alike is another", files{"proc/filesystems": "nodev\tmyoverlay\n"}, fakeKernel{},
			"overlayfs", Missing, "copy image layers", "modprobe overlay"},

		{"PSI can be switched on at start", files{"proc/pressure/cpu": "", "etc/default/grub": "GRUB_CMDLINE_LINUX=\"\"\n"}, fakeKernel{},
			"pressure (PSI)", Missing, "psi=1", `sed -i 's/^GRUB_CMDLINE_LINUX="/&psi=1 /' /etc/default/grub && update-grub && reboot`},
		{"PSI that was not built stays away", files{"proc/pressure/cpu": "", "etc/default/grub": "x"}.with(config("CONFIG_MODULES=y\n")), fakeKernel{},
			"pressure (PSI)", Missing, "built without CONFIG_PSI", ""},

		{"BPF that is refused says with what", nil, fakeKernel{bpf: unix.EPERM}, "BPF", Missing, "EPERM", ""},
		{"a user's BPF may come by sudo", nil, fakeKernel{uid: 7, bpf: unix.EACCES}, "BPF", Missing, "EACCES", "sudo tare doctor"},
		{"a kernel without BPF", nil, fakeKernel{bpf: unix.ENOSYS}, "BPF", Missing, "CONFIG_BPF_SYSCALL", ""},
		{"another error is passed on", nil, fakeKernel{bpf: unix.EINVAL}, "BPF", Missing, "EINVAL", ""},

		{"statistics that are always on cost everyone", files{"proc/sys/kernel/bpf_stats_enabled": "1\n"}, fakeKernel{},
			"BPF statistics", Limited, "20 ns", "sysctl -w kernel.bpf_stats_enabled=0"},
		{"an older kernel has the sysctl only", nil, fakeKernel{stats: unix.EINVAL},
			"BPF statistics", Limited, "EINVAL", "sysctl -w kernel.bpf_stats_enabled=1"},
		{"the sysctl is enough on an older kernel", files{"proc/sys/kernel/bpf_stats_enabled": "1\n"}, fakeKernel{stats: unix.EINVAL},
			"BPF statistics", OK, "for everyone", ""},
		{"a still older kernel has none", files{"proc/sys/kernel/bpf_stats_enabled": ""}, fakeKernel{stats: unix.EINVAL},
			"BPF statistics", Missing, "older than 5.1", ""},
		{"statistics may be refused", nil, fakeKernel{stats: unix.EPERM}, "BPF statistics", Missing, "EPERM", ""},

		{"a virtual machine has software counters only", nil, fakeKernel{cycles: unix.ENOENT}, "perf events", Limited, "ENOENT", ""},
		{"perf may be refused by a sysctl", nil, fakeKernel{clock: unix.EACCES},
			"perf events", Missing, "EACCES", "sysctl -w kernel.perf_event_paranoid=1"},
		{"a kernel without perf", nil, fakeKernel{clock: unix.ENOSYS}, "perf events", Missing, "CONFIG_PERF_EVENTS", ""},

		{"a governor that saves power", files{"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n"}, fakeKernel{},
			"CPU governor", Limited, "follows the load", "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"},
		{"one core that differs is seen", files{"sys/devices/system/cpu/cpu7/cpufreq/scaling_governor": "powersave\n"}, fakeKernel{},
			"CPU governor", Limited, "follows the load", "echo performance | tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"},
		{"hyperthreads can be switched off", files{"sys/devices/system/cpu/smt/active": "1\n", "sys/devices/system/cpu/smt/control": "on\n"}, fakeKernel{},
			"SMT", Limited, "share a core", "echo off > /sys/devices/system/cpu/smt/control"},
		{"boost can be switched off", files{"sys/devices/system/cpu/cpufreq/boost": "1\n"}, fakeKernel{},
			"turbo", Limited, "heat", "echo 0 > /sys/devices/system/cpu/cpufreq/boost"},
		{"Intel's switch is the other way round", files{"sys/devices/system/cpu/intel_pstate/no_turbo": "0\n"}, fakeKernel{},
			"turbo", Limited, "heat", "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"},

		{"a slow clock can be exchanged", files{clock + "current_clocksource": "hpet\n"}, fakeKernel{},
			"clock source", Limited, "microsecond", "echo tsc > /" + clock + "current_clocksource"},
		{"a slow clock may be the best there is", files{clock + "current_clocksource": "acpi_pm\n", clock + "available_clocksource": "acpi_pm\n"}, fakeKernel{},
			"clock source", Limited, "no better one", ""},
		{"a paravirtual clock is fine", files{clock + "current_clocksource": "kvm-clock\n"}, fakeKernel{}, "clock source", OK, "nanoseconds", ""},

		{"time was stolen since the start", files{"proc/stat": "cpu  1000 0 1000 95000 0 0 0 3000 0 0\n"}, fakeKernel{},
			"stolen CPU time", Limited, "same hardware", ""},
		{"CPU times that can't be read are no zero", files{"proc/stat": "cpu what\n"}, fakeKernel{},
			"stolen CPU time", Limited, "could not be read", ""},

		{"a busy machine should be left in peace", files{"proc/loadavg": "3.00 1.00 1.00 1/100 1000\n"}, fakeKernel{},
			"load", Limited, "wait until it ends", ""},
		{"little memory is a limit", files{"proc/meminfo": "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n"}, fakeKernel{},
			"memory", Limited, "available of 1.0 GiB", ""},
		{"swap hides memory", files{"proc/meminfo": "MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\nSwapTotal: 1048576 kB\nSwapFree: 524288 kB\n"}, fakeKernel{},
			"swap", Limited, "512 MiB of it in use", "swapoff -a"},
		{"a full disk is a lack", nil, fakeKernel{free: mib}, "disk for run", Missing, "not enough", ""},
		{"a disk that can't be asked is not taken for empty", nil, fakeKernel{freeErr: errors.New("statfs /x: EIO")}, "disk for cache", Limited, "EIO", ""},
	} {
		if c.kernel.free == 0 {
			c.kernel.free = 50 * gib
		}
		checks := facilities(machine.Root(healthy.with(c.changed).write(t)), c.kernel,
			[]Folder{{"run", "/run/tare"}, {"cache", "/var/cache/tare"}})
		got, ok := find(checks, c.name)
		if !ok {
			t.Errorf("%s: there is no check %q", c.claim, c.name)
			continue
		}
		if got.Status != c.status || !strings.Contains(got.Why, c.why) || got.Fix != c.fix {
			t.Errorf("%s: %s: %s\n  → %q\n  want %s, %q in it, → %q", c.claim, got.Status, got.Why, got.Fix, c.status, c.why, c.fix)
		}
	}
}

func find(checks []Check, name string) (Check, bool) {
	for _, c := range checks {
		if c.Name == name {
			return c, true
		}
	}
	return Check{}, false
}

func TestWhatAMachineDoesNotHaveIsNotChecked(t *testing.T) {
	for _, c := range []struct {
		claim   string
		changed files
		name    string
	}{
		{"no hyperthreads", files{"sys/devices/system/cpu/smt/control": "notsupported\n"}, "SMT"},
		{"no switch for turbo", files{"sys/devices/system/cpu/cpufreq/boost": ""}, "turbo"},
		{"a capability that the kernel is too old for", files{"proc/sys/kernel/cap_last_cap": "37\n"}, "CAP_BPF"},
	} {
		checks := facilities(machine.Root(healthy.with(c.changed).write(t)), fakeKernel{free: gib}, nil)
		if got, ok := find(checks, c.name); ok {
			t.Errorf("%s: %+v", c.claim, got)
		}
	}
}

func TestStealInTheWindowIsSeen(t *testing.T) {
	root := healthy.write(t)
	kernel := fakeKernel{free: gib, wait: func() {
		stat := "cpu  1010 0 1000 98020 0 0 0 10 0 0\n"
		if err := os.WriteFile(filepath.Join(root, "proc/stat"), []byte(stat), 0o644); err != nil {
			t.Error(err)
		}
	}}
	c, _ := find(facilities(machine.Root(root), kernel, nil), "stolen CPU time")
	if c.Status != Limited || !strings.Contains(c.Why, "25.0 % in 200ms, with the CPUs 25 % busy") {
		t.Errorf("got %+v", c)
	}
}

func TestConfigIsReadFromTheKernelItself(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("CONFIG_PSI=y\n# CONFIG_OVERLAY_FS is not set\n"))
	z.Close()
	root := healthy.with(files{"proc/config.gz": packed.String(), "proc/filesystems": "nodev\tproc\n"}).write(t)
	c, _ := find(facilities(machine.Root(root), fakeKernel{}, nil), "overlayfs")
	if !strings.Contains(c.Why, "built without CONFIG_OVERLAY_FS") {
		t.Errorf("got %+v", c)
	}
}

func TestThisMachine(t *testing.T) {
	before, err := unix.SchedGetAttr(0, 0)
	must.OK(t, err)
	names := map[string]bool{}
	for _, c := range Facilities(Folder{"run", os.TempDir()}) {
		if c.Area == "" || c.Name == "" || (c.Status != OK && c.Why == "") {
			t.Errorf("says too little: %+v", c)
		}
		if names[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		names[c.Name] = true
	}
	after, err := unix.SchedGetAttr(0, 0)
	must.OK(t, err)
	if before.Policy != after.Policy || before.Priority != after.Priority {
		t.Errorf("scheduling was %+v and is %+v", before, after)
	}
}

func TestFreeDiskOfAFolderThatIsNotMadeYet(t *testing.T) {
	dir := t.TempDir()
	free, err := running{}.FreeDisk(filepath.Join(dir, "not", "yet"))
	if err != nil || free == 0 {
		t.Errorf("got %d, %v", free, err)
	}
}
