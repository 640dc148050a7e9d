package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

func TestAScheduleRenderedAnewReplacesWhatItMadeBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "nightly.yaml")
	named := regexp.MustCompile(`(?m)^  name: (tare-\S+)$`)
	render := func(rounds, image, namespace, schedule string) (names []string) {
		t.Helper()
		text := "version: 1\nmeasure:\n  - lifecycle: {targets: [host], lanes: [1], rounds: " + rounds + "}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
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
