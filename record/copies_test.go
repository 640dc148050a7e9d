package record

import (
	"strings"
	"testing"
)

func TestOfCopiesAWholeOneCountsThenTheFullestThenTheFirst(t *testing.T) {
	t.Parallel()
	whole, lines := written(t, few())
	labelled := whole + `{"type":"label","key":"node","value":"a"}` + "\n"
	damaged := strings.Replace(whole, lines[3], strings.Repeat(lines[3], 9)+"{\n", 1)
	cut := strings.Join(lines[:4], "") + strings.Repeat(lines[3], 9)
	another := strings.ReplaceAll(whole, "tare-1f", "tare-2f")
	for name, c := range map[string]struct {
		files []string
		of    int // which file counts
		nth   int // and which of its records
	}{
		"of equals the first":            {[]string{whole, whole}, 0, 0},
		"before what is damaged":         {[]string{damaged, whole}, 1, 0},
		"before what is cut off":         {[]string{cut, whole, damaged}, 1, 0},
		"with a label it is fuller":      {[]string{whole, labelled}, 1, 0},
		"of broken ones the fuller":      {[]string{strings.Join(lines[:3], ""), cut}, 1, 0},
		"behind another in one file":     {[]string{cut, another + whole}, 1, 1},
		"twice in one file":              {[]string{cut + whole}, 0, 1},
		"alone it is not looked at":      {[]string{"", another, whole}, 2, 0},
		"of what is unseen, the first":   {[]string{"", "", whole}, 2, 0},
		"of what ends before its header": {[]string{whole, lines[0][:9]}, 0, 0},
	} {
		var copies Copies
		for _, text := range c.files {
			var runs []string
			for range strings.Count(text, "tare-1f") {
				runs = append(runs, "tare-1f")
			}
			copies.Add(runs, func() []Extent { return standard().NewReader(strings.NewReader(text)).Extents() })
		}
		for file, text := range c.files {
			for nth, e := range standard().NewReader(strings.NewReader(text)).Extents() {
				if e.RunID != "tare-1f" {
					continue
				}
				of, counts := copies.Counts(file, nth, e.RunID)
				if of != c.of || counts != (file == c.of && nth == c.nth) {
					t.Errorf("%s: record %d of file %d: %v, that of file %d counts", name, nth, file, counts, of)
				}
			}
		}
	}
}
