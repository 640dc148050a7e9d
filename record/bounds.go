package record

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A field says what its value has to be in a tag, `is:"needed,label"`, so that a
// line's bounds stand where its fields do and are the same for reading and for
// [Validate]. Without a tag a number cannot be negative, a list or an object has
// at most maxListed elements in one line, and a text can be anything. In a list
// or an object the words are about the elements.
//
//	any           every value, negative ones too
//	unknown       -1 too, which stands for what is not known
//	zero          0 stands for what was not taken, and is asked nothing
//	min=N max=N   a number from N to N; of a list or an object: at most N elements
//	total=N       at most N elements in all such lists of a line together
//	each=N        of an object of lists: at most N elements in each of them
//	after=FIELD   not before another field of the line, nor more than a year after it
//	needed        a text that is not empty
//	one=A|B       one of these words, or empty where it is not needed
//	rooted        begins with /
//	keys=LIMIT    how long the keys of an object are
//	id            tells the element from the others of its list, with other fields so marked
//	safe          a text that says nothing of who measured: a redaction keeps it
//	safekeys      likewise the keys of an object
//	kind=WORD     what a redaction calls such a text
//	LIMIT         of a text, at most so many bytes; of a number, at most so much: see limits
type bound struct {
	name   string // of the field, as in the record
	index  int
	itself bool // JSON reads it in its own way
	list   bool // a slice; else, with dict, a map; else neither
	dict   bool
	inner  *bounds // of the structs in it

	any, unknown, zero, needed, rooted bool

	safe, safeKeys bool   // of texts: see Redaction
	kind           string // likewise

	words       []string
	least, most int64
	maxShare    float64
	maxSaid     string
	chars, keys int
	after       string
	afterIndex  int
	max, total  int // elements
	each        int
	listed      bool // it is one of the lists in an object
}

// bounds are those of all fields of a struct.
type bounds struct {
	fields []*bound
	id     []*bound // what tells it from others
	checks bool     // it has a Check of its own
}

// Checker is what a line, or a struct in it, has that has to be true beyond the
// bounds of its fields. It is asked once those hold.
type Checker interface {
	Check() error
}

// How much a value can be at most. Beyond it a figure is of another unit.
const (
	maxListed    = 1 << 16
	maxRounds    = 1_000_000 // as many as can be asked for
	maxProcesses = 1 << 22   // the kernel's largest pid
	maxBytes     = 1 << 57   // the address space of x86 with five levels of page tables
	maxCPU       = 256 * int64(longestSpan)
	maxPath      = 4096 // PATH_MAX
	maxLabel     = 256
)

// longestSpan is further apart than two stamps of one operation can be. Beyond
// it they come from two clocks, such as the wall clock or a guest's.
const longestSpan = 366 * 24 * time.Hour

type limit struct {
	chars int
	most  int64
	share float64
	said  string
	kind  string // of a redaction
}

var limits = map[string]limit{
	"name":    {chars: 64}, // of a role, a kind, a thread: the kernel cuts those at 15, some of its own at 63
	"label":   {chars: maxLabel},
	"rule":    {chars: 1024},
	"path":    {chars: maxPath, kind: "path"},
	"place":   {chars: maxPath + maxLabel, kind: "path"}, // a path and a line in it
	"command": {chars: 1 << 16, kind: "command"},

	"lane":      {most: MaxLanes - 1},
	"round":     {most: maxRounds - 1},
	"processes": {most: maxProcesses},
	"bytes":     {most: maxBytes},
	"cpu":       {most: maxCPU},
	"span":      {most: int64(longestSpan), said: "a year"},
	"loads":     {most: 1 << 50},

	"share":    {share: 1.05}, // its two readings are not taken at the same instant as the clock it is divided by
	"pressure": {share: 2},    // likewise, of a job of a few milliseconds
	"cpus":     {share: 1 << 16},
	"seconds":  {share: 366 * 86400},
	"rate":     {share: 1e18}, // bytes/s and 1/s: a PB/s is a thousandth of it
}

// Validate says whether the values of a line, or of a struct that one can hold,
// can be true. It takes that or a pointer to it.
func Validate(line any) error {
	v := reflect.ValueOf(line)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return fmt.Errorf("validate: %T is not a line", line)
	}
	b, err := boundsOf(v.Type())
	if err != nil {
		return err
	}
	if !v.CanAddr() {
		at := reflect.New(v.Type()).Elem()
		at.Set(v)
		v = at
	}
	return b.check(v)
}

var (
	compiling sync.Mutex
	compiled  = map[reflect.Type]*bounds{}
)

// boundsOf reads the tags of a type and of what is in it, once.
func boundsOf(t reflect.Type) (*bounds, error) {
	compiling.Lock()
	defer compiling.Unlock()
	return compile(t)
}

func compile(t reflect.Type) (*bounds, error) {
	if b, ok := compiled[t]; ok && b == nil {
		return nil, fmt.Errorf("%s holds itself, and what a line holds has an end", t)
	} else if ok {
		return b, nil
	}
	compiled[t] = nil
	b, err := compileStruct(t)
	if err != nil {
		delete(compiled, t)
		return nil, err
	}
	compiled[t] = b
	return b, nil
}

func compileStruct(t reflect.Type) (*bounds, error) {
	if t.NumField() > 64 {
		return nil, fmt.Errorf("%s has more than 64 fields", t) // a decoder has a bit for each
	}
	b := &bounds{checks: reflect.PointerTo(t).Implements(reflect.TypeFor[Checker]())}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		x, err := compileField(f, name)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		x.index = i
		b.fields = append(b.fields, x)
		if slices.Contains(strings.Split(f.Tag.Get("is"), ","), "id") {
			b.id = append(b.id, x)
		}
	}
	for _, x := range b.fields {
		if x.after == "" {
			continue
		}
		before, _ := b.named([]byte(x.after), 0)
		if before < 0 {
			return nil, fmt.Errorf("%s: %s is after %s, which it does not have", t, x.name, x.after)
		}
		x.afterIndex = b.fields[before].index
	}
	return b, nil
}

func compileField(f reflect.StructField, name string) (*bound, error) {
	if f.Anonymous || name == "" {
		return nil, errors.New("a field of a line has a name in json and is not embedded")
	}
	x := &bound{name: name, most: math.MaxInt64, maxShare: math.MaxFloat64}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if x.itself = itself(t); !x.itself {
		x.list, x.dict = t.Kind() == reflect.Slice, t.Kind() == reflect.Map
		if x.list || x.dict {
			t = t.Elem()
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if x.itself = itself(t); t.Kind() == reflect.Struct && !x.itself {
			var err error
			if x.inner, err = compile(t); err != nil {
				return nil, err
			}
		}
	}
	for word := range strings.SplitSeq(f.Tag.Get("is"), ",") {
		if err := x.read(word); err != nil {
			return nil, err
		}
	}
	if (x.list || x.dict) && x.max == 0 && x.total == 0 {
		x.total = maxListed
	}
	return x, nil
}

// itself is true of what JSON reads in its own way, such as a time.
func itself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// read takes one word of a tag.
func (x *bound) read(word string) error {
	flags := map[string]*bool{"any": &x.any, "unknown": &x.unknown, "zero": &x.zero, "needed": &x.needed, "rooted": &x.rooted, "safe": &x.safe, "safekeys": &x.safeKeys}
	if flag := flags[word]; flag != nil {
		*flag = true
		return nil
	}
	key, value, _ := strings.Cut(word, "=")
	var err error
	switch key {
	case "", "id":
	case "kind":
		x.kind = value
	case "one":
		x.words, x.safe = strings.Split(value, "|"), true
	case "after":
		x.after = value
	case "keys":
		x.keys = limits[value].chars
	case "total":
		x.total, err = strconv.Atoi(value)
	case "each":
		x.each, err = strconv.Atoi(value)
	case "min":
		x.least, err = strconv.ParseInt(value, 10, 64)
	case "max":
		var n int64
		if n, err = strconv.ParseInt(value, 10, 64); x.list || x.dict {
			x.max = int(n)
		} else {
			x.most = n
		}
	default:
		l, ok := limits[word]
		if !ok {
			return fmt.Errorf("the tag says %q, which is not known", word)
		}
		if x.kind == "" && l.kind != "" {
			x.kind = l.kind
		}
		x.chars, x.maxSaid = l.chars, l.said
		x.most, x.maxShare = cmp.Or(l.most, x.most), cmp.Or(l.share, x.maxShare)
	}
	if err != nil {
		return fmt.Errorf("the tag says %q: %w", word, err)
	}
	return nil
}
