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

// A field declares the bounds of its value in a tag, `is:"needed,label"`. Reading and
// [Validate] check the same tags. Without a tag, a number must not be negative, a list or an
// object has at most maxListed elements, and a text can have any content. If the field is a list
// or an object, the words of its tag apply to the elements.
//
//	any           any value, including negative ones
//	unknown       -1 is allowed and means unknown
//	zero          0 means missing and is not checked
//	min=N max=N   the range of a number; for a list or an object: at most N elements
//	total=N       at most N elements in all such lists of a line together
//	each=N        for an object of lists: at most N elements in each list
//	after=FIELD   not before another field of the line, and at most a year after it
//	needed        a text that must not be empty
//	one=A|B       one of these words, or empty unless needed
//	rooted        begins with /
//	keys=LIMIT    the maximum length of an object's keys
//	id            identifies the element in its list, together with other id fields
//	safe          a text that does not identify the user or the machine: redaction keeps it
//	safekeys      the same for the keys of an object
//	kind=WORD     the kind of pseudonym that redaction uses for the text
//	LIMIT         the maximum length of a text, or the maximum number: see limits
type bound struct {
	name   string // name in the record
	index  int
	itself bool    // the type has its own unmarshaler
	list   bool    // a slice
	dict   bool    // a map
	inner  *bounds // bounds of its structs

	any, unknown, zero, needed, rooted bool

	safe, safeKeys bool   // see Redaction
	kind           string // see Redaction

	words       []string
	least, most int64
	maxShare    float64
	maxSaid     string
	chars, keys int
	after       string
	afterIndex  int
	max, total  int // number of elements
	each        int
	listed      bool // one of the lists in an object
}

// bounds are the bounds of all fields of a struct.
type bounds struct {
	fields []*bound
	id     []*bound // the fields that identify an element
	checks bool     // the type is a Checker
}

// Checker is implemented by a line, or a struct in one, with conditions beyond the bounds of its
// fields. Check is called after these bounds were checked.
type Checker interface {
	Check() error
}

// Largest plausible values. A larger value probably has the wrong unit.
const (
	maxListed    = 1 << 16
	maxRounds    = 1_000_000 // maximum of the option
	maxProcesses = 1 << 22   // largest pid of the kernel
	maxBytes     = 1 << 57   // the address space of x86 with five levels of page tables
	maxCPU       = 256 * int64(longestSpan)
	maxPath      = 4096 // PATH_MAX
	maxLabel     = 256
)

// longestSpan is longer than any time between two stamps of one operation. Stamps further apart
// come from different clocks, such as the wall clock or a guest's clock.
const longestSpan = 366 * 24 * time.Hour

type limit struct {
	chars int
	most  int64
	share float64
	said  string
	kind  string // kind of pseudonym in a redaction
}

var limits = map[string]limit{
	"name":    {chars: 64}, // a role, a kind or a thread: the kernel truncates thread names to 15 bytes, those of kernel threads to 63
	"label":   {chars: maxLabel},
	"rule":    {chars: 1024},
	"path":    {chars: maxPath, kind: "path"},
	"place":   {chars: maxPath + maxLabel, kind: "path"}, // a path and a line number
	"command": {chars: 1 << 16, kind: "command"},

	"lane":      {most: MaxLanes - 1},
	"round":     {most: maxRounds - 1},
	"processes": {most: maxProcesses},
	"bytes":     {most: maxBytes},
	"cpu":       {most: maxCPU},
	"span":      {most: int64(longestSpan), said: "a year"},
	"loads":     {most: 1 << 50},

	"share":    {share: 1.05}, // may exceed 1, because the counters and the clock are not read at the same instant
	"pressure": {share: 2},    // the same, for a job of only a few milliseconds
	"cpus":     {share: 1 << 16},
	"seconds":  {share: 366 * 86400},
	"rate":     {share: 1e18}, // bytes/s and 1/s; a PB/s is a thousandth of this
}

// Validate checks the values of a line, or of a struct in a line. line is a value or a pointer.
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

// boundsOf compiles the tags of a type and of its nested structs, once per type.
func boundsOf(t reflect.Type) (*bounds, error) {
	compiling.Lock()
	defer compiling.Unlock()
	return compile(t)
}

func compile(t reflect.Type) (*bounds, error) {
	if b, ok := compiled[t]; ok && b == nil {
		return nil, fmt.Errorf("%s contains itself", t)
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
		return nil, fmt.Errorf("%s has more than 64 fields", t) // decoders use a bit per field
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
	if x.itself = unmarshalsItself(t); !x.itself {
		x.list, x.dict = t.Kind() == reflect.Slice, t.Kind() == reflect.Map
		if x.list || x.dict {
			t = t.Elem()
		}
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if x.itself = unmarshalsItself(t); t.Kind() == reflect.Struct && !x.itself {
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

// unmarshalsItself reports whether a type has its own JSON unmarshaler, such as a time.
func unmarshalsItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// read parses one word of a tag.
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
			return fmt.Errorf("unknown word %q in the tag", word)
		}
		if x.kind == "" && l.kind != "" {
			x.kind = l.kind
		}
		x.chars, x.maxSaid = l.chars, l.said
		x.most, x.maxShare = cmp.Or(l.most, x.most), cmp.Or(l.share, x.maxShare)
	}
	if err != nil {
		return fmt.Errorf("word %q in the tag: %w", word, err)
	}
	return nil
}
