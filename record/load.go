package record

import (
	"errors"
	"io"
)

// Record is a whole record in memory.
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
	Logs     *Logs // what the starts were read from
	Programs []Program
	Points   []Point
	Findings []Finding
	End      *End // nil: the run was cut off

	own []any // see Own

	Problems     []Problem // the first MaxProblems lines that could not be used
	ProblemCount int       // all of them
	Truncated    bool      // it breaks off within a line or a compressed frame
}

// Load is [Load] for these types of line.
func (l *Lines) Load(path string) (*Record, error) {
	r, err := l.Open(path)
	if err != nil {
		return nil, err
	}
	// Nothing was written: closing cannot lose anything.
	defer func() { _ = r.Close() }()
	return collect(r)
}

// Read is [Read] for these types of line.
func (l *Lines) Read(r io.Reader) (*Record, error) {
	reader := l.NewReader(r)
	defer func() { _ = reader.Close() }()
	return collect(reader)
}

func collect(r *Reader) (*Record, error) {
	all := new(Record)
	for {
		line, kind, err := r.next()
		if errors.Is(err, io.EOF) {
			all.Problems, all.ProblemCount, all.Truncated = r.Problems(), r.ProblemCount(), r.Truncated()
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		kind.keep(all, line)
	}
}
