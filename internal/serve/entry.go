package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tare-bench/tare/record"
)

// Bounds of what is read of a file for the list. What a report reads is another matter.
const (
	headWithin = 256 << 10 // a file that has no header by then is no record
	wholeUpTo  = 32 << 20  // a longer record is read at both its ends only
	endsOf     = 1 << 20   // so much of each
	unpackUpTo = 64 << 20  // a compressed record has no end that could be gone to
)

// entry is what the index knows of a file: of its records the head, how many lines of
// which kind there are, and the end. It goes on where it stopped when the file has grown.
type entry struct {
	info   fs.FileInfo
	before [256]byte // the file's first bytes: another file may have come in its place
	offset int64     // of the first line that was not read; 0: read from the beginning
	err    error     // why it is no record

	header   *record.Header // of the first record
	plan     record.Planned
	runs     []string // ids of its records, as far as they were seen
	records  int
	open     bool     // the last has no end mark
	status   string   // of the last that did not end as planned, or "done"
	targets  []string // at most maxTargets
	node     string   // that a label of it names
	samples  int      // operations of batches, and other measurements
	failures int      // that were seen in lines
	told     int      // failures that the ends tell of
	rounds   int      // the most of any point of the plan
	last     where    // the last measurement
	findings [3]int   // by levels
	garbled  int      // lines that cannot be read
	partial  bool     // its midst was passed over, so that counts are too low
}

// levels are those of findings.
var levels = [...]string{"error", "warning", "note"}

// where a measurement belongs; of each type of line what it has.
type where struct {
	Phase  string `json:"phase"`
	Round  int    `json:"round"`
	Target string `json:"target"`
	Op     string `json:"op"`
	Lanes  int    `json:"lanes"`
	Job    string `json:"job"`
	Volume string `json:"volume"`
}

const (
	maxTargets = 64
	cutOff     = "cut off" // the status of a record without an end
)

// look brings the entry up to date with the file. Nothing is read of one that is as it was.
func (e *entry) look(lines *record.Lines, f *os.File, info fs.FileInfo) {
	if e.same(info) {
		return
	}
	var first [256]byte
	_, _ = f.ReadAt(first[:], 0) // what is shorter than that ends in zeros
	if e.offset == 0 || e.err != nil || !os.SameFile(e.info, info) || info.Size() < e.offset || first != e.before {
		*e = entry{before: first, status: "done"}
	}
	e.info = info
	switch e.err = e.read(lines, f, info.Size()); {
	case e.err == nil && e.header == nil: // it became another file meanwhile
		e.err = record.ErrNotRecord
	case e.err != nil && e.header != nil:
		e.err = fmt.Errorf("what follows cannot be read: %w", e.err)
	}
}

// same tells whether the file is as it was when it was read.
func (e *entry) same(info fs.FileInfo) bool {
	return e.info != nil && os.SameFile(e.info, info) && e.info.Size() == info.Size() && e.info.ModTime().Equal(info.ModTime())
}

// read reads what is new, and at first makes sure that the file is a record: what is
// none is not read on.
func (e *entry) read(lines *record.Lines, f *os.File, size int64) error {
	if e.offset > 0 {
		return e.skim(lines, f, e.offset, size-e.offset, false)
	}
	head := lines.NewReader(io.NewSectionReader(f, 0, headWithin))
	_, err := head.Next()
	packed := head.Packed()
	_ = head.Close() // nothing was written
	if err != nil {
		return err
	}
	if packed || size <= wholeUpTo {
		return e.skim(lines, f, 0, size, false)
	}
	e.partial = true
	if err := e.skim(lines, f, 0, endsOf, false); err != nil {
		return err
	}
	return e.skim(lines, f, size-endsOf, endsOf, true)
}

// skim counts the lines of a part of the file, of which the first may be half of one.
func (e *entry) skim(lines *record.Lines, f *os.File, from, length int64, half bool) error {
	r := lines.NewReader(io.NewSectionReader(f, from, length))
	defer func() { _ = r.Close() }() // nothing was written
	r.AtMost(unpackUpTo)
	if half {
		_, _, _ = r.Skim() // an error comes again
	}
	var last []byte
	for {
		word, text, err := r.Skim()
		if err != nil {
			if !r.Packed() {
				e.offset = from + r.Skimmed()
			}
			_ = json.Unmarshal(last, &e.last) // what it does not have is shown as unknown
			if errors.Is(err, record.ErrTooLong) {
				e.partial, err = true, io.EOF
			}
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if e.count(lines, word, text) {
			last = append(last[:0], text...)
		}
	}
}

// count counts a line, and tells whether it is a measurement.
func (e *entry) count(lines *record.Lines, word record.Type, text []byte) bool {
	switch word {
	case record.TypeHeader, record.TypeTarget, record.TypeFinding, record.TypeEnd, record.TypeLabel:
		line, err := lines.Decode(text)
		if err != nil {
			e.garbled++
		}
		e.add(line)
	case record.TypeNode, record.TypeSeries:
	case "":
		if len(text) > 0 {
			e.garbled++
		}
	default:
		round, ok := number(text, `"round":`)
		if !ok {
			return false
		}
		if !bytes.Contains(text, []byte(`"phase":"warmup"`)) {
			e.rounds = max(e.rounds, round+1)
		}
		n := 1
		if word == record.TypeBatch {
			n = max(n, bytes.Count(text, []byte(`{"lane":`)))
		}
		e.samples += n
		e.failures += bytes.Count(text, []byte(`"failure":{`))
		return true
	}
	return false
}

// number is the first whole number behind a key. A key with its colon cannot stand within
// a text of JSON, whose quotes have backslashes, and the writer puts no space between them.
func number(text []byte, key string) (n int, ok bool) {
	_, rest, ok := bytes.Cut(text, []byte(key))
	digits := 0
	for digits < min(len(rest), 9) && rest[digits] >= '0' && rest[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(string(rest[:digits]))
	return n, ok && err == nil
}

func (e *entry) add(line any) {
	switch l := line.(type) {
	case *record.Header:
		if e.open {
			e.status = cutOff
		}
		if e.records, e.open = e.records+1, true; e.records <= record.MaxRecords {
			e.runs = append(e.runs, l.RunID)
		}
		if e.header == nil {
			e.header = l
			e.plan = l.Planned()
		}
	case *record.Target:
		if len(e.targets) < maxTargets {
			e.targets = append(e.targets, l.Name)
		}
	case *record.Finding:
		if i := slices.Index(levels[:], l.Level); i >= 0 {
			e.findings[i]++
		}
	case *record.Label:
		if l.Key == "node" {
			e.node = l.Value
		}
	case *record.End:
		e.open = false
		e.told += l.Failures
		if l.Status != "done" {
			e.status = l.Status
		}
	}
}

// began is when the run began, or when a file that is no record was written.
func (e *entry) began() time.Time {
	switch {
	case e.header != nil:
		return e.header.Started
	case e.info != nil:
		return e.info.ModTime()
	}
	return time.Time{}
}
