package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/record"
)

// stored writes a record of one target and returns its path.
func stored(t *testing.T, dir, name string, failed bool) string {
	t.Helper()
	l := lifecycle.Defaults()
	l.Ops = l.Ops[:0]
	l.Ops = append(l.Ops, "create")
	text, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".jsonl")
	w, err := record.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(line any) {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
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
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSeveralRecordsAreReportedAtOnce(t *testing.T) {
	dir := t.TempDir()
	docker, podman := stored(t, dir, "docker/runc", false), stored(t, dir, "podman/runc", false)
	for _, format := range []string{"text", "md", "csv", "json"} {
		code, out, stderr := tare(t, "report", docker, podman, "--format", format)
		if code != ExitDone || !strings.Contains(out, "docker/runc") || !strings.Contains(out, "podman/runc") {
			t.Errorf("%s: exit %d, %s, %s", format, code, out, stderr)
		}
	}
	if code, out, stderr := tare(t, "report", docker, podman, "--subject", "podman/runc"); code != ExitDone {
		t.Errorf("the subject is in the second one: exit %d, %s, %s", code, out, stderr)
	}
	if code, _, stderr := tare(t, "report", docker, podman, "--subject", "isula/runc"); code != ExitUsage || !strings.Contains(stderr, "isula/runc") {
		t.Errorf("a subject that is nowhere: exit %d, %s", code, stderr)
	}
	if code, _, _ := tare(t, "report", docker, stored(t, dir, "isula/runc", true)); code != ExitFailed {
		t.Errorf("a failure in the second one: exit %d", code)
	}
	if code, out, _ := tare(t, "report"); code != ExitUsage || out != "" {
		t.Errorf("no record: exit %d, %s", code, out)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir) // the figures come with the program
	for _, format := range []string{"text", "md", "csv", "json"} {
		code, out, stderr := tare(t, "report", docker, podman, "--against", "published/isulad-2020", "--format", format)
		if code != ExitDone || stderr != "" {
			t.Errorf("%s: exit %d, %s", format, code, stderr)
		}
		for _, want := range []string{map[string]string{"text": "287", "md": "287", "csv": "2.87e+08", "json": "287000000"}[format], "42", "docker/runc", "podman/runc"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in\n%s", format, want, out)
			}
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
		if code, out, stderr := tare(t, append([]string{"report", docker}, test.args...)...); code != ExitUsage || out != "" || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, stderr)
		}
	}
	if code, out, stderr := tare(t, "report", filepath.Join(here, "../../published/kata-io/sysbench.jsonl"), "--against", "published/kata-io"); code != ExitDone || !strings.Contains(out, "too short 0.2828 s") || !strings.Contains(out, "512 MiB") {
		t.Errorf("of storage: exit %d, %s\n%s", code, stderr, out)
	}
	if code, _, _ := tare(t, "report", stored(t, dir, "isula/runc", true), "--against", "published/isulad-2020"); code != ExitFailed {
		t.Errorf("a run with failures: exit %d", code)
	}
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
	code, _, stderr := tare(t, "report", stored(t, t.TempDir(), "runc", false), "--format", "chrome")
	if code != ExitUsage || !strings.Contains(stderr, "chrome is of startup only, and not of lifecycle") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
