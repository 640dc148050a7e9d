package record

import (
	"cmp"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

type toyPart struct {
	Name string `json:"name" is:"id,needed,name"`
	At   int64  `json:"at"`
	End  int64  `json:"end" is:"zero,after=at"`
}

type toyLine struct {
	Type   Type             `json:"type"`
	Count  int              `json:"count"`
	Signed int              `json:"signed" is:"any"`
	Memory int64            `json:"memory" is:"bytes,unknown"`
	Port   uint16           `json:"port" is:"min=1,max=1024"`
	Share  float64          `json:"share" is:"share"`
	Load   float64          `json:"load"`
	Case   string           `json:"case" is:"one=a|b"`
	Path   string           `json:"path" is:"rooted,path"`
	Parts  []toyPart        `json:"parts" is:"max=3"`
	Part   *toyPart         `json:"part,omitempty"`
	Named  map[string]int64 `json:"named" is:"keys=name,max=2"`
	Free   []string         `json:"free"`
}

func TestTagsBoundValues(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		spoil func(*toyLine)
		want  string // "" if accepted
	}{
		"valid line":                      {func(*toyLine) {}, ""},
		"negative number":                 {func(l *toyLine) { l.Count = -1 }, "count is -1 and cannot be negative"},
		"number that may be negative":     {func(l *toyLine) { l.Signed = -1 }, ""},
		"unknown memory":                  {func(l *toyLine) { l.Memory = -1 }, ""},
		"memory below -1":                 {func(l *toyLine) { l.Memory = -2 }, "memory is -2 and cannot be negative; -1 means unknown"},
		"memory beyond the address space": {func(l *toyLine) { l.Memory = math.MaxInt64 }, "memory is 9223372036854775807 and must be at most 144115188075855872"},
		"number below the minimum":        {func(l *toyLine) { l.Port = 0 }, "port is 0 and must be at least 1"},
		"number above the maximum":        {func(l *toyLine) { l.Port = 1025 }, "port is 1025 and must be at most 1024"},
		"NaN":                             {func(l *toyLine) { l.Share = math.NaN() }, "share is NaN and must be from 0 to 1.05"},
		"infinity":                        {func(l *toyLine) { l.Load = math.Inf(1) }, "load is +Inf and must be at least 0"},
		"unknown word":                    {func(l *toyLine) { l.Case = "c" }, `case is "c" and must be one of a, b`},
		"empty word":                      {func(l *toyLine) { l.Case = "" }, ""},
		"relative path":                   {func(l *toyLine) { l.Path = "a" }, "path must begin with"},
		"too long path":                   {func(l *toyLine) { l.Path = "/" + strings.Repeat("x", 4096) }, "path is 4097 bytes long: at most 4096"},
		"too long list":                   {func(l *toyLine) { l.Parts = make([]toyPart, 4) }, "4 parts: at most 3 are read"},
		"duplicate element":               {func(l *toyLine) { l.Parts = append(l.Parts, l.Parts[0]) }, `parts: duplicate name "p"`},
		"element without its name":        {func(l *toyLine) { l.Parts[0].Name = "" }, `parts: name "": name is missing`},
		"end before its begin":            {func(l *toyLine) { l.Parts[0].End = 4 }, `parts: name "p": end 4 is before at 5`},
		"end on another clock":            {func(l *toyLine) { l.Parts[0].End = math.MaxInt64 }, "it comes from another clock"},
		"struct behind a pointer":         {func(l *toyLine) { l.Part = &toyPart{Name: "p", At: -1} }, "part: at is -1"},
		"map with a long key":             {func(l *toyLine) { l.Named[strings.Repeat("x", 65)] = 1 }, "named: a name is 65 bytes long"},
		"map with too many keys":          {func(l *toyLine) { l.Named["a"], l.Named["b"] = 1, 1 }, "3 named: at most 2"},
		"map with a negative value":       {func(l *toyLine) { l.Named["n"] = -1 }, `named: "n" is -1`},
	} {
		l := toyLine{Count: 1, Port: 80, Case: "a", Path: "/", Parts: []toyPart{{Name: "p", At: 5}}, Named: map[string]int64{"n": 1}}
		c.spoil(&l)
		switch err := Validate(&l); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", claim, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, want %q", claim, err, c.want)
		}
	}
	if Validate(toyPart{Name: "p"}) != nil || Validate(5) == nil || Validate(nil) == nil {
		t.Error("a struct must be accepted, a number and nil must not")
	}
}

func TestInvalidDeclarationsAreErrors(t *testing.T) {
	t.Parallel()
	type noType struct {
		A int `json:"a"`
	}
	type badTag struct {
		Type Type `json:"type"`
		A    int  `json:"a" is:"huge"`
	}
	type badAfter struct {
		Type Type  `json:"type"`
		A    int64 `json:"a" is:"after=b"`
	}
	type node struct {
		Inner []node `json:"inner"`
	}
	type holdsItself struct {
		Type Type   `json:"type"`
		Of   []node `json:"of"`
	}
	for claim, c := range map[string]struct {
		line LineType
		want string
	}{
		"no type field":          {Own[noType]("x"), "the first field of record.noType must be: Type record.Type"},
		"not a struct":           {Own[int]("x"), "a line is a struct"},
		"duplicate word":         {Own[toyLine]("batch"), "declared already"},
		"duplicate type":         {Own[Batch]("x"), "declared already"},
		"no word":                {Own[toyLine](""), "its word must be a single word"},
		"unknown bound":          {Own[badTag]("x"), `badTag.A: unknown word "huge" in the tag`},
		"after an unknown field": {Own[badAfter]("x"), "a is after b, which it does not have"},
		"recursive type":         {Own[holdsItself]("x"), "contains itself"},
	} {
		if _, err := NewLines(c.line); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", claim, err)
		}
	}
}

func TestInvalidLinesAreProblemsAndUnusualOnesAreNot(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("testdata/refused.txt"))(t)
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

// expanded expands the short forms of a row, innermost first.
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

func TestBestCopyOfARecordCounts(t *testing.T) {
	t.Parallel()
	whole, lines := written(t, few())
	labelled := whole + `{"type":"label","key":"node","value":"a"}` + "\n"
	damaged := strings.Replace(whole, lines[3], strings.Repeat(lines[3], 9)+"{\n", 1)
	cut := strings.Join(lines[:4], "") + strings.Repeat(lines[3], 9)
	another := strings.ReplaceAll(whole, "tare-1f", "tare-2f")
	for name, c := range map[string]struct {
		files []string
		of    int // index of the expected file
		nth   int // index of the record in that file
	}{
		"first of equal copies":                 {[]string{whole, whole}, 0, 0},
		"complete before damaged":               {[]string{damaged, whole}, 1, 0},
		"complete before truncated and damaged": {[]string{cut, whole, damaged}, 1, 0},
		"longer copy with a label":              {[]string{whole, labelled}, 1, 0},
		"longer of two truncated copies":        {[]string{strings.Join(lines[:3], ""), cut}, 1, 0},
		"second record of a file":               {[]string{cut, another + whole}, 1, 1},
		"two copies in a file":                  {[]string{cut + whole}, 0, 1},
		"single copy is not read":               {[]string{"", another, whole}, 2, 0},
		"first of unread copies":                {[]string{"", "", whole}, 2, 0},
		"copy truncated in its header":          {[]string{whole, lines[0][:9]}, 0, 0},
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
					t.Errorf("%s: record %d of file %d counts: %v, counting file %d", name, nth, file, counts, of)
				}
			}
		}
	}
}
