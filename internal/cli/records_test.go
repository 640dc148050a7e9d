package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// says has the expected parts of the detailed reports of examples, separated by |.
var says = map[string]string{
	"tare lifecycle host floor runc --rounds 6 -o run.jsonl":                                                                          "host|runc|create",
	"tare overhead host runc --sandboxes 1,5":                                                                                         "runc|workload|residual|a kubelet does not run runc|one more sandbox",
	"tare overhead runc containerd/runc --phases idle,10M,100M --limit cpu=1,memory=1Gi":                                              "idle|1M|10M",
	"tare storage host runc --volume bind --size 8M --jobs randread,write --rounds 1 --ceiling 100ms":                                 "host|runc|bind|write 512k|in short: fio",
	"tare storage runc --volume bind,tmpfs --cache direct,buffered --jobs read --bs 4k --size 4M --rounds 1 --ceiling 0 --drop files": "tmpfs|not direct",
	"tare startup runc --rounds 3":                                                      "runc",
	"tare bpf load --datapath reference -c 10 -t 200ms --idle 100ms --rounds 1":         "tare_connect4|findings",
	"tare bpf quota --cpus 0.5 -c 10 -t 200ms --idle 100ms --heavy 0,100000 --rounds 1": "tare_connect4|findings",
	"tare bpf memory --datapath reference --services 1,100 -c 10 -t 200ms --idle 100ms": "tare_connect4|findings",
}

var recordsAt = regexp.MustCompile(`(?m)^record: (.*)$`)

// check compares the output of a run with reports of its record in every format. It also
// repeats one run of each instrument with the recorded options.
func (again ranAgain) check(t *testing.T, line string, code int, args []string, out, stderr string) {
	t.Helper()
	paths := recordsAt.FindAllStringSubmatch(stderr, -1)
	if len(paths) != 1 || args[0] == "gate" || slices.Contains(args, "--baseline") {
		return // no record, or another kind of report
	}
	path := paths[0][1]
	rec, err := record.Load(path)
	if err != nil {
		t.Error(err)
		return
	}
	if says[line] != "" {
		_, whole, _ := tare(t, "report", path, "--details")
		for part := range strings.SplitSeq(says[line], "|") {
			check.Contains(t, fmt.Sprintf("%s: the report does not say", line), whole, part)
		}
	}
	form := []string{"report", path}
	if i := slices.Index(args, "--format"); i >= 0 {
		form = append(form, args[i:i+2]...)
	}
	if slices.Contains(args, "--details") {
		form = append(form, "--details")
	}
	if now, again, stderr := tare(t, form...); now != code || again != out || stderr != "" {
		t.Errorf("%s: exit %d; the report of the stored record differs\n%s\n%s\n%s", line, now, out, again, stderr)
	}
	experiment := rec.Header.Experiment
	if experiment == "bpf" {
		nothingOf(t, rec)
	}
	if line == "tare overhead host runc --sandboxes 1,5" && slices.ContainsFunc(rec.Findings, func(f record.Finding) bool { return f.Code == "cgroup-leaked" }) {
		t.Errorf("findings %+v", rec.Findings)
	}
	if strings.Contains(line, "--phases idle,10M,100M") && len(rec.Series) != 2*3 {
		t.Errorf("%d series", len(rec.Series))
	}
	if says[line] == "" {
		return
	}
	for _, format := range []string{"md", "csv", "json"} {
		_, first, _ := tare(t, "report", path, "--format", format)
		if now, second, _ := tare(t, "report", path, "--format", format); now != code || first != second || !whole[format](first) {
			t.Errorf("%s as %s: exit %d\n%s", line, format, now, first)
		}
	}
	if again[experiment] {
		return
	}
	again[experiment] = true
	run := []string{"run", path, "-q", "-o", "again-" + experiment + ".jsonl"}
	if experiment == "overhead" {
		run = append(run, "--sandboxes", "1", "--phases", "idle")
	}
	ends(t, ExitDone, "", run...)
}

// ranAgain contains the instruments that were already repeated.
type ranAgain map[string]bool

// commits writes the records of n commits. The second half is slower.
func commits(t *testing.T, dir string, n int) {
	t.Helper()
	text := must.Read(t, stored(t, t.TempDir(), "docker/runc", false))
	for i := range n {
		returned := 42_000_000 + 100_000*(i*7%5) + 4_000_000*(2*i/n)
		one := strings.NewReplacer(`"idd"`, fmt.Sprintf(`"id%d"`, i), "42001000", fmt.Sprint(returned), `"kernel":""`, `"kernel":"6.1.0"`).Replace(text)
		path := filepath.Join(dir, fmt.Sprintf("%d.jsonl", i))
		must.Write(t, path, one)
		ends(t, ExitDone, "", "label", path, fmt.Sprintf("commit=%d", 100+i))
	}
}

func TestHistoryExitsWithItsVerdict(t *testing.T) {
	dir := t.TempDir()
	commits(t, dir, 24)
	t.Chdir(dir)
	commands(t, "history", nil)
	_, out, _ := tare(t, "history", ".", "--format", "csv")
	if rows, err := csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%d rows, %v\n%s", len(rows), err, out)
	}
	_, out, _ = tare(t, "history", ".", "--format", "json")
	schema := must.Get(jsonschema.UnmarshalJSON(strings.NewReader(string(export.Schema))))(t)
	c := jsonschema.NewCompiler()
	must.OK(t, c.AddResource("figures.json", schema))
	var d any
	must.OK(t, json.Unmarshal([]byte(out), &d))
	if err := c.MustCompile("figures.json").Validate(d); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// A record made from logs has no machine until a label names one. A hang in a log makes
// the command fail.
func TestRecordsOfLogsAreComparedByTheirLabels(t *testing.T) {
	logs := must.Get(filepath.Abs(filepath.Join("..", "instrument", "startup", "run", "logfiles", "testdata", "public")))(t)
	place(t)
	named := 0
	commands(t, "logged", func(line, output string) {
		if strings.HasPrefix(line, "label ") {
			named++
		} else if !strings.HasPrefix(line, "startup ") {
			check.Equal(t, line+" counts unknown machines", strings.Contains(output, "is unknown and may be"), named == 0 || named == 1 && strings.HasPrefix(line, "history "))
		}
	}, "LOGS", logs)
}

func TestRecordsAreLabelledJoinedAndRedacted(t *testing.T) {
	stored := must.Get(filepath.Abs(filepath.Join("..", "..", "record", "testdata", "v1")))(t)
	place(t)
	must.Write(t, "a.jsonl", must.Read(t, filepath.Join(stored, "lifecycle.jsonl")))
	commands(t, "labels", nil, "STORED", stored)
	if _, err := os.Stat("k.jsonl"); err == nil {
		t.Error("the failed join left a file")
	}
	if text, err := os.ReadFile("r.jsonl"); err != nil || strings.Contains(string(text), "1a2b") || strings.Contains(string(text), "/run/tare") {
		t.Errorf("the redacted record contains the secret: %v", err)
	}
}

func TestNeighbourImageIsRedactedEverywhere(t *testing.T) {
	t.Parallel()
	text := must.Read(t, filepath.Join("..", "..", "record", "testdata", "v1", "app.jsonl"))
	const own, image = "spin 2cpu", "acme.example/secret:7 /bin/job -t hush"
	for neighbour, stays := range map[string]bool{own: true, image: false} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "a.jsonl"), filepath.Join(dir, "b.jsonl")
		must.Write(t, from, strings.ReplaceAll(text, own, neighbour))
		ends(t, ExitDone, "", "redact", from, "-o", to)
		if got, err := os.ReadFile(to); err != nil || strings.Contains(string(got), neighbour) != stays || strings.Contains(string(got), `"neighbour":"neighbour-1"`) == stays {
			t.Errorf("%s: contains the image: %v, %v", neighbour, !stays, err)
		}
		if code, out, stderr := tare(t, "report", to); code != ExitDone || strings.Contains(out, "beside "+neighbour) != stays {
			t.Errorf("%s: exit %d, %s\n%s", neighbour, code, stderr, out)
		}
	}
}

// stored writes a record with one target and returns its path.
func stored(t *testing.T, dir, name string, failed bool) string {
	t.Helper()
	l := lifecycle.Defaults()
	l.Ops = append(l.Ops[:0], "create")
	text := must.JSON(t, l)
	path := filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".jsonl")
	w := must.Get(record.Create(path))(t)
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
	ends(t, ExitFailed, "", "report", docker, stored(t, dir, "isula/runc", true)) // the second record has a failure
}

func TestUnreadableRecordIsReportedWithTheOthers(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	good, failed := stored(t, dir, "docker/runc", false), stored(t, dir, "isula/runc", true)
	for name, test := range map[string]struct {
		of   string
		code int
	}{"with a good record": {good, ExitUsage}, "with a failed record, which determines the exit code": {failed, ExitFailed}} {
		for _, f := range export.Formats {
			code, out, stderr := tare(t, "report", "none\x1b[2J.jsonl", test.of, empty, "--format", f.Name)
			if _, alone, _ := tare(t, "report", test.of, "--format", f.Name); code != test.code || out != alone {
				t.Errorf("%s as %s: exit %d\n%.500s", name, f.Name, code, out)
			}
			for _, want := range []string{`none\x1b[2J.jsonl: no such file`, empty + ": no record"} {
				check.Equal(t, fmt.Sprintf("%s as %s: occurrences of %q in %q", name, f.Name, want, stderr), strings.Count(stderr, want), 1)
			}
		}
	}
}

func TestRecordsAreComparedWithPublishedFigures(t *testing.T) {
	dir := t.TempDir()
	docker, podman := stored(t, dir, "docker/runc", false), stored(t, dir, "podman/runc", false)
	here := must.Get(os.Getwd())(t)
	t.Chdir(dir) // the published figures are embedded in the program
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
		"unknown publication": {[]string{"--against", "published/nobody-1999"}, "published/isulad-2020"},
		"record":              {[]string{"--against", podman}, "tare compare A B"},
		"other experiment":    {[]string{"--against", "published/kata-io"}, "these published figures are of storage, but the record is of lifecycle"},
	} {
		t.Run(name, func(t *testing.T) { refuses(t, append([]string{"report", docker}, test.args...), test.want) })
	}
	ends(t, ExitDone, "too short 0.2828 s|512 MiB", "report", filepath.Join(here, "../../published/kata-io/sysbench.jsonl"), "--against", "published/kata-io")
	ends(t, ExitFailed, "", "report", stored(t, dir, "isula/runc", true), "--against", "published/isulad-2020")
}

func TestErrorKeepsColumnAlignment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	code, _, stderr := tare(t, "compare", stored(t, dir, "runc", false), stored(t, dir, "crun", false), "--filter", "quantity:(")
	if _, below, found := strings.Cut(stderr, "\n          quantity:(\n"); code != ExitUsage || !found || strings.TrimLeft(below, " ") != "^\n" {
		t.Errorf("exit %d, %s", code, stderr)
	}
}

func TestFormatOfAnotherInstrumentIsRefused(t *testing.T) {
	t.Parallel()
	refuses(t, []string{"report", stored(t, t.TempDir(), "runc", false), "--format", "chrome"}, "format chrome is supported by startup only, not by lifecycle")
}
