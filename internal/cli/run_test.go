package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

const threeMeasures = "version: 1\nmeasure:\n- overhead: {phases: [10M, 1G]}\n- lifecycle: {title: x}\n- storage: {jobs: [read]}\n- bpf: {idle: 4s}\n"

// laid is what flags make of a plan, and what is said meanwhile.
func laid(t *testing.T, text string, args ...string) ([]plan.Measure, string, error) {
	t.Helper()
	p, err := plan.Parse("plan.yaml", []byte(text), all.Instruments)
	must.OK(t, err)
	var said strings.Builder
	var sets []*option.Set
	for _, v := range all.Instruments {
		sets = append(sets, option.Of(v.New()))
	}
	own := pflag.NewFlagSet("run", pflag.ContinueOnError)
	given := option.Collect(own, sets...)
	must.OK(t, own.Parse(args))
	err = override(t.Context(), newApp(Streams{Err: &said}, all.Instruments, nil), given, p.Measure)
	return p.Measure, said.String(), err
}

func TestEveryMeasureOfAPlanTakesAScale(t *testing.T) {
	m, said, err := laid(t, threeMeasures, "--scale", "0.1", "--rounds", "2")
	must.OK(t, err)
	o, s, b := m[0].Options.(*overhead.Options), m[2].Options.(*storage.Options), m[3].Options.(*bpf.Options)
	if strings.Join(o.Phases, ",") != "idle,1M,102M" || s.Scale != 0.1 || b.Idle.String() != "400ms" || b.Duration.String() != "3s" || o.Rounds+s.Rounds+b.Rounds != 6 {
		t.Errorf("%+v\n%+v\n%+v", o, s, b)
	}
	if said != "--rounds: for all measures\n--scale: for overhead (1), storage (3), bpf (4); not for lifecycle (2)\n" {
		t.Errorf("said %q", said)
	}
}

// A case is flags of tare run, and the measures of a plan.
func TestFlagsAndTargetsThatAPlanHasNoUseForAreRefused(t *testing.T) {
	golden.Cases(t, filepath.Join(testdata, "plans.txt"), func(t *testing.T, input string) string {
		flags, measures, _ := strings.Cut(input, "\n")
		_, _, err := laid(t, "version: 1\nmeasure:\n"+measures+"\n", strings.Fields(strings.TrimPrefix(flags, "tare run"))...)
		return regexp.MustCompile(`(?m), --.*$`).ReplaceAllString(fmt.Sprint(err), ", …") // all flags of a measure
	})
}

// An image that is named is a program's, whose own command then counts and not that of the
// plan's; beside targets of a cluster it is theirs, unless it can only be a program's.
func TestAnImageIsAProgramsOrAClusters(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "app.tar")
	must.OK(t, os.WriteFile(archive, nil, 0o600))
	const own, with = "workload: {command: [/probe, serve, '1']}", "workload: {image: old, command: [serve]}"
	for _, c := range []struct {
		targets, workload, args    string
		image, command, ofClusters string
	}{
		{"[runc]", own, "--image app:1", "app:1", "", ""},
		{"[runc]", own, "--image app:1 --command serve", "app:1", "serve", ""},
		{"[runc]", with, "--image app:1", "app:1", "serve", ""},
		{"[runc]", own, "", "", "/probe serve 1", ""},
		{"[kubernetes/runc]", own, "--image tare:1", "", "/probe serve 1", "tare:1"},
		{"[kubernetes/runc, runc]", own, "--image " + archive, archive, "", ""},
		{"[kubernetes]", own, "--image app:1 --pull", "app:1", "", ""},
	} {
		m, _, err := laid(t, "version: 1\nmeasure:\n- lifecycle: {targets: "+c.targets+", ops: [run], "+c.workload+"}\n", strings.Fields(c.args)...)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		o := m[0].Options.(*lifecycle.Options)
		if w := o.Workload; w.Image != c.image || strings.Join(w.Command, " ") != c.command || o.Engines["kubernetes"].Image != c.ofClusters {
			t.Errorf("%+v: of the program %+v, of clusters %+v", c, w, o.Engines)
		}
	}
}

func TestEnginesOfFlagsJoinThoseOfThePlan(t *testing.T) {
	m, _, err := laid(t, "version: 1\nmeasure:\n- lifecycle: {targets: [runc], engines: {docker: {address: /a, command: c}}}\n",
		"--docker-host", "/b", "--cri", "cri-o=unix:///x", "--engine-arg", "podman=--log-level", "--engine-arg", "podman=error", "--network", "host")
	must.OK(t, err)
	l := m[0].Options.(*lifecycle.Options)
	if d, p := l.Engines["docker"], l.Engines["podman"]; d.Address != "/b" || d.Command != "c" || d.Network != "host" || strings.Join(p.Args, " ") != "--log-level error" ||
		l.Engines["cri+cri-o"].Address != "unix:///x" || len(l.Targets) != 1 {
		t.Errorf("%+v", l)
	}
	own := lifecycle.Defaults()
	if err := asked(t, &own, "--cri", "cri-o=unix:///x"); err != nil || strings.Join(own.Targets, " ") != "cri+cri-o" {
		t.Errorf("without a plan an endpoint is no target: %v, %q", err, own.Targets)
	}
}

func TestAPathThatCannotBeWhatItIsTakenForIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "x.html")
	if _, _, err := newApp(Streams{}, all.Instruments, nil).createRecord(page, "storage", "id"); err == nil || !strings.Contains(err.Error(), "tare report RECORD --format FORMAT") {
		t.Errorf("a report for a record: %v", err)
	}
	if _, err := os.Stat(page); err == nil {
		t.Error("the record was made")
	}
	refuses(t, []string{"run", dir}, "tare report "+dir+" makes")
}
