package record

import (
	"cmp"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestALineThatCannotBeTrueIsAProblemAndOneThatLooksOddIsNone(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/refused.txt")
	must.OK(t, err)
	rows := 0
	for row := range strings.Lines(string(text)) {
		c := strings.SplitN(strings.TrimSpace(row), " | ", 4)
		if len(c) != 4 {
			continue
		}
		rows++
		t.Run(c[0]+" "+c[1], func(t *testing.T) {
			t.Parallel()
			line := edited(t, c[0], expanded(c[2]))
			if c[3] == "taken" {
				if got, err := Read(strings.NewReader(headerLine + line)); err != nil || len(got.Problems) != 0 || count(got) != 2 {
					t.Errorf("%v, problems %v", err, got.Problems)
				}
				return
			}
			refused(t, line, c[3])
		})
	}
	if rows < 200 {
		t.Errorf("only %d rows", rows)
	}
}

// expanded writes the short forms of a row out, the inner ones first.
func expanded(edits string) string {
	short := regexp.MustCompile(`(LONG|NAMES|LIST)\((\d+)(?:,([^()]*))?\)`)
	for short.MatchString(edits) {
		edits = short.ReplaceAllStringFunc(edits, func(form string) string {
			m := short.FindStringSubmatch(form)
			n, _ := strconv.Atoi(m[2])
			switch m[1] {
			case "LONG":
				return long(n)
			case "NAMES":
				return numbered(n, cmp.Or(m[3], "[1,2,3]"))
			}
			return list(n, m[3])
		})
	}
	return edits
}

func refused(t *testing.T, line, want string) {
	t.Helper()
	good := `{"type":"finding","code":"good"}` + "\n"
	got, err := Read(strings.NewReader(headerLine + line + good))
	if err != nil || len(got.Problems) != 1 || count(got) != 2 || got.Problems[0].Line != 2 {
		t.Fatalf("%v, %+v", err, got)
	}
	if why := got.Problems[0].Reason; !strings.Contains(why, want) || strings.Contains(why, "\n") {
		t.Errorf("the reason is %q", why)
	}
}
