package proof

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	lifecyclerun "github.com/tare-bench/tare/internal/instrument/lifecycle/run"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// quietly is what a helper's standard streams are, so that it holds nothing of its parent's.
const quietly = " </dev/null >/dev/null 2>&1 & )"

// A trick of a runtime that looks faster than it is, or that is unlucky, is said in one
// sentence, and not of the honest runtime beside it.
func TestATrickOfTimeIsSaid(t *testing.T) {
	need.Root(t)
	need.Long(t)
	stranger := exec.CommandContext(t.Context(), "sleep", "1000") // belongs to no sandbox
	must.OK(t, stranger.Start())
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	const limit = `case $verb in create|run) for g in /sys/fs/cgroup/cpu/tare-run-*/trick /sys/fs/cgroup/tare-run-*/trick; do
		[ ! -e $g/cpu.cfs_quota_us ] || echo 2000 >$g/cpu.cfs_quota_us; [ ! -e $g/cpu.max ] || echo 2000 >$g/cpu.max; done;; esac`
	for name, c := range map[string]struct {
		trick string // lines of a shell before runc, with the operation in $verb, the id in $id and runc in $runc
		verb  string // with arguments
		says  []string
	}{
		"helpers that sleep and spin": {
			`"$runc" "$@" || exit; case $verb in start|run) ( setsid sleep 1000` + quietly + `; ( setsid sh -c 'while :; do :; done'` + quietly + `;; esac; exit 0`, "lifecycle --rounds 3",
			[]string{"processes that outlived their sandboxes: 16, of 4 of 4 visits (", "sleep, left behind by a runtime's command", "CPU since"}},
		"a CPU limit above the sandboxes":          {limit, "lifecycle --rounds 3", []string{"/trick (0.02 CPUs) held back "}},
		"a CPU limit above the sandbox of a start": {limit, "startup --rounds 4", []string{"/trick (0.02 CPUs) held back "}},
	} {
		t.Run(name, func(t *testing.T) {
			p := folders(t)
			runc := need.Tool(t, "runc")
			path := filepath.Join(p.dir, "trick")
			script(t, path, "#!/bin/sh\nrunc=%s\n[ \"$1\" = --version ] && exec $runc --version\nverb=$3\nfor id; do :; done\n%s\nexec $runc \"$@\"\n", runc, c.trick)
			file := filepath.Join(p.dir, "r.jsonl")
			_, text, stderr := invoke(t, append(strings.Fields(c.verb), "runc", "trick="+path, "-q", "-o", file)...)
			rec, _ := stored(p, file, func(*record.Record) (any, error) { return nil, nil })
			for _, want := range c.says {
				said := map[string]bool{} // by target
				for _, f := range rec.Findings {
					said[f.Target] = said[f.Target] || strings.Contains(f.Message, want)
				}
				if !said["trick"] || said["runc"] {
					t.Errorf("%q is said of %v; %+v\n%s\n%s", want, said, rec.Findings, text, stderr)
				}
			}
		})
	}
}

// What a runtime leaves below a shim is found as what it leaves below a lane.
func TestAHelperBelowAShimIsFound(t *testing.T) {
	d := engines.Containerd(t, engines.V1)
	path := filepath.Join(t.TempDir(), "trick")
	script(t, path, "#!/bin/sh\n%s \"$@\" || exit\ncase \" $* \" in *' start '*) ( setsid sleep 30"+quietly+";; esac\nexit 0\n", need.Tool(t, "runc"))
	target := must.Get(containerd.New(t.Context(), "containerd/trick", path, "", subject.Engine{Address: d.Address}))(t)
	meter := must.Get(snapshot.New())(t)
	defer meter.Close()
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
