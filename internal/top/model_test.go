package top

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestSandboxIncludesItsGroupsAndShim(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("v2 %t", v2), func(t *testing.T) {
			f, group := docker(t, v2)
			c := f.open(config{})
			if s := only(t, f.pass(c, 0)); s.CPU.OK || s.Read.OK || !s.Memory.OK {
				t.Errorf("first reading: rates are known, or memory is not: %+v", s.Figures)
			}
			f.group(group, charge{anon: 64 << 20, file: 32 << 20, limit: 256 << 20, cpu: 15e8, io: 3 << 20})
			f.process(60, 1, 60, "/usr/bin/containerd-shim-runc-v2 -namespace moby -id "+hexID, "/system.slice/containerd.service", 2560, 125)
			v := f.pass(c, 2*time.Second)
			s := only(t, v)
			check.That(t, s.Name == hexID[:12] && s.engine() == "docker" && s.Processes == 2,
				"%s of %s with %d processes", s.Name, s.engine(), s.Processes)
			check.That(t, near(s.CPU, 0.375) && near(s.CPUBeside, 0.125) && near(s.CPUOutside, 0),
				"CPU %+v, beside %+v, outside %+v; want 0.375, 0.125 and 0", s.CPU, s.CPUBeside, s.CPUOutside)
			check.That(t, s.Memory.V == 64<<20 && s.Cache.V == 32<<20 && s.MemoryOutside == known(int64(0)) &&
				s.BesideRSS == known(2560*int64(os.Getpagesize())) && !s.BesidePSS.OK, "%+v", s.Figures)
			check.That(t, near(s.Write, 1<<20) && s.Limit.V == 256<<20 && near(s.Full, 0.25),
				"write %+v, limit %+v, full %+v", s.Write, s.Limit, s.Full)
			check.That(t, near(v.Sum.CPU, 0.375) && v.Count == 1 && v.Interval == 2, "sum %+v of %d over %g s", v.Sum, v.Count, v.Interval)
		})
	}
}

func TestSandboxesAreShownByTheNameOfTheirEngine(t *testing.T) {
	bundle := func(text string) map[string]string { return map[string]string{"/proc/7/cwd/config.json": text} }
	shim, conmon := []string{"containerd-shim-runc-v2"}, func(name string) []string { return []string{"conmon", "-c", hexID, "-n", name} }
	for claim, c := range map[string]struct {
		role  record.Role
		args  []string
		pod   string
		files map[string]string
		want  string
	}{
		"a container by conmon's argument":       {record.RoleMonitor, conmon("web"), "", nil, "web"},
		"a pod of CRI-O by conmon's argument":    {record.RoleMonitor, conmon("k8s_POD_web-3_shop_0f2e_0"), "0f2e", nil, "shop/web-3"},
		"a container is not the name of its pod": {record.RoleMonitor, conmon("web"), "0f2e", nil, ""},
		"conmon without a name":                  {record.RoleMonitor, []string{"conmon", "-n"}, "", nil, ""},
		"a pod by its shim's bundle": {record.RoleShim, shim, "0f2e",
			bundle(`{"annotations":{"io.kubernetes.cri.sandbox-name":"web-3","io.kubernetes.cri.sandbox-namespace":"shop"}}`), "shop/web-3"},
		"a container of nerdctl": {record.RoleShim, shim, "", bundle(`{"annotations":{"nerdctl/name":"db"},"mounts":[{"destination":"/etc/hostname","source":"/n/hostname"}]}`), "db"},
		"a container of Docker in any data-root": {record.RoleShim, shim, "", map[string]string{
			"/proc/7/cwd/config.json":   `{"mounts":[{"destination":"/proc","source":"proc"},{"destination":"/etc/hostname","source":"/data/c/ab/hostname"}]}`,
			"/data/c/ab/config.v2.json": `{"Name":"/db"}`}, "db"},
		"no bundle":                      {record.RoleShim, shim, "", nil, ""},
		"a bundle that is not JSON":      {record.RoleShim, shim, "", bundle(`root:x:0`), ""},
		"a bundle of more than a MiB":    {record.RoleShim, shim, "", bundle(strings.Repeat(" ", 1<<20) + `{"annotations":{"nerdctl/name":"db"}}`), ""},
		"a process that is not the shim": {record.RoleWorkload, conmon("web"), "", bundle(`{"annotations":{"nerdctl/name":"db"}}`), ""},
	} {
		t.Run(claim, func(t *testing.T) {
			f := newFixture(t, true)
			for name, text := range c.files {
				f.write(name, text)
			}
			one := member{Member: attribution.Member{Role: c.role, Process: &attribution.Process{Args: c.args}}}
			one.Pid = 7
			b := &box{Sandbox: Sandbox{Pod: c.pod}, members: []member{one}}
			check.Equal(t, "name", f.open(config{}).engineName(b), c.want)
			one.NSpid = []int{7, 1}
			check.Equal(t, "name by a process of a container", f.open(config{}).engineName(b), "")
		})
	}
}

func TestAFIFOForABundleDoesNotBlock(t *testing.T) {
	f := newFixture(t, true)
	f.write("/proc/7/cwd/other", "")
	must.OK(t, unix.Mkfifo(filepath.Join(f.root, "/proc/7/cwd/config.json"), 0o644))
	check.Equal(t, "name", f.open(config{}).bundleName(7), "")
}

func TestColumnsAreChosenByName(t *testing.T) {
	f, _ := docker(t, true)
	text := f.pass(f.open(config{}), 0).text(&Selection{Columns: []string{"io", "procs"}}, 80, false)
	check.Contains(t, "titles", strings.Join(strings.Fields(text), " "), "SANDBOX IO/s PROCS")
}

func TestZombieIsNotCounted(t *testing.T) {
	for _, v2 := range []bool{false, true} {
		f, group := docker(t, v2)
		f.process(62, 60, 62, "sleep 9", group, 0, 0)
		stat := "62 (sleep) %s 60 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %d 0 62 0 0 0 0 0 0 7000 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
		for threads, want := range map[int]int{1: 2, 2: 3} { // with one thread the process has ended; with two only its first thread has
			f.write("/proc/62/stat", fmt.Sprintf(stat, "Z", threads))
			s := only(t, f.pass(f.open(config{}), 0))
			check.That(t, s.Processes == want, "v2 %t, %d threads: %d processes, want %d", v2, threads, s.Processes, want)
		}
	}
}

// kata returns a machine with a recorded Kata sandbox on cgroup v1. The overhead group
// contains the VMM. The group of the pod contains the vCPU thread.
func kata(t *testing.T) *fixture {
	f := newFixture(t, false)
	must.OK(t, os.CopyFS(filepath.Join(f.root, "proc"), os.DirFS("../node/attribution/testdata/kata/proc")))
	every := func(path string) string {
		var b strings.Builder
		for i, c := range []string{"name=systemd", "pids", "blkio", "freezer", "devices", "memory", "cpuset", "cpuacct", "cpu"} {
			fmt.Fprintf(&b, "%d:%s:%s\n", 9-i, c, path)
		}
		return b.String() + "0::/\n"
	}
	for pid, comms := range map[int][]string{
		26365: {"containerd-shim"}, 26376: {"ld-linux-x86-64"}, 26379: {"ld-linux-x86-64"}, 26387: {"ld-linux-x86-64"},
		26377: {"qemu-system-x86", "call_rcu", "CPU 0/TCG"},
	} {
		f.write(fmt.Sprintf("/proc/%d/statm", pid), "9000 256 0 0 0 0 0\n") // missing in the recording
		for i, comm := range comms {
			group, tid := every("/kata_overhead/kk"), pid
			if comm == "CPU 0/TCG" {
				group = every("/default/kk")
			}
			if i > 0 {
				tid = pid*10 + i
			}
			task := fmt.Sprintf("/proc/%d/task/%d/", pid, tid)
			f.write(task+"cgroup", group)
			f.write(task+"comm", comm+"\n")
			f.write(task+"schedstat", "1000000000 0 1\n")
		}
	}
	f.group("/kata_overhead/kk", charge{anon: 375 << 20, file: 10 << 20, cpu: 1e9})
	f.group("/default/kk", charge{anon: 1 << 20, limit: 512 << 20, cpu: 1e9})
	return f
}

func TestKataOverheadIsOutsideThePodGroup(t *testing.T) {
	f := kata(t)
	c := f.open(config{Full: true})
	f.pass(c, 0)
	f.group("/kata_overhead/kk", charge{anon: 375 << 20, file: 10 << 20, cpu: 12e8})
	f.group("/default/kk", charge{anon: 1 << 20, limit: 512 << 20, cpu: 19e8})
	f.write("/proc/26377/task/263772/schedstat", "1900000000 0 1\n")
	s := only(t, f.pass(c, time.Second))
	check.That(t, s.Isolation == "kata" && s.Name == "kk", "%q of %q", s.Name, s.engine())
	check.That(t, s.Memory.V == 376<<20 && s.MemoryOutside.V == 375<<20 && s.Cache.V == 10<<20 && s.CacheOutside.V == 10<<20, "%+v", s.Figures)
	check.That(t, s.BesideRSS == known(int64(0)) && near(s.CPU, 1.1) && near(s.CPUOutside, 0.2),
		"%+v: the overhead group is counted as beside", s.Figures)
	check.That(t, s.Limit.V == 512<<20 && s.Full.V <= 0.01, "limit %+v, full %+v", s.Limit, s.Full)
	found := map[record.Role]Role{}
	for _, r := range s.Roles {
		found[r.Role] = r
	}
	for role, n := range map[record.Role]int{record.RoleShim: 1, record.RoleVMM: 2, record.RoleVirtiofs: 2, record.RoleVCPU: 1} {
		check.That(t, len(found[role].Processes) == n, "%d of %s, want %d", len(found[role].Processes), role, n)
	}
	vcpu := found[record.RoleVCPU]
	must.That(t, near(vcpu.CPU, 0.9) && !vcpu.RSS.OK && len(vcpu.Processes) == 1, "%+v", vcpu)
	p := vcpu.Processes[0]
	check.That(t, len(p.Threads) == 1 && p.Threads[0] == 263772 && len(p.Groups) == 1 && p.Groups[0].Paths["memory"] == "/default/kk" && p.Rule != "",
		"%+v", p)
}

func TestRateIsUnknownAfterInconsistentCounters(t *testing.T) {
	shim := "/usr/bin/containerd-shim-runc-v2 -namespace moby -id " + hexID
	service := "/system.slice/containerd.service"
	for name, c := range map[string]struct {
		change func(f *fixture, group string)
		after  func(t *testing.T, v *view)
	}{
		"decreasing counter of a group": {
			func(f *fixture, group string) { f.group(group, charge{anon: 1 << 20, cpu: 5e8}) },
			func(t *testing.T, v *view) {
				s := only(t, v)
				check.That(t, !s.CPU.OK && v.Problems.Backwards == 2, "CPU %+v, %+v", s.CPU, v.Problems) // one for CPU and one for I/O
			},
		},
		"decreasing counter of a process": {
			func(f *fixture, _ string) { f.process(60, 1, 60, shim, service, 2560, 1) },
			func(t *testing.T, v *view) {
				s := only(t, v)
				check.That(t, !s.CPU.OK && !s.CPUBeside.OK && v.Problems.Backwards == 1, "CPU %+v, %+v", s.CPU, v.Problems)
			},
		},
		"reused PID": {
			func(f *fixture, _ string) {
				f.remove("/proc/60")
				f.process(60, 1, 6000, shim, service, 2560, 900)
			},
			func(t *testing.T, v *view) {
				s := only(t, v)
				check.That(t, !s.CPU.OK && v.Problems.Reused != 0, "CPU %+v, %+v", s.CPU, v.Problems)
			},
		},
		"ended sandbox is omitted": {
			func(f *fixture, group string) {
				for _, pid := range []string{"60", "61"} {
					f.remove("/proc/" + pid)
				}
				for _, c := range []string{"memory", "cpuacct", "blkio"} {
					f.remove("/sys/fs/cgroup/" + c + group)
				}
			},
			func(t *testing.T, v *view) {
				check.That(t, v.Count == 0 && len(v.Sandboxes) == 0 && v.Sum.CPU == known(0.0), "%d: %+v", v.Count, v.Sum)
			},
		},
		"no time between two readings": {
			func(f *fixture, group string) {
				f.clock = f.clock.Add(-10 * time.Second)
				f.group(group, charge{anon: 1 << 20, cpu: 2e9, io: 2 << 20})
			},
			func(t *testing.T, v *view) {
				s := only(t, v)
				check.That(t, !s.CPU.OK, "CPU %+v", s.CPU)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, group := docker(t, false)
			col := f.open(config{})
			f.pass(col, 0)
			s := only(t, f.pass(col, 10*time.Second))
			must.That(t, near(s.CPU, 0), "CPU %+v, want 0", s.CPU)
			c.change(f, group)
			v := f.pass(col, 10*time.Second) // a survey is due
			c.after(t, v)
			if s := v.Sandboxes; len(s) == 1 {
				later := only(t, f.pass(col, 10*time.Second))
				check.That(t, near(later.CPU, 0), "CPU one interval later: %+v, want 0", later.CPU)
			}
		})
	}
}

func TestNewSandboxIsFoundWhenProcessesAppear(t *testing.T) {
	f, _ := docker(t, false)
	c := f.open(config{})
	f.pass(c, 0)
	f.process(71, 1, 71, "sleep 5", "/docker/"+hexID2, 100, 0)
	f.group("/docker/"+hexID2, charge{anon: 1 << 20})
	v := f.pass(c, time.Second)
	check.That(t, v.Count == 1, "%d sandboxes before the next survey, want 1", v.Count)
	v = f.pass(c, soon)
	check.That(t, v.Count == 2, "%d sandboxes after the number of processes changed, want 2", v.Count)
}

func TestSelectionFiltersAndSorts(t *testing.T) {
	make3 := func() []Sandbox {
		return []Sandbox{
			{Name: "a", Engine: "docker", key: "a", text: "a\ndocker", Figures: Figures{Memory: known(int64(1)), CPU: known(3.0), BesideRSS: known(int64(9))}},
			{Name: "b", Engine: "kubernetes", Isolation: "kata", key: "b", text: "b\nqemu", Figures: Figures{Memory: known(int64(3)), CPU: known(1.0), MemoryOutside: known(int64(20)), Cache: known(int64(2))}},
			{Name: "c", Engine: "docker", Isolation: "gvisor", key: "c", text: "c\nrunsc", Figures: Figures{CPU: known(2.0), Read: known(1.0), Write: known(1.0)}},
		}
	}
	for want, sel := range map[string]Selection{
		"b a c":   {},
		"a b c":   {Sort: SortMemory, Reverse: true},
		"a c b":   {Sort: SortCPU},
		"c b a":   {Sort: SortName, Reverse: true},
		"b a c  ": {Sort: SortOverhead},
		"a c":     {Engine: "docker", Sort: SortName},
		"b":       {Engine: "Kubernetes/kata"},
		"c a":     {Engine: "docker", Sort: SortIO},
		"":        {Filter: "unmatched"},
		"b ":      {Filter: "QEMU"},
		"b a c ":  {Sort: SortCache},
	} {
		var got []string
		for _, s := range sel.of(make3()) {
			got = append(got, s.Name)
		}
		check.That(t, strings.Join(got, " ") == strings.TrimSpace(want), "%+v: %v, want %s", sel, got, want)
	}
}

func TestHostileNamesAreEscaped(t *testing.T) {
	f, _ := docker(t, false)
	evil := "/docker/\x1b]0;owned\a\u202e" + hexID2[:12] + "\u009b31m"
	f.process(71, 1, 71, "x\x1b[2Jy", evil, 100, 0)
	f.group(evil, charge{anon: 1 << 20})
	c := f.open(config{Full: true})
	f.pass(c, 0)
	v := f.pass(c, time.Second)
	must.That(t, v.Count == 2, "%d sandboxes, want 2: %+v", v.Count, v)
	s := screenOf(v)
	for _, b := range v.Sandboxes {
		s.expanded[b.key] = true
	}
	var json strings.Builder
	must.OK(t, v.writeJSON(&json, &Selection{}, true))
	for what, text := range map[string]string{
		"text": v.text(&Selection{}, 120, true), "screen": strings.Join(s.frame(120, 60), "\n"), "json": json.String(),
	} {
		check.Contains(t, fmt.Sprintf("%s: the hostile name must be shown", what), text, "owned")
		for _, r := range text {
			if r != '\n' && (r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x202e) {
				t.Errorf("%s contains %U:\n%s", what, r, text)
				break
			}
		}
	}
}

func TestJSONPreservesNames(t *testing.T) {
	name := "a\x1b\u009b\u202e\U000e0041 容器 \"<&>"
	v := view{Sandboxes: []Sandbox{{Name: name, key: name}}}
	var b strings.Builder
	must.OK(t, v.writeJSON(&b, &Selection{}, false))
	var back struct {
		Sandboxes []struct {
			Name string
			CPU  *float64
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &back); err != nil || len(back.Sandboxes) != 1 || back.Sandboxes[0].Name != name || back.Sandboxes[0].CPU != nil {
		t.Errorf("%v: %+v, want %q: %s", err, back, name, b.String())
	}
	check.That(t, strings.Count(b.String(), "\n") == 1 && strings.HasSuffix(b.String(), "\n"), "want one line: %q", b.String())
}
