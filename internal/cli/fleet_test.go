package cli

import (
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestANodeWhosePlanDidNotBeginLeavesNoRecord(t *testing.T) {
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
			t.Errorf("%s: nothing is said of what is missing", name)
		}
		if there, _ := filepath.Glob(path); len(there) != c.left {
			t.Errorf("%s: left are %q", name, there)
		}
	}
}

func TestAScheduleRenderedAnewReplacesWhatItMadeBefore(t *testing.T) {
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
	if again := render("13", "tare:2", "bench", "0 4 * * *"); !slices.Equal(first, again) {
		t.Errorf("of a changed plan, image and schedule %q stand beside %q", again, first)
	}
	for what, other := range map[string][]string{
		"another namespace": render("12", "tare:1", "else", "0 3 * * *"),
		"Jobs":              render("12", "tare:1", "bench", ""),
	} {
		for i := range other {
			if other[i] == first[i] {
				t.Errorf("of %s %q replaces a CronJob's", what, other[i])
			}
		}
	}
	path = filepath.Join(filepath.Dir(path), "weekly.yaml")
	if other := render("12", "tare:1", "bench", "0 3 * * *"); slices.Equal(first, other) {
		t.Errorf("two plans are both called %q", other)
	}
}
