package procs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestParseGroupsCountsMalformedLines(t *testing.T) {
	golden.Cases(t, "testdata/cgroup.txt", func(_ *testing.T, input string) string {
		g := ParseGroups(input)
		return fmt.Sprintf("%v, %d broken, deleted %v", g.Paths, g.Broken, g.Deleted)
	})
}

func TestBilledPathsComeFromAccountingControllers(t *testing.T) {
	for name, c := range map[string]struct{ text, billed string }{
		"v2 only":                                        {"0::/a\n", "/a"},
		"v2 does not count if v1 has both":               {"3:memory:/m\n2:cpuacct:/c\n0::/a\n", "/m /c"},
		"v2 counts if v1 lacks memory":                   {"2:cpuacct:/c\n0::/a\n", "/c /a"},
		"named hierarchies and the freezer do not count": {"9:name=systemd:/s\n8:freezer:/f\n3:memory:/m\n2:cpu,cpuacct:/m\n", "/m"},
	} {
		check.Equal(t, name, strings.Join(Billed(ParseGroups(c.text).Paths), " "), c.billed)
	}
	_, ok := ParseGroups("8:freezer:/f\n3:memory:/m\n").Charged["freezer"]
	check.That(t, !ok, "the freezer is listed as charged")
}

func TestStatIsParsedAfterAnyName(t *testing.T) {
	line := func(comm string) string {
		return "12 (" + comm + ") S 3 1 1 0 -1 4194304 0 0 0 0 10 5 4 2 20 0 7 0 99 0 0 0 0 0 70 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 90 0 0 0 0\n"
	}
	for _, comm := range []string{"sh", "a b", "x) R 1 1", "((", "", "a\nb) Z 1", strings.Repeat("n", 3000)} {
		s, err := parseStat([]byte(line(comm)))
		check.That(t, err == nil && !s.Ended() && s.Group == 1 && s.Comm == comm && s.PPid == 3 && s.Threads == 7 && s.Start == 99 &&
			s.Ticks == 15 && s.Waited == 6 && s.Image == [2]uint64{90, 70}, "%q: %+v %v", comm, s, err)
	}
	for _, bad := range []string{"", "12", "12 (sh", "12 (sh) S 3", line("sh")[:40], strings.Replace(line("sh"), " 99 ", " -99 ", 1), strings.Replace(line("sh"), "S 3", "S x", 1)} {
		s, err := parseStat([]byte(bad))
		check.That(t, err != nil, "%q: %+v", bad, s)
	}
}

// fake creates a /proc with the given files for process 7.
func fake(t *testing.T, files map[string]string) *Reader {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		must.Write(t, filepath.Join(root, "proc/7", name), text)
	}
	return &Reader{Root: machine.Root(root)}
}

func TestMalformedFilesAreErrors(t *testing.T) {
	t.Parallel()
	const good = "7 (sh) S 3 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 99 0\n"
	huge := strings.Repeat("x", fileLimit+1)
	for name, c := range map[string]struct {
		file, text string
		want       error // nil: any error
		read       func(Dir) error
	}{
		"stat of another process":  {"stat", good, errReused, func(d Dir) error { _, err := d.Same(98); return err }},
		"oversized stat":           {"stat", good + huge, nil, func(d Dir) error { _, err := d.Stat(""); return err }},
		"oversized status":         {"status", huge, nil, func(d Dir) error { _, err := d.Status(); return err }},
		"status in other units":    {"status", "VmRSS:\t4 MB\n", errForm, func(d Dir) error { _, err := d.Status(); return err }},
		"too many PID namespaces":  {"status", "NSpid:" + strings.Repeat("\t1", 65), errForm, func(d Dir) error { _, err := d.Status(); return err }},
		"negative amount":          {"smaps_rollup", "Rss: -1 kB\n", errForm, func(d Dir) error { _, err := d.Memory(); return err }},
		"memory without its parts": {"smaps_rollup", "Rss: 4 kB\nPss: 4 kB\n", errForm, func(d Dir) error { m, _ := d.Memory(); return m.Parts() }},
		"memory of a zombie":       {"smaps_rollup", "", nil, func(d Dir) error { _, err := d.Memory(); return err }},
		"missing number":           {"statm", "1 2", errForm, func(d Dir) error { _, err := d.Anon(); return err }},
		"removed file":             {"stat", good, os.ErrNotExist, func(d Dir) error { _, err := d.Status(); return err }},
		"missing counters":         {"stat", good, os.ErrNotExist, func(d Dir) error { _, _, _, err := d.Moved(); return err }},
	} {
		d := must.Get(fake(t, map[string]string{c.file: c.text}).Open(7))(t)
		err := c.read(d)
		check.That(t, err != nil && (c.want == nil || errors.Is(err, c.want)), "%s: %v", name, err)
		d.Close()
	}
	_, err := fake(t, nil).Open(7)
	check.That(t, Gone(err), "no process: %v", err)
}

func TestFilesAreParsed(t *testing.T) {
	t.Parallel()
	r := fake(t, map[string]string{
		"cmdline": "/bin/a\x00b c\x00\x00", "statm": "9 5 2 1 0 1 0\n", "io": "rchar: 5\nwchar: 7\nread_bytes: 4096\nwchar x\n",
		"smaps_rollup":     "55-56 ---p [rollup]\nRss: 9 kB\nPss: 8 kB\nPss_Anon: 1 kB\nPss_File: 2 kB\nPss_Shmem: 3 kB\nShared_Hugetlb: 4 kB\nPrivate_Hugetlb: 5 kB\nSwapPss: 6 kB\n",
		"task/8/schedstat": "12 3 4\n", "task/8/comm": "CPU 0/KVM\n", "task/9/stat": "9 (x) S 1 1 1 0 -1 0 0 0 0 0 2 1 0 0 20 0 1 0 99\n", "task/x/comm": "no thread",
	})
	d := must.Get(r.Open(7))(t)
	defer d.Close()
	check.Equal(t, "arguments", strings.Join(must.Get(d.Args())(t), "|"), "/bin/a|b c|")
	check.Equal(t, "anonymous", must.Get(d.Anon())(t), 3*pageSize)
	if read, written, fetched, err := d.Moved(); err != nil || read != 5 || written != 7 || fetched != 4096 {
		t.Errorf("moved: %d %d %d %v", read, written, fetched, err)
	}
	if m, err := d.Memory(); err != nil || m.Parts() != nil || m != (Memory{9 << 10, 8 << 10, 1 << 10, 2 << 10, 3 << 10, 6 << 10, 9 << 10, rollupLines}) {
		t.Errorf("memory: %+v %v", m, err)
	}
	tasks, err := d.Tasks()
	check.That(t, err == nil && len(tasks) == 2 && tasks[0] == 8 && tasks[1] == 9, "threads: %v %v", tasks, err)
	a, b, c := d.TaskCPU(8), d.TaskCPU(9), d.TaskCPU(10)
	check.That(t, a == 12 && b == 3*Tick && c == 0 && d.TaskName(8) == "CPU 0/KVM" && d.TaskName(10) == "", "CPU times of threads: %d %d %d, name %q", a, b, c, d.TaskName(8))
}

func TestProgramNameGivesTheRole(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]record.Role{
		"containerd-shim-runc-v2 -id x": record.RoleShim, "isulad-shim": record.RoleShim, "conmon": record.RoleMonitor, "conmonrs": record.RoleMonitor,
		"qemu-system-x86_64 -m 1": record.RoleVMM, "cloud-hypervisor": record.RoleVMM, "firecracker": record.RoleVMM, "crosvm run": record.RoleVMM,
		"virtiofsd": record.RoleVirtiofs, "ld-linux-x86-64.so.2 --library-path /x /opt/virtiofsd-rs": record.RoleVirtiofs,
		"containerd": "", "dockerd": "", "pause": "", "runsc boot": "", "grep qemu-kvm": "", "bash": "", "": "",
		"ld.so": "", "ld.so --preload": "", "ld.so /bin/grep": "",
	} {
		words := strings.Fields(line + " ")
		name, args := "", []string(nil)
		if len(words) > 0 {
			name, args = words[0], words[1:]
		}
		role := HelperRole(name, args)
		check.That(t, role == want, "helper %q has role %q", line, role)
	}
	for line, want := range map[string]record.Role{
		"runsc --root=/x boot --bundle y": record.RoleSentry, "runsc-sandbox": record.RoleSentry, "runsc gofer": record.RoleGofer, "runsc umount": record.RoleGofer,
		"runsc create boot": "", "runsc exec x boot": "", "runsc": "", "boot boot": "",
	} {
		words := strings.Fields(line)
		role := GVisorRole(words[0], words[1:])
		check.That(t, role == want, "gVisor process %q has role %q", line, role)
	}
	for name, want := range map[string]record.Role{"crio": record.RoleDaemon, "containerd": record.RoleDaemon, "pause": record.RolePause, "containerdx": ""} {
		check.Equal(t, name, RoleOf(name), want)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("12 (sh) S 3 1 1 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 9"))
	f.Add([]byte("4:memory:/x (deleted)\n0::/a:b"))
	f.Add([]byte("NSpid:\t1\t2\nVmRSS:\t 4 kB"))
	f.Add([]byte("Rss: 1 kB\nPss_Anon: 1 kB\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := parseStat(text)
		check.That(t, err != nil || min(s.PPid, s.Threads, s.Group) >= 0, "%+v", s)
		_, _ = parseStatus(text)
		_, _ = parseSchedstat(text)
		u, err := parseMemory(text)
		check.That(t, err != nil || min(u.RSS, u.PSS, u.Anon, u.File, u.Shmem, u.Swap, u.Huge) >= 0, "%+v", u)
		for _, path := range ParseGroups(string(text)).All {
			check.That(t, strings.HasPrefix(path, "/"), "%q", path)
		}
	})
}

func TestCapabilitiesAreReadFromStatus(t *testing.T) {
	s := must.Get(parseStatus([]byte("Name:\tpodman\nCapEff:\t000001fffeffffff\nCapBnd:\t00000000a80425fb\n")))(t)
	check.Equal(t, "effective", s.Effective, uint64(0x1fffeffffff))
	check.Equal(t, "bounding", s.Bounding, uint64(0xa80425fb))
	_, err := parseStatus([]byte("CapEff:\tx\n"))
	check.Error(t, err, errForm.Error())
}
