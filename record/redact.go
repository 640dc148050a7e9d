package record

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Redaction replaces texts that could identify the user, the machine or the network. It replaces
// every text of a field that is not declared safe, so new fields are redacted by default. Equal
// texts get the same pseudonym. Numbers are kept, including those in commits. The pseudonym of a run
// id is random, so two redactions of a run have different ids.
type Redaction struct {
	names map[[2]string]string
	count map[string]int // number of pseudonyms of each kind
	times map[string]int
	wrong error // the first error of the current line
}

// Removed contains the number of replaced texts of one kind.
type Removed struct {
	Kind   string
	Values int // number of distinct texts
	Times  int
}

// Removed returns the numbers of replaced texts by kind.
func (r *Redaction) Removed() (out []Removed) {
	for _, kind := range slices.Sorted(maps.Keys(r.count)) {
		out = append(out, Removed{kind, r.count[kind], r.times[kind]})
	}
	return out
}

// Line returns a copy of a line with pseudonyms. line is a pointer to a struct.
func (r *Redaction) Line(line any) (any, error) {
	if r.names == nil {
		r.names, r.count, r.times = map[[2]string]string{}, map[string]int{}, map[string]int{}
	}
	switch l := line.(type) {
	case *Header:
		if run := [2]string{"id", l.RunID}; r.names[run] == "" {
			r.count["id"]++
			r.names[run] = "id-" + strings.ToLower(rand.Text()[:10])
		}
	case *Label:
		if l.Key == "commit" && redactNumber.MatchString(l.Value) {
			copied := *l
			return &copied, nil
		}
	}
	v := reflect.Indirect(reflect.ValueOf(line))
	b, err := boundsOf(v.Type())
	if err != nil {
		return nil, err
	}
	out := reflect.New(v.Type())
	r.wrong = nil
	if out.Elem().Set(r.fields(v, b)); r.wrong != nil {
		return nil, r.wrong
	}
	return out.Interface(), nil
}

func (r *Redaction) fields(v reflect.Value, b *bounds) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	for _, x := range b.fields {
		if x.safe {
			continue
		}
		before := r.wrong
		out.Field(x.index).Set(r.value(v.Field(x.index), x))
		if before == nil && r.wrong != nil {
			r.wrong = fmt.Errorf("%s: %w", x.name, r.wrong)
		}
	}
	return out
}

// value returns a redacted copy, because other lines may share the values that a line points to.
func (r *Redaction) value(v reflect.Value, x *bound) reflect.Value {
	switch kind := v.Kind(); {
	case v.Type() == reflect.TypeFor[json.RawMessage]():
		text, err := r.plan(v.Bytes())
		if r.wrong == nil {
			r.wrong = err
		}
		return reflect.ValueOf(text)
	case unmarshalsItself(v.Type()): // such as a time
	case kind == reflect.Struct:
		return r.fields(v, x.inner)
	case v.Type() == reflect.TypeFor[string](): // other string types contain only words defined in this package
		return reflect.ValueOf(r.text(x.kind, v.String()))
	case (kind == reflect.Pointer || kind == reflect.Slice || kind == reflect.Map) && !v.IsNil():
		return r.elements(v, x)
	}
	return v
}

func (r *Redaction) elements(v reflect.Value, x *bound) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(r.value(v.Elem(), x))
		return out
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			out.Index(i).Set(r.value(v.Index(i), x))
		}
		return out
	}
	out := reflect.MakeMap(v.Type())
	keys := v.MapKeys() // sort, because pseudonyms are numbered
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		one := r.value(v.MapIndex(key), x)
		if !x.safeKeys {
			key = reflect.ValueOf(r.text(x.kind, key.String())).Convert(key.Type())
		}
		out.SetMapIndex(key, one)
	}
	return out
}

var (
	redactLine   = regexp.MustCompile(`^(.*)(:[0-9]+)$`)
	redactNumber = regexp.MustCompile(`^[0-9]{1,12}$`)
	redactOwn    = regexp.MustCompile(`^(spin|hold|storage) `) // built-in neighbours; all others are images
	redactScheme = regexp.MustCompile(`^([a-z][a-z0-9+.-]*://)(.*)$`)
)

// text returns the pseudonym of a text. It preserves the structure: the elements of a path, the
// kind of a volume, the scheme of an address.
func (r *Redaction) text(kind, s string) string {
	if kind == "" {
		kind = "text"
	}
	switch head, tail, ok := strings.Cut(s, "="); {
	case s == "", kind == "neighbour" && redactOwn.MatchString(s):
		return s
	case redactScheme.MatchString(s):
		m := redactScheme.FindStringSubmatch(s)
		return m[1] + r.name("address", m[2])
	case kind == "volume" && !ok:
		return s // rootfs, tmpfs
	case kind == "volume":
		return head + "=" + r.text("path", tail)
	case kind == "path" && redactLine.MatchString(s):
		m := redactLine.FindStringSubmatch(s)
		return r.text("path", m[1]) + m[2]
	case kind == "path":
		parts := strings.Split(s, "/")
		for i := range parts {
			parts[i] = r.name("path", parts[i])
		}
		return strings.Join(parts, "/")
	}
	return r.name(kind, s)
}

func (r *Redaction) name(kind, s string) string {
	if s == "" {
		return ""
	}
	r.times[kind]++
	if r.names[[2]string{kind, s}] == "" {
		r.count[kind]++
		r.names[[2]string{kind, s}] = fmt.Sprintf("%s-%d", kind, r.count[kind])
	}
	return r.names[[2]string{kind, s}]
}

var (
	// planWords are the plan options whose words do not identify anyone.
	planWords = map[string]bool{
		"ops": true, "baseline": true, "subject": true, "via": true, "cache": true, "phases": true, "adjust": true, "missing": true, "tool": true,
		"rw": true, "ioengine": true, "engine": true, "drop": true, "case": true, "method": true, "sync": true, "fsync": true, "mode": true, "format": true,
	}
	// planAmounts matches durations, sizes, shares and counts. Other texts that start with a digit
	// may be addresses or names.
	planAmounts = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?([nuµm]s|[smhd]))*[0-9]+(\.[0-9]+)?([nuµm]s|[smhd%]|[bB]|[kKmMgGtTpPE]i?[bB]?)?(/s)?$`)
)

// plan redacts a plan. It keeps amounts and the values of planWords.
func (r *Redaction) plan(text []byte) (json.RawMessage, error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // preserve all digits
	var plan any
	if err := d.Decode(&plan); err != nil {
		return nil, err
	}
	return json.Marshal(r.option("", plan))
}

func (r *Redaction) option(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			of := k
			if key == "jobs" && k == "name" {
				of = "rw" // keep the name, which every cell of the job contains
			}
			v[k] = r.option(of, v[k])
		}
	case []any:
		for i := range v {
			v[i] = r.option(key, v[i])
		}
	case string:
		switch name, path, ok := strings.Cut(v, "="); {
		case key == "neighbours":
			return r.text("neighbour", v)
		case planWords[key] || planAmounts.MatchString(v):
		case key == "targets" && ok:
			return name + "=" + r.text("path", path)
		case key == "targets":
		case key == "volumes" || key == "volume":
			return r.text("volume", v)
		case strings.HasPrefix(v, "/"):
			return r.text("path", v)
		default:
			return r.text("option", v)
		}
	}
	return v
}
