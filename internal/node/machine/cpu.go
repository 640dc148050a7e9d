package machine

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const cpuDir = "/sys/devices/system/cpu"

// cpuInfo is the part of /proc/cpuinfo that tare uses.
type cpuInfo struct {
	models     []string // distinct models: a machine can have two kinds of core
	x86        bool     // only on x86 a missing hypervisor flag means bare metal
	hypervisor bool     // by CPUID
}

const cpuinfoLimit = 32 << 20 // bytes; x86 has at most 8192 CPUs of about 1.6 KB each

func (r Root) cpu() cpuInfo {
	data, _ := r.Read("/proc/cpuinfo", cpuinfoLimit)
	return parseCPUInfo(bytes.NewReader(data))
}

const maxModels = 8 // in a record; real machines have up to three

// parseCPUInfo parses /proc/cpuinfo of any architecture.
func parseCPUInfo(r io.Reader) cpuInfo {
	var info cpuInfo
	implementer := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimSpace(value)
		switch strings.TrimSpace(key) {
		case "model name", "cpu model", "cpu", "uarch": // x86; MIPS; POWER; RISC-V
			info.add(value)
		case "CPU implementer": // Arm has no name of the model
			implementer = value
		case "CPU part":
			info.add("implementer " + implementer + " part " + value)
		case "flags":
			info.x86 = true
			if !info.hypervisor { // the line is long and the same for every CPU
				info.hypervisor = slices.Contains(strings.Fields(value), "hypervisor")
			}
		}
	}
	return info
}

func (c *cpuInfo) add(model string) {
	if model != "" && len(c.models) < maxModels && !slices.Contains(c.models, model) {
		c.models = append(c.models, model)
	}
}

// CPUs returns how many CPUs this process may run on: those in the affinity mask that are
// online.
func (r Root) CPUs() (int, error) {
	status, err := r.Read("/proc/self/status", statusLimit)
	if err != nil {
		return 0, err
	}
	list, err := statusField(string(status), "Cpus_allowed_list")
	if err != nil {
		return 0, err
	}
	allowed, err := parseCPUList(list)
	if err != nil {
		return 0, fmt.Errorf("parse Cpus_allowed_list in /proc/self/status: %w", err)
	}
	if online, err := parseCPUList(r.Word(cpuDir + "/online")); err == nil { // else there is no sysfs
		maps.DeleteFunc(allowed, func(cpu int, _ bool) bool { return !online[cpu] })
	}
	return len(allowed), nil
}

// Online returns how many CPUs are online.
func (r Root) Online() (int, error) {
	online, err := parseCPUList(r.Word(cpuDir + "/online"))
	if err != nil {
		return 0, fmt.Errorf("parse %s/online: %w", cpuDir, err)
	}
	return len(online), nil
}

const maxCPUs = 1 << 16 // Linux can be built for 8192

// parseCPUList parses the kernel's list format, "0-3,8".
func parseCPUList(s string) (map[int]bool, error) {
	cpus := map[int]bool{}
	for part := range strings.SplitSeq(s, ",") {
		from, to, ranged := strings.Cut(part, "-")
		if !ranged {
			to = from
		}
		first, ok1 := Number([]byte(from))
		last, ok2 := Number([]byte(to))
		if !ok1 || !ok2 || last < first || last >= maxCPUs {
			return nil, fmt.Errorf("want a list of CPUs such as %q, got %.80q", "0-3,8", s)
		}
		for cpu := first; cpu <= last; cpu++ {
			cpus[int(cpu)] = true
		}
	}
	return cpus, nil
}

// Governor returns the distinct frequency governors of the CPUs, or "" if there is none, as
// on most virtual machines.
func (r Root) Governor() string {
	files, _ := filepath.Glob(string(r) + cpuDir + "/cpu[0-9]*/cpufreq/scaling_governor")
	var governors []string
	for _, file := range files {
		if g := r.Word(strings.TrimPrefix(file, string(r))); g != "" {
			governors = append(governors, g)
		}
	}
	slices.Sort(governors)
	return strings.Join(slices.Compact(governors), ", ")
}

const clockDir = "/sys/devices/system/clocksource/clocksource0"

// ClockSource returns the current and the available clock sources of the kernel.
func (r Root) ClockSource() (current string, available []string) {
	return r.Word(clockDir + "/current_clocksource"), strings.Fields(r.Word(clockDir + "/available_clocksource"))
}

// mitigations returns the kernel's mitigation of each hardware vulnerability. Mitigations
// slow down entries into the kernel, which cause most of a runtime's cost.
func (r Root) mitigations() map[string]string {
	const dir = cpuDir + "/vulnerabilities" // Linux 4.15
	entries, err := os.ReadDir(string(r) + dir)
	if err != nil {
		return nil
	}
	m := map[string]string{}
	for _, e := range entries {
		if state := r.Word(dir + "/" + e.Name()); state != "" {
			m[e.Name()] = state
		}
	}
	return m
}
