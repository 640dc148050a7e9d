package machine

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestParseLoad(t *testing.T) {
	golden.Cases(t, "testdata/load.txt", func(_ *testing.T, input string) string {
		got, err := ParseLoad([]byte(input))
		return orRefused(got, err)
	})
}

// orRefused formats a value, or returns "refused".
func orRefused(value any, err error) string {
	if err != nil {
		return "refused"
	}
	return fmt.Sprint(value)
}

func TestParseMemory(t *testing.T) {
	golden.Cases(t, "testdata/meminfo.txt", func(_ *testing.T, input string) string {
		var m Memory
		err := m.Parse([]byte(input))
		return orRefused(m.Total, err)
	})
}

func TestParseCPUList(t *testing.T) {
	golden.Cases(t, "testdata/cpulist.txt", func(_ *testing.T, input string) string {
		got, err := parseCPUList(input)
		return orRefused(len(got), err)
	})
}

func TestPrettyName(t *testing.T) {
	golden.Cases(t, "testdata/osrelease.txt", func(_ *testing.T, input string) string { return prettyName(input) })
}

func TestParseCPUInfo(t *testing.T) {
	golden.Cases(t, "testdata/cpuinfo.txt", func(_ *testing.T, input string) string {
		return fmt.Sprintf("%+v", parseCPUInfo(strings.NewReader(input)))
	})
	many := parseCPUInfo(strings.NewReader(strings.Repeat("model name: x\nmodel name: y\n", 100)))
	check.Equal(t, "models", many.models, []string{"x", "y"})
}

func TestCapabilities(t *testing.T) {
	c := must.Get(Root("testdata/v1").Capabilities())(t)
	has, known := c.Has("CAP_KILL")
	check.That(t, has && known, "CAP_KILL is in the mask, but not found")
	has, known = c.Has("CAP_BPF")
	check.That(t, !has && !known, "CAP_BPF is known on a kernel with 37 as the last capability")
	check.That(t, !c.Grantable("CAP_SYS_ADMIN"), "CAP_SYS_ADMIN is outside the bounding set, but grantable")
	_, known = c.Has("CAP_LUNCH")
	check.That(t, !known, "an unknown capability is known")
	bad := tree(t, map[string]string{"proc/self/status": "Name:\tx\nCapEff:\tzz\nCapBnd:\t0\n"})
	c, err := bad.Capabilities()
	check.That(t, err != nil, "malformed mask: %+v", c)
}

// FuzzParsers checks that no parser panics or returns implausible values.
func FuzzParsers(f *testing.F) {
	f.Add("0.01 0.35 0.31 1/87 10696")
	f.Add("MemTotal:  16 kB\nSwapTotal: 3 kB\n")
	f.Add("0-3,8")
	f.Add("PRETTY_NAME=\"a\\\"\"\n")
	f.Add("model name\t: A\nflags\t: hypervisor\n")
	f.Add("CapEff:\t000001ffffffffff\nCapBnd:\t0\n")
	f.Add(base + "13 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
	f.Fuzz(func(t *testing.T, s string) {
		if load, err := ParseLoad([]byte(s)); err == nil && load < 0 {
			t.Errorf("ParseLoad(%q) = %v", s, load)
		}
		var m Memory
		err := m.Parse([]byte(s))
		used, free := m.Huge()
		check.That(t, err != nil || min(m.Total-1, m.Available, m.SwapTotal, m.SwapFree, used, free) >= 0, "Parse(%q) = %+v", s, m)
		cpus, err := parseCPUList(s)
		check.That(t, err != nil || len(cpus) != 0 && len(cpus) <= maxCPUs, "parseCPUList(%q) has %d CPUs", s, len(cpus))
		info := parseCPUInfo(strings.NewReader(s))
		check.That(t, len(info.models) <= maxModels, "parseCPUInfo(%q) = %+v", s, info)
		prettyName(s)
		statusMask(s, "CapEff")
		_, _ = readCgroups(strings.NewReader(s), "testdata/none")
	})
}

func TestCapture(t *testing.T) {
	for _, c := range []struct {
		claim, root, dir string
		want             record.Environment
	}{
		{"virtual machine with hybrid cgroups", "hybrid", "/srv/run", record.Environment{
			Kernel: "6.18.44-fc-v657", KernelBuild: "#1 SMP PREEMPT_DYNAMIC @0",
			OS: "Debian GNU/Linux 12 (bookworm)", CPUModel: "AMD EPYC", CPUs: 2,
			Memory: 24684092 << 10, Virtual: "kvm", Cgroup: "hybrid",
			Controllers: []string{"blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "hugetlb", "memory", "pids"},
			Mitigations: map[string]string{
				"meltdown":   "Not affected",
				"spectre_v1": "Mitigation: usercopy/swapgs barriers and __user pointer sanitization",
			},
			MissingCaps: []string{"CAP_SYS_RESOURCE"}, RootFS: "ext4", ClockSource: "tsc", LoadStart: 0.01,
		}},
		{"container on a kernel without CAP_BPF", "v1", "/run data/7", record.Environment{
			Kernel: "4.14.355-275.572.amzn2.x86_64", KernelBuild: "#1 SMP Fri Nov 8 18:46:45 UTC 2024",
			OS: "Amazon Linux 2", CPUModel: "Intel(R) Xeon(R) Platinum 8175M CPU @ 2.50GHz", CPUs: 2,
			Memory: 16000000 << 10, Swap: 2097148 << 10, Virtual: "kvm (Amazon EC2 m5.xlarge)", Cgroup: "v1",
			Controllers: []string{"cpu", "cpuacct", "memory", "pids"},
			MissingCaps: []string{"CAP_SYS_ADMIN", "CAP_SYS_RESOURCE", "CAP_SYS_NICE", "CAP_NET_ADMIN", "CAP_SYS_PTRACE"},
			RootFS:      "xfs", ClockSource: "kvm-clock", LoadStart: 3.2,
		}},
		{"bare-metal Arm machine with two kinds of core", "v2", "/tmp/x", record.Environment{
			Kernel: "6.1.0-28-arm64", KernelBuild: "#1 SMP Debian 6.1.119-1 (2024-11-22)",
			OS: `Debian "12"`, CPUModel: "implementer 0x41 part 0xd0c, implementer 0x41 part 0xd05", CPUs: 4,
			Governor: "performance, schedutil", Memory: 8000000 << 10, Cgroup: "v2",
			Controllers: []string{"cpu", "cpuset", "hugetlb", "io", "memory", "misc", "pids", "rdma"},
			RootFS:      "tmpfs", ClockSource: "arch_sys_counter",
		}},
		{"unreadable values are empty", "nothing", "/", record.Environment{}},
	} {
		got := Root(filepath.Join("testdata", c.root)).Capture(c.dir)
		check.That(t, got.Arch != "", "%s: no architecture", c.claim)
		got.Arch = ""
		check.Equal(t, c.claim, got, c.want)
	}
}

func TestCaptureOmitsTheHostName(t *testing.T) {
	for _, root := range []string{"hybrid", "v1", "v2"} {
		out := must.JSON(t, Root(filepath.Join("testdata", root)).Capture("/"))
		check.That(t, !strings.Contains(string(out), "carthage"), "%s: %s contains the host name", root, out)
	}
}

func TestCaptureOfThisMachine(t *testing.T) {
	env := Root("").Capture(t.TempDir())
	check.That(t, env.Kernel != "" && env.Arch != "" && env.Memory != 0 && env.RootFS != "", "incomplete environment: %+v", env)
	check.Equal(t, "CPUs", env.CPUs, runtime.NumCPU())
	check.That(t, env.Cgroup != "", "no cgroup mode")
}

func TestVirtual(t *testing.T) {
	x86 := cpuInfo{x86: true}
	guest := cpuInfo{x86: true, hypervisor: true}
	for _, c := range []struct {
		claim string
		cpu   cpuInfo
		files map[string]string
		want  string
	}{
		{"bare metal", x86, nil, ""},
		{"bare metal of a cloud vendor", x86, map[string]string{
			"sys/class/dmi/id/sys_vendor": "Amazon EC2", "sys/class/dmi/id/product_name": "m5.metal"}, ""},
		{"only the hypervisor flag", guest, nil, "unknown"},
		{"Xen by its own file", guest, map[string]string{"sys/hypervisor/type": "xen\n"}, "xen"},
		{"Hyper-V by its clock source", guest, map[string]string{
			clockDir[1:] + "/available_clocksource": "hyperv_clocksource_tsc_page acpi_pm"}, "hyper-v"},
		{"VMware by the firmware", guest, map[string]string{
			"sys/class/dmi/id/sys_vendor": "VMware, Inc.", "sys/class/dmi/id/product_name": "VMware7,1"}, "vmware (VMware, Inc. VMware7,1)"},
		{"emulated Arm board by the firmware", cpuInfo{}, map[string]string{
			"sys/class/dmi/id/sys_vendor": "QEMU"}, "qemu (QEMU)"},
		{"Arm guest by the device tree", cpuInfo{}, map[string]string{
			"proc/device-tree/hypervisor/compatible": "linux,kvm\x00"}, "kvm"},
	} {
		check.Equal(t, c.claim, tree(t, c.files).virtual(c.cpu), c.want)
	}
}

func TestReadIsBounded(t *testing.T) {
	root := tree(t, map[string]string{"short": "abc", "long": "abcd"})
	check.Equal(t, "file of the maximum size", string(must.Get(root.Read("/short", 3))(t)), "abc")
	_, err := root.Read("/long", 3)
	check.That(t, err != nil, "an oversized file was read")
	_, err = root.FirstLine("/long", 4)
	check.That(t, err != nil, "a truncated line was accepted")
	check.Equal(t, "line that ends with the file", must.Get(root.FirstLine("/long", 5))(t), "abcd")
}

// tree creates a root with the given files.
func tree(t *testing.T, files map[string]string) Root {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		must.Write(t, filepath.Join(root, name), text)
	}
	return Root(root)
}
