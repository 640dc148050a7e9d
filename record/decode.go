package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Line is one line of a record: a *Header, *Target, *Batch, *Node, *Reading,
// *Series, *Cell, *Place, *Ceiling, *Start, *Logs, *Program, *Point, *Finding or *End. Validate says
// whether its values can be true.
type Line interface {
	Validate() error
}

// errUnknownType marks a line of a later version, which is passed over.
var errUnknownType = errors.New("a type of line that this version does not know")

// lineType reads no more of a line than its type.
func lineType(text []byte) (Type, error) {
	// The writer puts the type first. Taking it from there saves parsing
	// every line twice; decodeLine checks that it was the right one.
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

// decodeLine returns the line of that type, if its values can be true.
func decodeLine(text []byte, kind Type) (Line, error) {
	line, err := unmarshalLine(text, kind)
	if err != nil {
		return nil, err
	}
	return line, line.Validate()
}

func unmarshalLine(text []byte, kind Type) (Line, error) {
	var (
		line Line
		got  *Type
		into any
	)
	switch kind {
	case TypeHeader:
		l := new(Header)
		line, got, into = l, &l.Type, l
	case TypeTarget:
		l := new(Target)
		line, got, into = l, &l.Type, l
	case TypeBatch:
		l := new(batchLine)
		line, got, into = &l.Batch, &l.Type, l
	case TypeNode:
		l := new(Node)
		line, got, into = l, &l.Type, l
	case TypeReading:
		l := new(readingLine)
		line, got, into = &l.Reading, &l.Type, l
	case TypeSeries:
		l := new(seriesLine)
		line, got, into = &l.Series, &l.Type, l
	case TypeCell:
		l := new(cellLine)
		line, got, into = &l.Cell, &l.Type, l
	case TypePlace:
		l := new(placeLine)
		line, got, into = &l.Place, &l.Type, l
	case TypeStart:
		l := new(startLine)
		line, got, into = &l.Start, &l.Type, l
	case TypeLogs:
		l := new(Logs)
		line, got, into = l, &l.Type, l
	case TypeProgram:
		l := new(Program)
		line, got, into = l, &l.Type, l
	case TypePoint:
		l := new(Point)
		line, got, into = l, &l.Type, l
	case TypeCeiling:
		l := new(Ceiling)
		line, got, into = l, &l.Type, l
	case TypeFinding:
		l := new(Finding)
		line, got, into = l, &l.Type, l
	case TypeEnd:
		l := new(End)
		line, got, into = l, &l.Type, l
	default:
		if !json.Valid(text) {
			return nil, errors.New("not JSON")
		}
		return nil, errUnknownType
	}
	if err := json.Unmarshal(text, into); err != nil {
		return nil, err
	}
	if *got != kind {
		return nil, fmt.Errorf("a line of two types, %s and %s", kind, *got)
	}
	switch l := into.(type) {
	case *batchLine:
		l.Batch.Samples = l.Samples
	case *readingLine:
		l.take()
	case *seriesLine:
		l.take()
	case *cellLine:
		l.take()
	case *placeLine:
		l.take()
	case *startLine:
		if err := l.take(); err != nil {
			return nil, err
		}
	}
	return line, nil
}

// batchLine is a Batch whose samples are counted while they are read: an
// honest sample is some hundred bytes, an empty one is three, and a line of
// those would take fifty times its own length in memory.
type batchLine struct {
	Batch
	Samples boundedSamples `json:"samples"`
}

type boundedSamples []Sample

func (s *boundedSamples) UnmarshalJSON(text []byte) error {
	return eachOf(text, "samples", func(decoder *json.Decoder) error {
		if len(*s) == MaxLanes {
			return fmt.Errorf("more than %d samples in one batch", MaxLanes)
		}
		*s = append(*s, Sample{})
		return decoder.Decode(&(*s)[len(*s)-1])
	})
}

// eachOf calls take for every element of the list that text is, which has to
// decode it. A null has none.
func eachOf(text []byte, name string, take func(*json.Decoder) error) error {
	if bytes.Equal(text, []byte("null")) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	open, err := decoder.Token()
	if err != nil {
		return err
	}
	if open != json.Delim('[') {
		return fmt.Errorf("%s is not a list", name)
	}
	for decoder.More() {
		if err := take(decoder); err != nil {
			return err
		}
	}
	return nil
}
