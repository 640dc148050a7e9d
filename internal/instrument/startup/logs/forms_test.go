package logs

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/golden"
)

// Each form as its writers write it, and as a hostile one would. Of several files each
// begins with a line "--- name".
func TestEveryFormIsReadToTheField(t *testing.T) {
	in2026(t)
	for _, file := range []string{"forms", "runsc", "journal", "dates"} {
		t.Run(file, func(t *testing.T) {
			golden.Cases(t, "testdata/cases/"+file+".txt", func(t *testing.T, text string) string {
				if !strings.HasPrefix(text, "--- ") {
					text = "--- \n" + text
				}
				var sources []Source
				for _, one := range strings.Split("\n"+text, "\n--- ")[1:] {
					name, lines, _ := strings.Cut(one, "\n")
					sources = append(sources, Source{Name: name, Reader: strings.NewReader(lines)})
				}
				all, s := rowsOf(t, sources...)
				return rowsText(all) + countsText(s)
			})
		})
	}
}

func TestAZoneThatIsKnownOnlyLaterIsNoJump(t *testing.T) {
	in2026(t)
	all, _ := rows(t, "", "I0524 10:00:00.500000 1 a.go:1] a\n"+strings.Repeat("x\n", block)+"I0524 10:00:01.500000 1 a.go:1] a\n"+
		"time=\"2026-05-24T10:00:02+01:00\" level=info msg=a\nI0524 10:00:03.500000 1 a.go:1] a\n")
	var times []string
	for _, r := range all {
		times = append(times, r.Time)
	}
	want := []string{"2026-05-24T10:00:00.5Z", "2026-05-24T10:00:01.5Z", "2026-05-24T09:00:02Z", "2026-05-24T10:00:03.5Z"}
	if !slices.Equal(times, want) {
		t.Errorf("%v, want %v", times, want)
	}
}
