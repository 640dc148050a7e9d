package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// LineType declares a type of line: the word that its lines begin with, and the Go
// type they are read into and written from. The Go type's first field is `Type
// Type`; what its other fields can be say their tags, and a Check method what they
// can be together, see [Checker].
type LineType struct {
	word Type
	of   reflect.Type
	tags *bounds
}

// declared are the types of line that this package declares, each with a field of
// [Record] of its own.
var declared = []LineType{
	line[Header](TypeHeader), line[Target](TypeTarget), line[Node](TypeNode), line[Finding](TypeFinding), line[End](TypeEnd), line[Label](TypeLabel),
	line[Batch](TypeBatch), line[Reading](TypeReading), line[Series](TypeSeries), line[Cell](TypeCell), line[Place](TypePlace),
	line[Ceiling](TypeCeiling), line[Start](TypeStart), line[Logs](TypeLogs), line[Program](TypeProgram), line[Map](TypeMap),
	line[Point](TypePoint), line[Density](TypeDensity),
}

func line[T any](word Type) LineType { return LineType{word: word, of: reflect.TypeFor[T]()} }

// Own declares a line of another package's, which [All] finds in a record.
func Own[T any](word Type) LineType { return line[T](word) }

// Lines are the types of line that a reader and a writer know. The zero of it
// knows none; see [NewLines].
type Lines struct {
	types  []*LineType
	byWord map[Type]*LineType
	byType map[reflect.Type]*LineType
}

// standard are the types of line that this package declares.
var standard = sync.OnceValue(func() *Lines {
	l, _ := NewLines() // a test shows that they can be declared
	return l
})

// NewLines are the types of line that this package declares, and others beside
// them. Readers that were not told of those pass over such lines.
func NewLines(own ...LineType) (*Lines, error) {
	l := &Lines{byWord: map[Type]*LineType{}, byType: map[reflect.Type]*LineType{}}
	for _, t := range slices.Concat(declared, own) {
		if err := l.add(t); err != nil {
			return nil, fmt.Errorf("declare line %q: %w", t.word, err)
		}
	}
	return l, nil
}

func (l *Lines) add(t LineType) (err error) {
	switch {
	case t.of == nil || t.of.Kind() != reflect.Struct:
		return errors.New("a line is a struct")
	case t.word == "" || strings.ContainsAny(string(t.word), "\"\\ "):
		return errors.New("its word has to be one, without quotes")
	case l.byWord[t.word] != nil || l.byType[t.of] != nil:
		return fmt.Errorf("the word or %s is declared already", t.of)
	case t.of.NumField() == 0 || t.of.Field(0).Type != reflect.TypeFor[Type]() || t.of.Field(0).Tag.Get("json") != "type":
		return fmt.Errorf("the first field of %s has to be: Type record.Type `json:\"type\"`", t.of)
	}
	if t.tags, err = boundsOf(t.of); err != nil {
		return err
	}
	l.types = append(l.types, &t)
	l.byWord[t.word], l.byType[t.of] = &t, &t
	return nil
}

// lineType reads no more of a line than its type.
func lineType(text []byte) (Type, error) {
	// The writer puts the type first. Taking it from there saves parsing
	// every line twice; decode refuses a second one.
	if rest, ok := bytes.CutPrefix(text, []byte(`{"type":"`)); ok {
		if name, _, ok := bytes.Cut(rest, []byte(`"`)); ok {
			return Type(name), nil
		}
	}
	var line struct {
		Type *Type `json:"type"`
	}
	if err := json.Unmarshal(text, &line); err != nil {
		return "", fmt.Errorf("not a JSON object with a type: %w", err)
	}
	if line.Type == nil {
		return "", errors.New("a JSON object without a type")
	}
	return *line.Type, nil
}

// decode returns the line that text is, a pointer to the type's struct, if its
// values can be true.
func (t *LineType) decode(text []byte) (any, error) {
	line := reflect.New(t.of)
	if err := t.fill(text, line); err != nil {
		return nil, err
	}
	if err := t.tags.check(line.Elem()); err != nil {
		return nil, fmt.Errorf("%s: %w", t.word, err)
	}
	return line.Interface(), nil
}

// encode returns a line's text with its newline, its type filled in, without
// touching the caller's value. Commands in it stay readable: & and > are not
// written as escapes.
func (l *Lines) encode(line any) ([]byte, Type, error) {
	v := reflect.ValueOf(line)
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil, "", fmt.Errorf("write to record: the %T is nil", line)
		}
		v = v.Elem()
	}
	var t *LineType
	if v.IsValid() {
		t = l.byType[v.Type()]
	}
	if t == nil {
		return nil, "", fmt.Errorf("write to record: %T is not a line of a record; the lines are %s", line, l.words())
	}
	filled := reflect.New(t.of)
	filled.Elem().Set(v)
	filled.Elem().Field(0).SetString(string(t.word))
	if h, ok := filled.Interface().(*Header); ok {
		h.Schema = Schema
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(filled.Interface()); err != nil {
		return nil, "", fmt.Errorf("write a %s line: %w", t.word, err)
	}
	if text.Len() > MaxLine {
		return nil, "", fmt.Errorf("write a %s line: it has %d bytes and readers take at most %d", t.word, text.Len(), MaxLine)
	}
	return text.Bytes(), t.word, nil
}

func (l *Lines) words() string {
	words := make([]string, len(l.types))
	for i, t := range l.types {
		words[i] = string(t.word)
	}
	return strings.Join(words, ", ")
}

// Open reads the record at path, plain or zstd-compressed, whatever its name.
func Open(path string) (*Reader, error) { return standard().Open(path) }

// NewReader reads a record from r, plain or zstd-compressed.
func NewReader(r io.Reader) *Reader { return standard().NewReader(r) }

// Load reads all of the record at path.
func Load(path string) (*Record, error) { return standard().Load(path) }

// Read reads all of a record from r.
func Read(r io.Reader) (*Record, error) { return standard().Read(r) }

// Create makes a record at path, zstd-compressed if the path ends in ".zst".
// A file that is there already is left alone and is an error, since a record
// cannot be measured again: the machine has moved on.
func Create(path string) (*Writer, error) { return standard().Create(path) }

// NewWriter writes a plain record to w, which Close leaves open.
func NewWriter(w io.Writer) *Writer { return standard().NewWriter(w) }
