package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/thousand"
	"github.com/tare-bench/tare/record"
)

// fleetOf writes one record per node of a fleet.
func fleetOf(t *testing.T, fleet thousand.Fleet) (string, *thousand.Fleet) {
	t.Helper()
	dir := t.TempDir()
	must.OK(t, fleet.Write(dir))
	return dir, &fleet
}

// outliersOf returns the findings of a JSON report over nodes, by node.
func outliersOf(t *testing.T, out string) map[string]record.Finding {
	t.Helper()
	var documents []struct{ Findings []record.Finding }
	if err := json.Unmarshal([]byte(out), &documents); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	found := map[string]record.Finding{}
	for _, f := range documents[0].Findings {
		name, _, _ := strings.Cut(f.Message, ":")
		found[name] = f
	}
	return found
}

func TestManyNodesAreOneReportWithOutliers(t *testing.T) {
	t.Parallel()
	dir, fleet := fleetOf(t, thousand.Fleet{Nodes: 30, Lanes: []int{1, 4}, Rounds: 7})
	out, stderr := ends(t, ExitDone, "starts on every node|lifecycle over 30 nodes|outliers: 5 of 30 nodes|AMD EPYC 9R14 × 8|Intel Xeon 8488C × 16|6.12.9-1-amd64|"+
		"kernel is confounded with kernel build|failed 0/8400|governor|on every node", "report", dir)
	check.Equal(t, "stderr", stderr, "")
	if _, same, _ := tare(t, "report", dir, "--over", "node"); same != out {
		t.Errorf("the report requested explicitly differs:\n%s", same)
	}
	_, out, _ = tare(t, "report", dir, "--over", "node", "--format", "json")
	found := outliersOf(t, out)
	for node, word := range fleet.Unlike() {
		f, ok := found[node]
		if !ok || f.Code != "outlier-node" || !strings.Contains(f.Advice, word) {
			t.Errorf("%s, with %s: %+v", node, word, f)
		}
		delete(found, node)
	}
	if len(found) > 0 {
		t.Errorf("unexpected outliers: %+v", found)
	}
	_, out, _ = tare(t, "report", dir, "--over", "node", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) < 30*100 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	node, level := slices.Index(rows[0], "node"), slices.Index(rows[0], "nodes")
	for _, row := range rows[1:] {
		if (row[0] == "") != (row[level] != "") || row[0] != "" && row[node] == "" {
			t.Fatalf("figure belongs neither to a node nor to all nodes: %q", row)
		}
	}
}

func TestFewNodesHaveSeparatePagesByDefault(t *testing.T) {
	t.Parallel()
	dir, _ := fleetOf(t, thousand.Fleet{Nodes: 9, Lanes: []int{1}, Rounds: 6})
	last := filepath.Join(dir, "node-0008", "lifecycle.jsonl")
	ends(t, ExitDone, "lifecycle over 9 nodes|not detectable with fewer than 10 nodes", "report", dir) // nine nodes give one report without outliers
	tare(t, "label", last, "node=")
	if _, out, _ := tare(t, "report", dir); strings.Count(out, "failed 0/") != 9 || strings.Contains(out, "over 9 nodes") {
		t.Errorf("with an unlabelled record, the records have no separate pages\n%.2000s", out)
	}
	ends(t, ExitDone, "lifecycle over 9 nodes", "report", dir, "--over", "node")
	ends(t, ExitDone, ",node-0008/lifecycle,", "report", dir, "--over", "rack", "--format", "csv") // a record without the label is named by its file
	must.OK(t, os.Remove(last))
	if _, out, _ := tare(t, "report", dir); strings.Count(out, "failed 0/") != 8 {
		t.Errorf("eight records have no separate pages\n%.2000s", out)
	}
	for _, args := range [][]string{{"-o", filepath.Join(dir, "new")}, {"--against", "published/isulad-2020"}} {
		refuses(t, append([]string{"report", dir, "--over", "node"}, args...), "--over")
	}
}

func TestFleetsAreComparedNodeByNode(t *testing.T) {
	t.Parallel()
	a, _ := fleetOf(t, thousand.Fleet{Nodes: 12, Lanes: []int{1}, Rounds: 6, Name: "a"})
	b, _ := fleetOf(t, thousand.Fleet{Nodes: 12, Lanes: []int{1}, Rounds: 6, Name: "b", Slower: 1.5})
	code, out, stderr := tare(t, "compare", "old="+a, "new="+b, "--unlike", "--filter", "quantity:latency", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if code != ExitDone || err != nil {
		t.Fatalf("exit %d, %v, %s", code, err, stderr)
	}
	column, shift, n := slices.Index(rows[0], "compared"), slices.Index(rows[0], "shift"), 0
	for _, row := range rows[1:] {
		if row[column] != "" {
			n++
			check.That(t, strings.HasPrefix(row[shift], "0."), "wrong shift for a 50%% increase: %q", row)
		}
	}
	check.That(t, n == 8, "%d comparisons of 2 targets in 4 operations\n%s", n, out)
}

func TestFoldersAreReadRecursivelyWithoutDuplicates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "2026", "03")
	must.OK(t, os.MkdirAll(deep, 0o755))
	commits(t, deep, 24)
	want := map[string]string{}
	for _, verb := range []string{"history", "report"} {
		_, want[verb], _ = tare(t, verb, dir)
	}
	text := must.Read(t, filepath.Join(deep, "3.jsonl"))
	for name, text := range map[string]string{"garbled.jsonl": "x", "zcopy.jsonl": text, "notes.txt": "x"} {
		must.Write(t, filepath.Join(dir, name), text)
	}
	for verb, code := range map[string]int{"history": ExitRegressed, "report": ExitUsage} {
		got, out, stderr := tare(t, verb, dir)
		if got != code || out != want[verb] {
			t.Errorf("tare %s: exit %d\n%s\nwant\n%s", verb, got, out, want[verb])
		}
		if strings.Count(stderr, "garbled.jsonl: not a tare record") != 1 || strings.Count(stderr, "it counts once") != 1 || strings.Contains(stderr, "notes") {
			t.Errorf("tare %s printed %s", verb, stderr)
		}
	}
	ends(t, ExitUsage, "not a tare record", "history", filepath.Join(dir, "garbled.jsonl"), dir) // a file named explicitly is not skipped
}

// Choosing between several copies is tested in package record.
func TestCompleteFileOfARunIsPreferred(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole := must.Read(t, stored(t, t.TempDir(), "docker/runc", false))
	unended := whole[:strings.LastIndex(whole, `{"type":"end"`)]
	for name, text := range map[string]string{
		"one": whole, "a/b": unended, "a/m": whole, "two": unended + whole, "base": strings.Replace(whole, `"idd"`, `"ide"`, 1),
	} {
		must.Write(t, filepath.Join(dir, name+".jsonl"), text)
	}
	for _, verb := range []string{"report NEW", "compare --unlike base=BASE new=NEW", "gate --unlike base=BASE new=NEW", "history NEW"} {
		printed := func(of string) string {
			line := strings.NewReplacer("BASE", filepath.Join(dir, "base.jsonl"), "NEW", filepath.Join(dir, of)).Replace(verb)
			_, out, _ := tare(t, words(line)...)
			return out
		}
		want := printed("one.jsonl")
		for _, of := range []string{"a", "two.jsonl"} {
			if got := printed(of); got != want || got == "" {
				t.Errorf("%s of %s: %s\nwant\n%s", verb, of, got, want)
			}
		}
	}
}

func TestNodeWithoutStartedPlanHasNoRecord(t *testing.T) {
	t.Parallel()
	a, dir := newApp(Streams{}, all.Instruments, performers), t.TempDir()
	whole := filepath.Join("..", "..", "record", "testdata", "v1", "app.jsonl")
	for name, c := range map[string]struct {
		files []string
		left  int
	}{
		"no-document": {[]string{filepath.Join(dir, "document")}, 0},
		"one-of-two":  {[]string{filepath.Join(dir, "document"), whole}, 1},
	} {
		path := filepath.Join(dir, name+".jsonl")
		if err := a.joinNode(c.files, path, "node-1"); err == nil {
			t.Errorf("%s: the missing file is not reported", name)
		}
		if there, _ := filepath.Glob(path); len(there) != c.left {
			t.Errorf("%s: files left: %q", name, there)
		}
	}
}

func TestRenderedScheduleReplacesTheEarlierOne(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nightly.yaml")
	named := regexp.MustCompile(`(?m)^  name: (tare-\S+)$`)
	render := func(rounds, image, namespace, schedule string) (names []string) {
		t.Helper()
		text := "version: 1\nmeasure:\n  - lifecycle: {targets: [host], lanes: [1], rounds: " + rounds + "}\n"
		must.Write(t, path, text)
		code, out, said := tare(t, "fleet", "render", path, "--nodes", "metadata.name in (a,b)", "--results", "pvc:r",
			"--image", image, "--namespace", namespace, "--schedule", schedule)
		for _, m := range named.FindAllStringSubmatch(out, -1) {
			names = append(names, m[1])
		}
		if code != 0 || len(names) != 3 {
			t.Fatalf("exit %d: %s%s", code, out, said)
		}
		return names
	}
	first := render("12", "tare:1", "bench", "0 3 * * *")
	check.Equal(t, "of a changed plan, image and schedule", render("13", "tare:2", "bench", "0 4 * * *"), first)
	for what, other := range map[string][]string{
		"another namespace": render("12", "tare:1", "else", "0 3 * * *"),
		"Jobs":              render("12", "tare:1", "bench", ""),
	} {
		for i := range other {
			check.That(t, other[i] != first[i], "for %s, %q replaces the CronJob's", what, other[i])
		}
	}
	path = filepath.Join(filepath.Dir(path), "weekly.yaml")
	if other := render("12", "tare:1", "bench", "0 3 * * *"); slices.Equal(first, other) {
		t.Errorf("two plans have the same name %q", other)
	}
}
