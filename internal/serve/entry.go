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

// Limits for reading files for the list. Reports have their own limits.
const (
	headWithin = 256 << 10 // a record has a header within this size
	wholeUpTo  = 32 << 20  // of longer records only both ends are read
	endsOf     = 1 << 20   // size of each end
	unpackUpTo = 64 << 20  // a compressed record has no seekable end
)

// entry is the index data of a file: the header of its records, counts of lines by type,
// and its end. If the file grows, reading continues at offset.
type entry struct {
	info   fs.FileInfo
	before [256]byte // first bytes of the file, to detect a replaced file
	offset int64     // of the first unread line; 0: start of the file
	err    error     // why it is not a record

	header   *record.Header // of the first record
	plan     record.Planned
	runs     []string // ids of its records seen so far
	records  int
	open     bool     // the last record has no end mark
	status   string   // of the last record that did not end as planned, or "done"
	targets  []string // at most maxTargets
	node     string   // value of its label node
	samples  int      // operations of batches, and other measurements
	failures int      // failures counted in lines
	told     int      // failures in end lines
	rounds   int      // maximum of any point of the plan
	last     where    // the last measurement
	findings [3]int   // by level
	garbled  int      // unreadable lines
	partial  bool     // the middle was skipped, so counts are too low
}

// levels are the levels of findings.
var levels = [...]string{"error", "warning", "note"}

// where locates a measurement. Types of lines have different fields.
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

// look updates the entry from the file. It does not read an unchanged file.
func (e *entry) look(lines *record.Lines, f *os.File, info fs.FileInfo) {
	if e.same(info) {
		return
	}
	var first [256]byte
	_, _ = f.ReadAt(first[:], 0) // a shorter file leaves zeros at the end
	if e.offset == 0 || e.err != nil || !os.SameFile(e.info, info) || info.Size() < e.offset || first != e.before {
		*e = entry{before: first, status: "done"}
	}
	e.info = info
	switch e.err = e.read(lines, f, info.Size()); {
	case e.err == nil && e.header == nil: // the file was replaced while it was read
		e.err = record.ErrNotRecord
	case e.err != nil && e.header != nil:
		e.err = fmt.Errorf("the rest cannot be read: %w", e.err)
	}
}

// same reports whether the file is unchanged since it was read.
func (e *entry) same(info fs.FileInfo) bool {
	return e.info != nil && os.SameFile(e.info, info) && e.info.Size() == info.Size() && e.info.ModTime().Equal(info.ModTime())
}

// read reads new lines. On the first call it checks that the file is a record. It reads
// nothing else of a file that is not.
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

// skim counts the lines of a part of the file. With half, the first line may be partial.
func (e *entry) skim(lines *record.Lines, f *os.File, from, length int64, half bool) error {
	r := lines.NewReader(io.NewSectionReader(f, from, length))
	defer func() { _ = r.Close() }() // nothing was written
	r.AtMost(unpackUpTo)
	if half {
		_, _, _ = r.Skim() // the next Skim returns the error again
	}
	var last []byte
	for {
		word, text, err := r.Skim()
		if err != nil {
			if !r.Packed() {
				e.offset = from + r.Skimmed()
			}
			_ = json.Unmarshal(last, &e.last) // missing fields are shown as unknown
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

// count counts a line and reports whether it is a measurement.
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

// number returns the first integer after a key. A key with its colon cannot occur in a JSON
// string, where quotes are escaped, and the writer adds no space.
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

// began returns the start of the run, or the modification time of a file that is not a
// record.
func (e *entry) began() time.Time {
	switch {
	case e.header != nil:
		return e.header.Started
	case e.info != nil:
		return e.info.ModTime()
	}
	return time.Time{}
}
