package doctor

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestHealthyMachineIsOK(t *testing.T) {
	checks := facilities(healthy(t, nil), fakeKernel{free: 50 * gib}, nil)
	for _, c := range checks {
		check.That(t, c.Status == OK && c.Fix == "", "%s %s: %s: %s → %s", c.Area, c.Name, c.Status, c.Why, c.Fix)
	}
	check.That(t, len(checks) >= 25, "only %d checks", len(checks))
}

func TestFacilities(t *testing.T) {
	var all []struct {
		Claim  string
		Files  files
		Kernel struct {
			UID                           int
			Free                          uint64
			BPF, Stats, Clock, Cycles, RT string
			DiskFree                      string
		}
		Check string
		Is    Status
		Why   string // a part of the text
		Fix   string // the complete text
	}
	must.OK(t, yaml.UnmarshalWithOptions([]byte(must.Read(t, "testdata/facilities.yaml")), &all, yaml.Strict()))
	for _, c := range all {
		k := c.Kernel
		checks := facilities(healthy(t, c.Files), fakeKernel{
			uid: k.UID, free: cmp.Or(k.Free, 50*gib), freeErr: failure(k.DiskFree),
			bpf: failure(k.BPF), stats: failure(k.Stats), clock: failure(k.Clock), cycles: failure(k.Cycles), rt: failure(k.RT),
		}, []Folder{{Name: "run", Path: "/run/tare"}, {Name: "cache", Path: "/var/cache/tare"}})
		got, ok := find(checks, c.Check)
		if !ok {
			t.Errorf("%s: no check %q", c.Claim, c.Check)
			continue
		}
		check.That(t, got.Status == c.Is && strings.Contains(got.Why, c.Why) && got.Fix == c.Fix,
			"%s: got %s: %s\n  → %q\n  want %s: containing %q → %q", c.Claim, got.Status, got.Why, got.Fix, c.Is, c.Why, c.Fix)
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

func TestAbsentFeaturesAreNotChecked(t *testing.T) {
	for _, c := range []struct {
		claim   string
		changed files
		name    string
	}{
		{"SMT unsupported", files{"sys/devices/system/cpu/smt/control": "notsupported\n"}, "SMT"},
		{"no turbo control", files{"sys/devices/system/cpu/cpufreq/boost": ""}, "turbo"},
		{"capability unknown to an old kernel", files{"proc/sys/kernel/cap_last_cap": "37\n"}, "CAP_BPF"},
	} {
		checks := facilities(healthy(t, c.changed), fakeKernel{free: gib}, nil)
		got, ok := find(checks, c.name)
		check.That(t, !ok, "%s: %+v", c.claim, got)
	}
}

func TestStealDuringTheWindowIsReported(t *testing.T) {
	root := healthy(t, nil)
	kernel := fakeKernel{free: gib, wait: func() {
		stat := "cpu  1010 0 1000 98020 0 0 0 10 0 0\n"
		must.OK(t, os.WriteFile(filepath.Join(string(root), "proc/stat"), []byte(stat), 0o644))
	}}
	c, _ := find(facilities(root, kernel, nil), "stolen CPU time")
	check.That(t, c.Status == Limited && strings.Contains(c.Why, "25.0 % in 200ms, with the CPUs 25 % busy"), "got %+v", c)
}

func TestConfigIsReadFromProcConfigGz(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write([]byte("CONFIG_PSI=y\n# CONFIG_OVERLAY_FS is not set\n"))
	z.Close()
	root := healthy(t, files{"proc/config.gz": packed.String(), "proc/filesystems": "nodev\tproc\n"})
	c, _ := find(facilities(root, fakeKernel{}, nil), "overlayfs")
	check.That(t, strings.Contains(c.Why, "built without CONFIG_OVERLAY_FS"), "got %+v", c)
}

func TestRefusedFolderIsMissing(t *testing.T) {
	c := Check{Status: OK}
	Folder{Name: "run", Path: "/x", Refusal: errors.New("/x belongs to uid 5")}.look(nil, &c)
	check.Equal(t, "check", c, Check{Status: Missing, Why: "/x belongs to uid 5"})
}

func TestThisMachine(t *testing.T) {
	before := must.Get(unix.SchedGetAttr(0, 0))(t)
	names := map[string]bool{}
	for _, c := range Facilities(Folder{Name: "run", Path: os.TempDir()}) {
		if c.Area == "" || c.Name == "" || (c.Status != OK && c.Why == "") {
			t.Errorf("incomplete check: %+v", c)
		}
		if names[c.Name] {
			t.Errorf("duplicate check %q", c.Name)
		}
		names[c.Name] = true
	}
	after := must.Get(unix.SchedGetAttr(0, 0))(t)
	check.That(t, before.Policy == after.Policy && before.Priority == after.Priority, "scheduling changed from %+v to %+v", before, after)
}

func TestFreeDiskOfAMissingFolder(t *testing.T) {
	dir := t.TempDir()
	free, err := running{}.FreeDisk(filepath.Join(dir, "not", "yet"))
	check.That(t, err == nil && free != 0, "got %d, %v", free, err)
}

// fakeKernel returns fixed results. With its zero value the caller is root and every
// operation succeeds.
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

// failure returns the error with the given name, or nil if the name is empty.
func failure(name string) error {
	if name == "" {
		return nil
	}
	for _, errno := range []syscall.Errno{unix.EPERM, unix.ENOENT, unix.EACCES, unix.EINVAL, unix.ENOSYS} {
		if unix.ErrnoName(errno) == name {
			return errno
		}
	}
	return errors.New(name)
}

// files maps paths below a root to contents. An empty content removes the file.
type files map[string]string

// healthy returns the root of a machine that passes every check, except for the changed
// files.
func healthy(t *testing.T, changed files) machine.Root {
	t.Helper()
	root := t.TempDir()
	must.OK(t, os.CopyFS(root, os.DirFS("testdata/healthy")))
	for name, text := range changed {
		if text == "" {
			must.OK(t, os.Remove(filepath.Join(root, name)))
			continue
		}
		must.Write(t, filepath.Join(root, name), text)
	}
	return machine.Root(root)
}

var sample = []Check{
	{AreaPrivilege, "root", "uid 0", OK, "needed", ""},
	{AreaKernel, "overlayfs", "not loaded", Limited, "can be loaded", "modprobe overlay"},
	{AreaPrivilege, "CAP_SYS_RESOURCE", "", Limited, "withheld", ""},
	{AreaRuntime, "crun\x1b[2J", "1.8.1\u202e", Missing, "no\nsuch file", "apt-get install crun"},
}

func TestRender(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, Render(&out, sample, true))
	check.Equal(t, "text", must.Read(t, "testdata/render.txt"), out.String())
	out.Reset()
	must.OK(t, Render(&out, sample, false))
	check.Equal(t, "answer", must.Read(t, "testdata/answer.txt"), out.String())
}

func TestRenderJSON(t *testing.T) {
	var out bytes.Buffer
	must.OK(t, RenderJSON(&out, sample))
	var back report
	must.OK(t, json.Unmarshal(out.Bytes(), &back))
	check.That(t, back.Schema == 1 && reflect.DeepEqual(back.Checks[:3], sample[:3]), "decoded %+v", back)
	foreign := back.Checks[3]
	check.That(t, foreign.Name == `crun\x1b[2J` && foreign.Version == `1.8.1\u202e`, "not cleaned: %+v", foreign)
	for _, field := range []string{`"schema"`, `"checks"`, `"area"`, `"name"`, `"version"`, `"status"`, `"why"`, `"fix"`} {
		check.Contains(t, "field", out.String(), field)
	}

	out.Reset()
	err := RenderJSON(&out, nil)
	check.That(t, err == nil && strings.Contains(out.String(), `"checks": []`), "no checks: %q, %v", out.String(), err)
}
