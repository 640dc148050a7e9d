package proof

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// quietly redirects the standard streams of a helper, so that the helper keeps none of
// its parent's streams open.
const quietly = " </dev/null >/dev/null 2>&1 & )"

// A disturbance, or a trick that makes a runtime look faster, must be reported as a
// finding. The honest runtime in the same record must not have this finding.
func TestTimingTricksAreReported(t *testing.T) {
	need.Root(t)
	need.Long(t)
	stranger := exec.CommandContext(t.Context(), "sleep", "1000") // belongs to no sandbox
	must.OK(t, stranger.Start())
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	const limit = `case $verb in create|run) for g in /sys/fs/cgroup/cpu/tare-run-*/trick /sys/fs/cgroup/tare-run-*/trick; do
		[ ! -e $g/cpu.cfs_quota_us ] || echo 2000 >$g/cpu.cfs_quota_us; [ ! -e $g/cpu.max ] || echo 2000 >$g/cpu.max; done;; esac`
	for name, c := range map[string]struct {
		trick string // shell lines before runc, with the operation in $verb, the id in $id, runc in $runc and a folder in $dir
		verb  string // with arguments
		says  []string
	}{
		"helpers that sleep and spin outlive the sandbox": {
			`"$runc" "$@" || exit; case $verb in start|run) ( setsid sleep 1000` + quietly + `; ( setsid sh -c 'while :; do :; done'` + quietly + `;; esac; exit 0`, "lifecycle --rounds 3",
			[]string{"processes that outlived their sandboxes: 16, of 4 of 4 visits (", "sleep, left behind by a runtime's command", "CPU since"}},
		"helper named like a kernel thread outlives the sandbox": {
			`"$runc" "$@" || exit; ln -sf "$(command -v sleep)" "$dir/kworker-u9"; case $verb in start) ( setsid "$dir/kworker-u9" 1000` + quietly + `;; esac; exit 0`, "lifecycle --rounds 3",
			[]string{"processes that outlived their sandboxes: 4, of 4 of 4 visits (kworker-u9, left behind by a runtime's command)"}},
		"delete leaves cgroups behind": {
			`[ $verb != delete ] || { "$runc" "$@" || exit; for g in /sys/fs/cgroup/*/tare-run-*/trick /sys/fs/cgroup/tare-run-*/trick; do [ ! -d $g ] || mkdir -p $g/$id; done; exit 0; }`, "lifecycle --rounds 3",
			[]string{"cgroups that outlived their sandboxes: 4, of 4 of 4 visits, such as /tare-run-"}},
		"CPU limit on a parent of the sandboxes":     {limit, "lifecycle --rounds 3", []string{"/trick (0.02 CPUs) throttled "}},
		"CPU limit on a parent of a started sandbox": {limit, "startup --rounds 4", []string{"/trick (0.02 CPUs) throttled "}},
		"start returns before the workload runs": {
			`[ $verb != start ] || { (sleep 0.3; exec "$runc" "$@") >/dev/null 2>&1 & exit 0; }`, "lifecycle --ops start --rounds 4",
			[]string{" before the workload ran"}},
		"run returns before the workload runs": {
			`[ $verb != run ] || { (sleep 0.3; exec "$runc" "$@") & exit 0; }`, "lifecycle --ops run --rounds 4",
			[]string{" before the workload ran"}},
		"monotonic clock of the workload is behind": {
			`case $verb in create|run) exec unshare --time --monotonic=-1 "$runc" "$@";; esac`, "lifecycle --rounds 2",
			[]string{"its workloads have a clock of their own"}},
		"separate time namespace without an offset": {
			`case $verb in create|run) exec unshare --time "$runc" "$@";; esac`, "lifecycle --rounds 2",
			[]string{"its workloads have a clock of their own"}},
		"first round fills a cache": {
			`[ -e $dir/filled-$verb ] || { : >$dir/filled-$verb; sleep 1; }`, "lifecycle --rounds 20 --warmup 0",
			[]string{"the first round took "}},
		"create runs the workload and state hides it": {
			`case $verb in
			create) root=$2; shift 3; "$runc" --root $root run --detach "$@" || exit; : >$dir/$id; exit 0;;
			state) [ ! -e $dir/$id ] || { "$runc" "$@" | sed 's/"status": "running"/"status": "created"/'; exit; };;
			start) rm -f $dir/$id; exit 0;;
			esac`, "lifecycle --rounds 1 --timeout 3s",
			// The workload's first output may come before start, or in place of the output
			// of state.
			[]string{"failed, warm-up included; the first: timed out waiting for the workload's first output|failed, warm-up included; the first: parse the output of state"}},
		"start does nothing": {
			`[ $verb != start ] || exit 0`, "lifecycle --ops start --rounds 1 --timeout 3s",
			[]string{"2 of 2 failed, warm-up included; the first: timed out waiting for the workload's first output"}},
		"kill does nothing": {
			`[ $verb != kill ] || exit 0`, "lifecycle --ops stop --rounds 1 --timeout 3s",
			[]string{"2 of 2 failed, warm-up included; the first: timed out waiting for the workload's exit"}},
		"sandbox exits after start": {
			`[ $verb != start ] || { "$runc" "$@" || exit; "$runc" --root $2 kill $id KILL; sleep 0.2; exit 0; }`, "lifecycle --ops start --rounds 1",
			[]string{"2 of 2 failed, warm-up included; the first: reported success, but state says \"stopped\", expected \"running\""}},
		"memory limit is too small": {
			`[ $verb != create ] || sed -i 's/"memory":{"limit":[0-9]*/"memory":{"limit":1048576/' $5/config.json`, "lifecycle --ops create --rounds 1",
			[]string{"2 of 2 failed, warm-up included; the first: exit status 1: "}},
		"start succeeds with a nonzero exit code": {
			`[ $verb != start ] || { "$runc" "$@"; exit 3; }`, "lifecycle --ops start --rounds 1",
			[]string{"2 of 2 failed, warm-up included; the first: exit status 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := folders(t)
			runc := need.Tool(t, "runc")
			path := filepath.Join(p.dir, "trick")
			script(t, path, "#!/bin/sh\nrunc=%s\n[ \"$1\" = --version ] && exec $runc --version\nverb=$3\ndir=%s\nfor id; do :; done\n%s\nexec $runc \"$@\"\n", runc, p.dir, c.trick)
			file := filepath.Join(p.dir, "r.jsonl")
			_, text, stderr := invoke(t, append(strings.Fields(c.verb), "runc", "trick="+path, "-q", "-o", file)...)
			rec, _ := stored(p, file, func(*record.Record) (any, error) { return nil, nil })
			for _, want := range c.says {
				said := map[string]bool{} // by target
				for _, f := range rec.Findings {
					said[f.Target] = said[f.Target] || slices.ContainsFunc(strings.Split(want, "|"), func(one string) bool { return strings.Contains(f.Message, one) })
				}
				if !said["trick"] && !said[""] || said["runc"] { // findings without a target are about all targets
					t.Errorf("%q is reported for %v; findings %+v\n%s\n%s", want, said, rec.Findings, text, stderr)
				}
			}
		})
	}
}

// If a CPU limit on tare's own cgroup throttles a run, it is the first finding.
func TestTaresOwnCPULimitIsTheFirstFinding(t *testing.T) {
	need.Root(t)
	need.Long(t)
	p := folders(t)
	hs := must.Get(cgroup.Hierarchies())(t)
	group := cgroup.Prefix + "proof-limit"
	t.Cleanup(func() { must.OK(t, cgroup.Remove(hs, group)) })
	must.OK(t, cgroup.Delegate(hs, group+"/tare", "cpu"))
	h := cgroup.Using(hs, "cpu")[0]
	quota := map[int]string{1: "cpu.cfs_quota_us", 2: "cpu.max"}[h.Version]
	must.OK(t, os.WriteFile(filepath.Join(h.Mount, group, quota), []byte("10000"), 0)) // of 100 ms
	file := filepath.Join(p.dir, "r.jsonl")
	c := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$0" && exec "$@"`, filepath.Join(h.Mount, group, "tare", "cgroup.procs"),
		must.Get(os.Executable())(t), "lifecycle", "runc", "--rounds", "2", "-q", "-o", file)
	c.Env = append(os.Environ(), tareEnv+"=1")
	out, err := c.CombinedOutput()
	must.OK(t, err)
	rec, _ := stored(p, file, func(*record.Record) (any, error) { return nil, nil })
	want := "tare's own cgroup /" + group + " may use no more than 0.1 CPUs, and was throttled in "
	if !slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return strings.HasPrefix(f.Message, want) }) {
		t.Errorf("no finding %q in %+v", want, rec.Findings)
	}
	if _, findings, _ := strings.Cut(string(out), "findings"); !strings.HasPrefix(strings.Join(strings.Fields(findings), " "), "warning "+want) {
		t.Errorf("the CPU limit is not the first finding:\n%s", out)
	}
}

// Leftovers of a runtime below a shim are found like those below a lane.
func TestHelperBelowAShimIsFound(t *testing.T) {
	d := engines.Containerd(t, engines.V1)
	path := filepath.Join(t.TempDir(), "trick")
	script(t, path, "#!/bin/sh\n%s \"$@\" || exit\ncase \" $* \" in *' start '*) ( setsid sleep 30"+quietly+";; esac\nexit 0\n", need.Tool(t, "runc"))
	target := must.Get(containerd.New(t.Context(), "containerd/trick", path, "", subject.Engine{Address: d.Address}))(t)
	meter := must.Get(snapshot.New())(t)
	defer meter.Close()
	t.Cleanup(func() { must.OK(t, cgroup.Remove(must.Get(cgroup.Hierarchies())(t), cgroup.Prefix+"helper")) })
	plan := lifecycle.Defaults()
	plan.Rounds, plan.Budget = 2, time.Minute
	_, j, err := lifecyclerun.Run(t.Context(), lifecyclerun.Options{Plan: plan, Targets: []subject.Target{target}, Meter: meter, Options: run.Options{
		RunID: "helper", Header: record.Header{Environment: record.Environment{CPUs: 2}},
		Dirs: func(string) (string, string, error) { return t.TempDir(), t.TempDir(), nil },
	}})
	must.OK(t, err)
	for _, f := range j.Found {
		if strings.Contains(f.Message, "processes that outlived their sandboxes: 6, of 3 of 3 visits (sleep, started by the shim)") {
			return
		}
	}
	t.Errorf("findings %+v", j.Found)
}
