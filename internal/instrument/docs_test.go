package instrument_test

import (
	"os"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestThePageOfFiguresNamesEveryQuantityAndLabel(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/figures.md")
	must.OK(t, err)
	for _, name := range names(t) {
		j := judged(t, load(t, name))
		missing := map[string]bool{}
		for _, f := range j.Figures() {
			_, section, found := strings.Cut(string(text), "\n## "+f.Experiment+"\n")
			if !found {
				t.Fatalf("the page has no section %s", f.Experiment)
			}
			section, _, _ = strings.Cut(section, "\n## ")
			row := ""
			for line := range strings.Lines(section) {
				if cells := strings.Split(line, "|"); len(cells) > 2 && strings.Contains(cells[1], "`"+f.Quantity+"`") {
					row = line
				}
			}
			if !strings.Contains(row, string(f.Unit)) {
				missing[f.Quantity+" in "+string(f.Unit)] = true
			}
			for _, l := range f.Labels {
				if !strings.Contains(row, l.Key) && !strings.Contains(section, "`"+l.Key+"`") {
					missing[f.Quantity+" with "+l.Key] = true
				}
			}
		}
		for what := range missing {
			t.Errorf("%s: the section has no %s", name, what)
		}
	}
}
