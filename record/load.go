package record

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// IsName reports whether name is the file name of a record: it ends in .jsonl or .jsonl.zst.
func IsName(name string) bool { return strings.HasSuffix(strings.TrimSuffix(name, ".zst"), ".jsonl") }

// Stem returns a file name without the extension of a record.
func Stem(name string) string { return strings.TrimSuffix(strings.TrimSuffix(name, ".zst"), ".jsonl") }

// Record is a complete record in memory.
type Record struct {
	Header   Header
	Targets  []Target
	Batches  []Batch
	Nodes    []Node
	Readings []Reading
	Series   []Series
	Cells    []Cell
	Places   []Place
	Ceilings []Ceiling
	Starts   []Start
	Logs     *Logs // statistics of the logs that the starts are from
	Programs []Program
	Maps     []Map
	Points   []Point
	Density  []Density
	Findings []Finding
	Labels   []Label // in file order, see Labelled
	End      *End    // nil: the run was cut off

	own []any // see Own

	Problems     []Problem // first MaxProblems unusable lines
	ProblemCount int       // number of unusable lines
	Truncated    bool      // the record ends within a line or a compressed frame
}

// recordFields maps each type of line to the index of its field in Record.
var recordFields = func() map[reflect.Type]int {
	fields := map[reflect.Type]int{}
	for i := range reflect.TypeFor[Record]().NumField() {
		t := reflect.TypeFor[Record]().Field(i).Type
		if t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		fields[t] = i
	}
	return fields
}()

// Add appends a line to the field of its type and sets the line's type. line is a struct or a
// pointer to one. [All] returns lines of types declared with [Own].
func (r *Record) Add(line any) {
	v := reflect.Indirect(reflect.ValueOf(line))
	one := reflect.New(v.Type())
	one.Elem().Set(v)
	t := standard().byType[v.Type()]
	if t == nil {
		r.own = append(r.own, one.Interface())
		return
	}
	one.Elem().Field(0).SetString(string(t.word))
	switch field := reflect.ValueOf(r).Elem().Field(recordFields[t.of]); field.Kind() {
	case reflect.Slice:
		field.Set(reflect.Append(field, one.Elem()))
	case reflect.Pointer:
		field.Set(one)
	default:
		field.Set(one.Elem())
	}
}

// Own returns the lines of types declared with [Own], as pointers, in order.
func (r *Record) Own() []any { return r.own }

// All returns the lines of one type declared with [Own].
func All[T any](r *Record) (lines []*T) {
	for _, line := range r.own {
		if l, ok := line.(*T); ok {
			lines = append(lines, l)
		}
	}
	return lines
}

// Load is [Load] for the line types in l.
func (l *Lines) Load(path string) (*Record, error) {
	r, err := l.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return collect(r)
}

// MaxRecords is the largest number of records in one file.
const MaxRecords = 10_000

// LoadAll reads all records of a file, which [Writer.Join] may have joined.
func (l *Lines) LoadAll(path string) ([]*Record, error) {
	r, err := l.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	return r.All()
}

// All reads all records.
func (r *Reader) All() (all []*Record, err error) {
	err = r.Each(func(rec *Record) { all = append(all, rec) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Each calls take for every record in order.
func (r *Reader) Each(take func(*Record)) error {
	r.Several()
	for n, more := 0, true; more; n, more = n+1, r.More() {
		if n == MaxRecords {
			return fmt.Errorf("%s holds more than %d records: join fewer", r.name, MaxRecords)
		}
		rec, err := collect(r)
		if err != nil {
			return err
		}
		take(rec)
	}
	return nil
}

// Read is [Read] for the line types in l.
func (l *Lines) Read(r io.Reader) (*Record, error) {
	reader := l.NewReader(r)
	defer func() { _ = reader.Close() }()
	return collect(reader)
}

func collect(r *Reader) (*Record, error) {
	all := new(Record)
	for {
		line, err := r.Next()
		if errors.Is(err, io.EOF) {
			all.Problems, all.ProblemCount, all.Truncated = r.Problems(), r.ProblemCount(), r.Truncated()
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all.Add(line)
	}
}
