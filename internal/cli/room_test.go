package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/doctor"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/record"
)

// Each line of the golden file has the number of lanes, the targets and the available
// resources: PIDs, MiB of memory, and PIDs below the limit of tare's own cgroup. -1 means
// unknown.
func TestLanesAreCheckedAgainstAvailableResources(t *testing.T) {
	t.Parallel()
	config := func(via, runtime string) map[string]string { return map[string]string{"via": via, "runtime": runtime} }
	targets := map[string]record.Target{
		"host":            {Kind: "host"},
		"runc":            {Kind: "oci"},
		"mine":            {Kind: "oci"},
		"docker/runc":     {Kind: "docker", Config: config("api", "runc")},
		"docker+cli/runc": {Kind: "docker", Config: config("cli", "runc")},
		"containerd/kata": {Kind: "containerd", Config: config("api", "io.containerd.kata.v2")},
	}
	golden.Lines(t, filepath.Join(testdata, "room.txt"), func(t *testing.T, line string) (any, error) {
		r, names, lanes := room{ownFile: "/g/pids.max"}, "", 0
		_, err := fmt.Sscanf(line, "%d of %s with %d PIDs, %d MiB, own %d", &lanes, &names, &r.tasks, &r.memory, &r.own)
		must.OK(t, err)
		r.memory <<= 20
		var all []record.Target
		for name := range strings.SplitSeq(names, ",") {
			target := targets[name]
			target.Name = name
			all = append(all, target)
		}
		said, lacks := r.fits(all, lanes)
		return fmt.Sprintf("said %q, lacks %q", said, lacks), nil
	})
}

// TestLanesBeyondThePIDLimitAreRefused runs tare in a cgroup with a low pids
// limit. The limit is below the estimate for the lanes, but above their actual usage.
func TestLanesBeyondThePIDLimitAreRefused(t *testing.T) {
	need.Root(t)
	hs := must.Get(cgroup.Hierarchies())(t)
	h, ok := machine.Cgroups(hs).Find("pids")
	if !ok {
		t.Skip("the pids controller is not mounted")
	}
	dir := place(t)
	group := filepath.Join(h.Mount, fmt.Sprintf("tare-test-%d", os.Getpid()))
	must.OK(t, os.Mkdir(group, 0o755))
	defer func() {
		await(t, "the group's end", func() bool { return unix.Rmdir(group) == nil })
	}()
	check.Error(t, os.WriteFile(filepath.Join(group, "pids.max"), []byte("145"), 0), "")
	within := func(args ...string) (int, string) {
		cmd := exec.Command("sh", append([]string{"-c", `echo $$ >"$0/cgroup.procs" && exec "$@"`, group, program(t, dir)}, args...)...)
		out, _ := cmd.CombinedOutput() // the exit code has the error
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, out := within("lifecycle", "host", "-n", "50", "--rounds", "1", "-o", "r.jsonl")
	if code != ExitUsage || !strings.Contains(out, "50 lanes at once: host may need 150 processes") || !strings.Contains(out, group+"/pids.max") || !strings.Contains(out, "--force") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if _, err := os.Stat("r.jsonl"); err == nil {
		t.Error("a record was created")
	}
	code, out = within("lifecycle", "host", "-n", "50", "--rounds", "1", "--force", "-o", "r.jsonl")
	rec, err := record.Load("r.jsonl")
	if code != ExitDone || err != nil || !slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == finding.NoRoom }) {
		t.Errorf("with --force: exit %d, %v\n%s", code, err, out)
	}
}

// handler is a target that only implements Info.
type handler struct {
	subject.Target
	info record.Target
}

func (h handler) Info() record.Target { return h.info }

func TestDoctorNamesTargetsForKata(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	of := func(name, config string) find.Found {
		return find.Found{Name: name, Target: handler{info: record.Target{Name: name, Config: map[string]string{
			"kata config": config, "kata version": "3.3.0 (Golang)", "hypervisor": "qemu", "sandbox_cgroup_only": "true"}}}}
	}
	lacking := find.Found{Name: "cri+containerd/kata-clh", Why: &subject.Unavailable{Reason: "its shim is not here"}}
	for name, c := range map[string]struct {
		found  []find.Found
		tried  map[string]error
		status doctor.Status
		why    string
	}{
		"one works":                {[]find.Found{of("cri+containerd/kata", "/a"), of("containerd/kata", "/b")}, map[string]error{"cri+containerd/kata": errors.New("no initrd"), "containerd/kata": nil}, doctor.OK, "available as"},
		"none works":               {[]find.Found{of("cri+containerd/kata", "/a")}, map[string]error{"cri+containerd/kata": errors.New("no initrd")}, doctor.Missing, "available as"},
		"no pod network":           {[]find.Found{of("cri+containerd/kata", "/a"), of("containerd/kata", "/b"), lacking}, nil, doctor.NotTried, "available as cri+containerd/kata, containerd/kata; to measure it: tare overhead cri+containerd/kata --network bridge"},
		"handler without its shim": {[]find.Found{of("cri+containerd/runc", ""), lacking}, nil, doctor.Missing, "no engine here can run it, although these handlers are configured: cri+containerd/kata-clh"},
		"missing VM files": {[]find.Found{{Name: "containerd/kata", Target: handler{info: record.Target{Config: map[string]string{"kata config": "/a", kata.Absent: "initrd /b"}}}}}, nil, doctor.Missing,
			"no engine here can run it, although these handlers are configured: containerd/kata (its configuration names missing files: initrd /b)"},
		"nothing installed": {nil, nil, doctor.Missing, "no engine here can run it; "},
	} {
		if got := kataCheck(c.found, c.tried); got.Status != c.status || !strings.Contains(got.Why, c.why) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := targetCheck(of("cri+containerd/kata", "/a"), nil, false); got.Status != doctor.NotTried || got.Why != "Kata 3.3.0 (Golang), qemu, sandbox_cgroup_only=true, /a" {
		t.Errorf("%+v", got)
	}
}

func TestDoctorReportsBrokenTargetsAsMissing(t *testing.T) {
	for name, want := range map[string]doctor.Status{"containerd/crun": doctor.Missing, "cri+cri-o/crun": doctor.Missing, "isula/crun": doctor.Missing, "cri+isulad/crun": doctor.Missing, "podman/crun": doctor.NotTried, "crun": doctor.NotTried, "containerd/runc": doctor.NotTried} {
		f := find.Found{Name: name, Target: handler{info: record.Target{Name: name}}}
		check.Equal(t, name+" where cgroups are hybrid", targetCheck(f, nil, true).Status, want)
		check.Equal(t, name+" elsewhere", targetCheck(f, nil, false).Status, doctor.NotTried)
		check.Equal(t, name+" where it ran", targetCheck(f, map[string]error{name: nil}, true).Status, doctor.OK)
	}
}

func TestOwnCPULimitIsReportedBeforeAndAfterARun(t *testing.T) {
	t.Parallel()
	limit := cgroup.CPULimit{CPUs: 0.05, Group: "/ci/job", Lift: "echo max > /sys/fs/cgroup/ci/job/cpu.max", Periods: 10, Throttled: 2, Held: 1e9}
	with := func(change func(*cgroup.CPULimit)) cgroup.CPULimit {
		l := limit
		change(&l)
		return l
	}
	for _, tt := range []struct {
		name          string
		was, is       cgroup.CPULimit
		before, after string // expected parts of the messages; "" for no finding
	}{
		{"no limit", cgroup.CPULimit{}, cgroup.CPULimit{}, "", ""},
		{"limit above the number of CPUs", with(func(l *cgroup.CPULimit) { l.CPUs = 1e4 }), limit, "", ""},
		{"limit not reached", limit, with(func(l *cgroup.CPULimit) { l.Periods = 99 }), "/ci/job may use no more than 0.05 CPUs", ""},
		{"throttled run", limit, with(func(l *cgroup.CPULimit) { l.Periods, l.Throttled, l.Held = 85, 64, 3_500_000_000 }),
			"/ci/job may use no more than 0.05 CPUs", "was throttled in 62 of 75 periods of the run, for 2.5s in all"},
		{"tare was moved", limit, with(func(l *cgroup.CPULimit) { l.Group, l.Throttled = "/", 99 }), "/ci/job", ""},
	} {
		now := tt.was
		before, after := ownLimit(func() (cgroup.CPULimit, bool) { return now, now.CPUs > 0 })
		now = tt.is
		for when, x := range map[string]struct {
			want string
			code string
		}{"before": {tt.before, finding.OwnLimit}, "after": {tt.after, finding.OwnThrottled}} {
			got := before
			if when == "after" {
				got = after()
			}
			if len(got) != min(len(x.want), 1) || x.want != "" && (got[0].Code != x.code || !strings.Contains(got[0].Message, x.want) || !strings.Contains(got[0].Advice, limit.Lift)) {
				t.Errorf("%s, %s: %+v", tt.name, when, got)
			}
		}
	}
}

func TestRuntimeIsOKOnlyAfterRunningAWorkload(t *testing.T) {
	need.Long(t)
	needRunc(t)
	untouched.Alone(t)
	dir := place(t)
	broken := wrapper(t, dir, "broken", `[ "$verb" = run ] && { echo "drop all controllers from cgroupv2" >&2; exit 1; }`)
	runtimes := filepath.Join(dir, "bin")
	must.OK(t, os.MkdirAll(runtimes, 0o755))
	must.OK(t, os.Symlink(broken, filepath.Join(runtimes, "crun")))
	t.Setenv("PATH", runtimes+":"+os.Getenv("PATH"))
	for _, args := range [][]string{{"doctor", "--format", "json"}, {"doctor", "--try", "--format", "json"}} {
		out, stderr := ends(t, ExitDone, "", args...)
		var answer struct{ Checks []doctor.Check }
		must.OK(t, json.Unmarshal([]byte(out), &answer))
		tried := len(args) == 4
		for name, want := range map[string]doctor.Status{"host": doctor.OK, "runc": doctor.OK, "crun": doctor.Missing} {
			if !tried {
				want = doctor.NotTried
			}
			i := slices.IndexFunc(answer.Checks, func(c doctor.Check) bool { return c.Name == name })
			if i < 0 || answer.Checks[i].Status != want || want == doctor.Missing && !strings.Contains(answer.Checks[i].Why, "drop all controllers") {
				t.Errorf("%q: %s: %+v\n%s", args, name, answer.Checks[max(i, 0)], stderr)
			}
		}
	}
	ends(t, ExitDone, "nothing was left", "clean")
}

func TestMissingBaselineIsReplacedOrReported(t *testing.T) {
	of := func(names ...string) (all []subject.Target) {
		for _, name := range names {
			all = append(all, handler{info: record.Target{Name: name}})
		}
		return all
	}
	for missing, want := range map[string]string{
		"cri+isulad+cli/runc": "cri+isulad/runc", "docker/runc": "docker+cli/runc", "cri+isulad+cli/crun": "", "isula/runc": "",
	} {
		check.Equal(t, missing, otherWay(missing, of("cri+cri-o/runc", "cri+isulad/runc", "docker+cli/runc")), want)
	}
	dir := place(t)
	plan := filepath.Join(dir, "plan.yaml")
	must.Write(t, plan, "version: 1\nmeasure:\n  - lifecycle: {targets: [host, podman/none-such], missing: skip, subject: podman/none-such, ops: [run], lanes: [1], rounds: 1, warmup: 0}\n")
	ends(t, ExitDone, "", "run", plan, "-q", "-o", "r.jsonl")
	rec := must.Get(record.Load("r.jsonl"))(t)
	if i := slices.IndexFunc(rec.Findings, func(f record.Finding) bool { return f.Target == "podman/none-such" }); i < 0 || rec.Findings[i].Level != finding.Warning || !strings.Contains(rec.Findings[i].Message, "such as the VS columns, are with the baseline instead") {
		t.Errorf("%+v", rec.Findings)
	}
}

func TestDocumentHasPublishedTables(t *testing.T) {
	dir := place(t)
	plan := filepath.Join(dir, "plan.yaml")
	must.Write(t, plan, "version: 1\nmeasure:\n  - lifecycle: {targets: [host], ops: [run], lanes: [1], rounds: 1, warmup: 0}\n")
	against := []string{"--against", "published/isulad-2020"}
	refuses(t, append(words("run "+plan+" -o r.jsonl"), against...), "add -o DIR/")
	refuses(t, append(words("run "+plan+" -o none/"), "--against", "published/kata-io"), "but the plan has no such measure")
	ends(t, ExitDone, "", append(words("run "+plan+" -q -o made/"), against...)...)
	ends(t, ExitDone, "", append(words("report made -o again/"), against...)...)
	for _, folder := range []string{"made", "again"} {
		text := must.Read(t, filepath.Join(folder, "report.md"))
		for _, want := range []string{"Beside iSula performance test", "Client mode, x86: one container; theirs on X86", "Client mode, ARM: one container; theirs on ARM", "theirs: VS Docker", "-54.36%"} {
			check.Contains(t, folder, text, want)
		}
	}
}
