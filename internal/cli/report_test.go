package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// stored writes a record of one target and returns its path.
func stored(t *testing.T, dir, name string, failed bool) string {
	t.Helper()
	l := lifecycle.Defaults()
	l.Ops = append(l.Ops[:0], "create")
	text := must.JSON(t, l)
	path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".jsonl")
	w, err := record.Create(path)
	must.OK(t, err)
	write := func(line any) {
		must.OK(t, w.Write(line))
	}
	write(record.Header{Schema: record.Schema, RunID: "id" + name[:1], Experiment: "lifecycle", Plan: text, Environment: record.Environment{CPUs: 2}})
	write(record.Target{Name: name, Kind: "docker", Version: "27.5.1", Clock: "host", Operations: map[string]record.Operation{
		"create": {Command: "create ID", Done: record.StampReturned, Means: "it was answered"}}})
	for round := range 10 {
		b := record.Batch{Phase: record.PhaseMeasure, Round: round, Target: name, Op: "create", Lanes: 1, Released: 1000,
			Samples: []record.Sample{{Start: 1000, Returned: 1000 + 42_000_000}}}
		if failed && round == 9 {
			b.Samples[0].Failure = &record.Failure{Kind: record.FailError, Detail: "no space left"}
		}
		write(b)
	}
	write(record.End{Status: "done", Why: "rounds", Batches: 10})
	must.OK(t, w.Close())
	return path
}

func TestSeveralRecordsAreReportedAtOnce(t *testing.T) {
	dir := t.TempDir()
	docker, podman := stored(t, dir, "docker/runc", false), stored(t, dir, "podman/runc", false)
	for _, format := range []string{"text", "md", "csv", "json"} {
		ends(t, ExitDone, "docker/runc|podman/runc", "report", docker, podman, "--format", format)
	}
	ends(t, ExitDone, "", "report", docker, podman, "--subject", "podman/runc") // which is in the second one
	refuses(t, []string{"report", docker, podman, "--subject", "isula/runc"}, "isula/runc")
	ends(t, ExitFailed, "", "report", docker, stored(t, dir, "isula/runc", true)) // of a failure in the second one
}

func TestWhatCannotBeReadIsToldOfBesideTheOthers(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	good, failed := stored(t, dir, "docker/runc", false), stored(t, dir, "isula/runc", true)
	for name, test := range map[string]struct {
		of   string
		code int
	}{"of one that is good": {good, ExitUsage}, "of one with failures, which weigh more": {failed, ExitFailed}} {
		for _, f := range export.Formats {
			code, out, stderr := tare(t, "report", "none\x1b[2J.jsonl", test.of, empty, "--format", f.Name)
			if _, alone, _ := tare(t, "report", test.of, "--format", f.Name); code != test.code || out != alone {
				t.Errorf("%s as %s: exit %d\n%.500s", name, f.Name, code, out)
			}
			for _, want := range []string{`none\x1b[2J.jsonl: no such file`, empty + ": no record"} {
				if strings.Count(stderr, want) != 1 {
					t.Errorf("%s as %s: %q is not once in %q", name, f.Name, want, stderr)
				}
			}
		}
	}
}

func TestRecordsStandBesidePublishedFigures(t *testing.T) {
	dir := t.TempDir()
	docker, podman := stored(t, dir, "docker/runc", false), stored(t, dir, "podman/runc", false)
	here, err := os.Getwd()
	must.OK(t, err)
	t.Chdir(dir) // the figures come with the program
	for _, format := range []string{"text", "md", "csv", "json"} {
		theirs := map[string]string{"text": "287", "md": "287", "csv": "2.87e+08", "json": "287000000"}[format]
		if _, stderr := ends(t, ExitDone, theirs+"|42|docker/runc|podman/runc", "report", docker, podman, "--against", "published/isulad-2020", "--format", format); stderr != "" {
			t.Errorf("%s: %s", format, stderr)
		}
	}
	for name, test := range map[string]struct {
		args []string
		want string
	}{
		"an unknown publication": {[]string{"--against", "published/nobody-1999"}, "published/isulad-2020"},
		"a record":               {[]string{"--against", podman}, "tare compare A B"},
		"another experiment's":   {[]string{"--against", "published/kata-io"}, "these published figures are of storage, and this is a record of lifecycle"},
		"a subject besides":      {[]string{"--against", "published/isulad-2020", "--subject", "docker/runc"}, "leave one of the two out"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, append([]string{"report", docker}, test.args...), test.want) })
	}
	ends(t, ExitDone, "too short 0.2828 s|512 MiB", "report", filepath.Join(here, "../../published/kata-io/sysbench.jsonl"), "--against", "published/kata-io")
	ends(t, ExitFailed, "", "report", stored(t, dir, "isula/runc", true), "--against", "published/isulad-2020")
}

func TestAnErrorThatPointsIntoALineKeepsItsColumns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := tare(t, "compare", stored(t, dir, "runc", false), stored(t, dir, "crun", false), "--filter", "quantity:(")
	if _, below, found := strings.Cut(stderr, "\n          quantity:(\n"); code != ExitUsage || !found || strings.TrimLeft(below, " ") != "^\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestAFormatOfAnotherInstrumentIsCalledSo(t *testing.T) {
	t.Parallel()
	refuses(t, []string{"report", stored(t, t.TempDir(), "runc", false), "--format", "chrome"}, "chrome is of startup only, and not of lifecycle")
}
