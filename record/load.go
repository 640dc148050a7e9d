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

	Problems     []Problem // the first MaxProblems lines that could not be used
	ProblemCount int       // all of them
	Truncated    bool      // it breaks off within a line or a compressed frame
}

// Load reads all of the record at path.
func Load(path string) (*Record, error) {
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	// Nothing was written: closing cannot lose anything.
	defer func() { _ = r.Close() }()
	return collect(r)
}

// Read reads all of a record from r.
func Read(r io.Reader) (*Record, error) {
	reader := NewReader(r)
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
		switch l := line.(type) {
		case *Header:
			all.Header = *l
		case *Target:
			all.Targets = append(all.Targets, *l)
		case *Batch:
			all.Batches = append(all.Batches, *l)
		case *Node:
			all.Nodes = append(all.Nodes, *l)
		case *Reading:
			all.Readings = append(all.Readings, *l)
		case *Series:
			all.Series = append(all.Series, *l)
		case *Cell:
			all.Cells = append(all.Cells, *l)
		case *Place:
			all.Places = append(all.Places, *l)
		case *Ceiling:
			all.Ceilings = append(all.Ceilings, *l)
		case *Start:
			all.Starts = append(all.Starts, *l)
		case *Logs:
			all.Logs = l
		case *Program:
			all.Programs = append(all.Programs, *l)
		case *Point:
			all.Points = append(all.Points, *l)
		case *Finding:
			all.Findings = append(all.Findings, *l)
		case *End:
			all.End = l
		}
	}
}
