package record

import (
	"math"
	"strings"
	"testing"
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

func TestABoundIsWhatItsTagSays(t *testing.T) {
	t.Parallel()
	for claim, c := range map[string]struct {
		spoil func(*toyLine)
		want  string // "": it is taken
	}{
		"what is as it should be":          {func(*toyLine) {}, ""},
		"a number below nothing":           {func(l *toyLine) { l.Count = -1 }, "count is -1 and cannot be negative"},
		"a number that may be below":       {func(l *toyLine) { l.Signed = -1 }, ""},
		"memory that is not known":         {func(l *toyLine) { l.Memory = -1 }, ""},
		"memory below unknown":             {func(l *toyLine) { l.Memory = -2 }, "memory is -2 and cannot be negative; -1 is for what is not known"},
		"memory beyond addresses":          {func(l *toyLine) { l.Memory = math.MaxInt64 }, "memory is 9223372036854775807: more than 144115188075855872 cannot be"},
		"too little":                       {func(l *toyLine) { l.Port = 0 }, "port is 0 and has to be 1 or more"},
		"too much":                         {func(l *toyLine) { l.Port = 1025 }, "port is 1025: more than 1024"},
		"a share that is no number":        {func(l *toyLine) { l.Share = math.NaN() }, "share is NaN and has to be from 0 to 1.05"},
		"a number without an end":          {func(l *toyLine) { l.Load = math.Inf(1) }, "load is +Inf and has to be 0 or more"},
		"a word that is not known":         {func(l *toyLine) { l.Case = "c" }, `case is "c" and has to be one of a, b`},
		"no word":                          {func(l *toyLine) { l.Case = "" }, ""},
		"a path from somewhere":            {func(l *toyLine) { l.Path = "a" }, "path begins at the root"},
		"a path without an end":            {func(l *toyLine) { l.Path = "/" + strings.Repeat("x", 4096) }, "path is 4097 bytes long: at most 4096"},
		"a list that is too long":          {func(l *toyLine) { l.Parts = make([]toyPart, 4) }, "4 parts: at most 3 are read"},
		"an element twice":                 {func(l *toyLine) { l.Parts = append(l.Parts, l.Parts[0]) }, `parts: name "p" is there twice`},
		"an element without its name":      {func(l *toyLine) { l.Parts[0].Name = "" }, `parts: name "": name is missing`},
		"an end before its begin":          {func(l *toyLine) { l.Parts[0].End = 4 }, `parts: name "p": end 4 is before at 5`},
		"an end of another clock":          {func(l *toyLine) { l.Parts[0].End = math.MaxInt64 }, "it is of another clock"},
		"a struct behind a pointer":        {func(l *toyLine) { l.Part = &toyPart{Name: "p", At: -1} }, "part: at is -1"},
		"an object with a long name in it": {func(l *toyLine) { l.Named[strings.Repeat("x", 65)] = 1 }, "named: a name is 65 bytes long"},
		"an object with too much in it":    {func(l *toyLine) { l.Named["a"], l.Named["b"] = 1, 1 }, "3 named: at most 2"},
		"an object with less than nothing": {func(l *toyLine) { l.Named["n"] = -1 }, `named: "n" is -1`},
	} {
		l := toyLine{Count: 1, Port: 80, Case: "a", Path: "/", Parts: []toyPart{{Name: "p", At: 5}}, Named: map[string]int64{"n": 1}}
		c.spoil(&l)
		switch err := Validate(&l); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", claim, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: got %v, not %q", claim, err, c.want)
		}
	}
	if Validate(toyPart{Name: "p"}) != nil || Validate(5) == nil || Validate(nil) == nil {
		t.Error("a struct has to be taken, and a number and nothing not")
	}
}

func TestALineIsDeclaredWholeOrNotAtAll(t *testing.T) {
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
		"of no type":           {Own[noType]("x"), "the first field of record.noType has to be: Type record.Type"},
		"that is no struct":    {Own[int]("x"), "a line is a struct"},
		"of a word twice":      {Own[toyLine]("batch"), "declared already"},
		"of a type twice":      {Own[Batch]("x"), "declared already"},
		"without a word":       {Own[toyLine](""), "its word has to be one"},
		"of an unknown bound":  {Own[badTag]("x"), `badTag.A: the tag says "huge", which is not known`},
		"after what is not":    {Own[badAfter]("x"), "a is after b, which it does not have"},
		"without an end to it": {Own[holdsItself]("x"), "holds itself"},
	} {
		if _, err := NewLines(c.line); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("a line %s: got %v", claim, err)
		}
	}
}
