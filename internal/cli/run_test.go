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
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/fake"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
)

const threeMeasures = "version: 1\nmeasure:\n- overhead: {phases: [10M, 1G]}\n- lifecycle: {title: x}\n- storage: {jobs: [read]}\n- bpf: {idle: 4s}\n"

// laid returns the plan with flags applied, and the printed text.
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

func TestEveryMeasureAcceptsAScale(t *testing.T) {
	m, said, err := laid(t, threeMeasures, "--scale", "0.1", "--rounds", "2")
	must.OK(t, err)
	o, s, b := m[0].Options.(*overhead.Options), m[2].Options.(*storage.Options), m[3].Options.(*bpf.Options)
	if strings.Join(o.Phases, ",") != "idle,1M,102M" || s.Scale != 0.1 || b.Idle.String() != "400ms" || b.Duration.String() != "500ms" || o.Rounds+s.Rounds+b.Rounds != 6 {
		t.Errorf("%+v\n%+v\n%+v", o, s, b)
	}
	check.Equal(t, "said", said, "--rounds: for all measures\n--scale: for overhead (1), storage (3), bpf (4); not for lifecycle (2)\n")
}

// Each case has flags of tare run and the measures of a plan. If a flag sets an image,
// the image's own command runs instead of the plan's. For cluster targets the flag sets
// the image of the cluster, unless it can only be the image of a user's program. ARCHIVE
// stands for the path of an archive.
func TestFlagsOverridePlansOrAreRefused(t *testing.T) {
	archive := filepath.Join(t.TempDir(), "app.tar")
	must.Write(t, archive, "")
	golden.Cases(t, filepath.Join(testdata, "plans.txt"), func(t *testing.T, input string) string {
		flags, measures, _ := strings.Cut(strings.ReplaceAll(input, "ARCHIVE", archive), "\n")
		m, _, err := laid(t, "version: 1\nmeasure:\n"+measures+"\n", strings.Fields(strings.TrimPrefix(flags, "tare run"))...)
		if err != nil {
			return regexp.MustCompile(`(?m), --.*$`).ReplaceAllString(err.Error(), ", …") // all flags of a measure
		}
		l := m[0].Options.(*lifecycle.Options)
		said := fmt.Sprintf("%q, image %q, command %q, engines %+v", l.Targets, l.Workload.Image, l.Workload.Command, l.Engines)
		return strings.ReplaceAll(said, archive, "ARCHIVE")
	})
}

func TestPathOfWrongKindIsRefusedWithAdvice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	page := filepath.Join(dir, "x.html")
	if _, _, err := newApp(Streams{}, all.Instruments, nil).createRecord(page, "storage", "id"); err == nil || !strings.Contains(err.Error(), "tare report RECORD --format FORMAT") {
		t.Errorf("report path used as a record: %v", err)
	}
	if _, err := os.Stat(page); err == nil {
		t.Error("the record was created")
	}
	refuses(t, []string{"run", dir}, "tare report "+dir+" reports its records")
}

// afar is a target with containers that may run on another machine.
type afar struct {
	fake.Target
	why string
}

func (a *afar) Elsewhere() string { return a.why }

func TestRemoteTargetIsNotReportedAsCold(t *testing.T) {
	t.Parallel()
	need.Root(t)
	here := []subject.Target{&fake.Target{Name: "runc"}, &afar{Target: fake.Target{Name: "docker/runc"}}}
	check.Error(t, mayBeCold(here), "")
	err := mayBeCold(append(here, &afar{fake.Target{Name: "docker/crun"}, "the daemon is reached over the network"}))
	if err == nil || !strings.Contains(err.Error(), "docker/crun may not be cold") || !strings.Contains(err.Error(), "over the network") {
		t.Errorf("got %v", err)
	}
}

// TestNoContainerIsReportedRunningAfterReboot creates the folder of a killed run. Its engine
// does not respond.
func TestNoContainerIsReportedRunningAfterReboot(t *testing.T) {
	untouched.Alone(t)
	now := must.Read(t, "/proc/sys/kernel/random/boot_id")
	for name, c := range map[string]struct {
		boot   string // the boot line in the mark, after the run ID
		reboot bool
	}{
		"in another boot":        {"boot 00000000-0000-4000-8000-000000000000\n", true},
		"in this boot":           {"boot " + now, false},
		"mark without a boot id": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			const id = "rebooted"
			own := filepath.Join(workspace.DefaultRoots().Data, id)
			must.OK(t, os.MkdirAll(own, 0o711))
			left := must.JSON(t, []made{{Name: "docker/runc", Engine: subject.Engine{Address: "unix://" + dir + "/gone/docker.sock"}}})
			for file, text := range map[string]string{".tare-run": "tare run " + id + "\n" + c.boot, madeFile: string(left)} {
				must.Write(t, filepath.Join(own, file), text)
			}
			_, stderr := ends(t, ExitUsage, "--forget", "clean")
			if strings.Contains(stderr, "the machine was rebooted after run "+id+": none of its containers is running") != c.reboot {
				t.Error(stderr)
			}
			ends(t, ExitDone, id+": removed", "clean", "--forget")
			if _, err := os.Stat(own); err == nil {
				t.Error("it is still listed")
			}
		})
	}
}
