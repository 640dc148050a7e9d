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

// LineType declares a type of line: its word and its Go type. The first field of the Go type must be
// `Type Type`. Tags declare the bounds of the other fields. A Check method can check several fields
// together, see [Checker].
type LineType struct {
	word Type
	of   reflect.Type
	tags *bounds
}

// declared lists the types of line in this package. Each has a field in [Record].
var declared = []LineType{
	line[Header](TypeHeader), line[Target](TypeTarget), line[Node](TypeNode), line[Finding](TypeFinding), line[End](TypeEnd), line[Label](TypeLabel),
	line[Batch](TypeBatch), line[Reading](TypeReading), line[Series](TypeSeries), line[Cell](TypeCell), line[Place](TypePlace),
	line[Ceiling](TypeCeiling), line[Start](TypeStart), line[Logs](TypeLogs), line[Program](TypeProgram), line[Map](TypeMap),
	line[Point](TypePoint), line[Density](TypeDensity),
}

func line[T any](word Type) LineType { return LineType{word: word, of: reflect.TypeFor[T]()} }

// Own declares a type of line of another package. [All] returns the lines of such a type.
func Own[T any](word Type) LineType { return line[T](word) }

// Lines is the set of line types that readers and writers use. The zero value is empty; see
// [NewLines].
type Lines struct {
	types  []*LineType
	byWord map[Type]*LineType
	byType map[reflect.Type]*LineType
}

// standard returns the types of line in this package.
var standard = sync.OnceValue(func() *Lines {
	l, _ := NewLines() // cannot fail, as a test checks
	return l
})

// NewLines returns the types of line in this package together with additional ones. Readers skip
// lines of other types.
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
		return errors.New("its word must be a single word without quotes")
	case l.byWord[t.word] != nil || l.byType[t.of] != nil:
		return fmt.Errorf("the word or %s is declared already", t.of)
	case t.of.NumField() == 0 || t.of.Field(0).Type != reflect.TypeFor[Type]() || t.of.Field(0).Tag.Get("json") != "type":
		return fmt.Errorf("the first field of %s must be: Type record.Type `json:\"type\"`", t.of)
	}
	if t.tags, err = boundsOf(t.of); err != nil {
		return err
	}
	l.types = append(l.types, &t)
	l.byWord[t.word], l.byType[t.of] = &t, &t
	return nil
}

// lineType returns the type of a line without decoding all of it.
func lineType(text []byte) (Type, error) {
	// The writer puts the type first, so most lines are not parsed twice. decode rejects a
	// duplicate type.
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

// decode returns a pointer to the struct of the line's type, after checking its values.
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

// encode returns the text of a line with its newline. It sets the type without modifying the
// caller's value. It does not escape & and >, so commands stay readable.
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

// Open opens the record at path. The content decides whether it is zstd-compressed.
func Open(path string) (*Reader, error) { return standard().Open(path) }

// NewReader returns a reader for a record, plain or zstd-compressed.
func NewReader(r io.Reader) *Reader { return standard().NewReader(r) }

// Load reads the whole record at path into memory.
func Load(path string) (*Record, error) { return standard().Load(path) }

// Read reads a whole record from r.
func Read(r io.Reader) (*Record, error) { return standard().Read(r) }

// Create makes a record at path, zstd-compressed if the path ends in ".zst". It does not
// overwrite an existing file: its measurements cannot be repeated.
func Create(path string) (*Writer, error) { return standard().Create(path) }

// NewWriter returns a writer of a plain record. Close does not close w.
func NewWriter(w io.Writer) *Writer { return standard().NewWriter(w) }
