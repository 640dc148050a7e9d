package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Errors that a Reader returns wrapped.
var (
	ErrNotRecord   = errors.New("not a tare record") // a file does not begin with a header
	ErrNewerSchema = errors.New("the record has a newer schema")
)

// Limits of a reader, to protect against malicious files.
const (
	// MaxProblems is the maximum number of problems to keep. All problems are counted.
	MaxProblems = 100
	// headerWithin is the maximum number of bad lines before the header. A file with more is not
	// a record.
	headerWithin = 100
	// decoderWindow is large enough for files of `zstd -19`.
	decoderWindow = 32 << 20
	// maxRatio is the maximum ratio of unpacked to compressed size beyond anyRatio bytes. Real
	// records have a ratio of 5 to 20, and a zstd bomb has 30,000.
	maxRatio = 100
	anyRatio = 16 << 20
	// reasonLength is the maximum length of a problem's reason.
	reasonLength = 300
)

// Problem is an unusable line with the reason.
type Problem struct {
	Line   int    `json:"line,omitempty"` // starting at 1; 0: unknown, such as for duplicates found later
	Reason string `json:"reason"`
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.Reason
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Reason)
}

// Reader reads a record line by line. Its memory use does not depend on the record's length.
type Reader struct {
	name    string
	source  *source
	types   *Lines
	lines   *lineReader
	decoder *zstd.Decoder
	closer  io.Closer
	most    int64 // limit for text in bytes, see AtMost; 0: no limit
	skimmed int64

	several   bool    // a second header starts another record, see More
	another   *Header // the header of the next record
	opened    bool    // the header was read
	ended     bool    // the end mark was read
	err       error
	problems  []Problem
	count     int
	truncated bool
}

// Open is [Open] for the line types in l.
func (l *Lines) Open(path string) (*Reader, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) {
		return nil, fmt.Errorf("open record: %w; read it as its owner, or with sudo", err)
	}
	if err != nil {
		return nil, fmt.Errorf("open record: %w; give the path of a file that tare wrote", err)
	}
	if info, err := file.Stat(); err == nil && info.IsDir() {
		file.Close()
		return nil, fmt.Errorf("open record: %s is a folder; give its records, such as %s", path, filepath.Join(path, "*.jsonl"))
	}
	r := l.NewReader(file)
	r.name, r.closer = path, file
	return r, nil
}

// NewReader is [NewReader] for the line types in l.
func (l *Lines) NewReader(r io.Reader) *Reader {
	return &Reader{name: "record", types: l, source: &source{r: r}}
}

// Next returns a pointer to the next line's struct, or io.EOF after the last line. The first line
// is the *Header; without one, the error wraps [ErrNotRecord]. Next skips lines of unknown types.
// It also skips invalid lines, and adds them to Problems.
func (r *Reader) Next() (any, error) {
	if h := r.another; h != nil && r.err == nil {
		r.another = nil
		return h, nil
	}
	for r.err == nil {
		raw, err := r.read()
		if err != nil {
			r.finish(raw, err)
			break
		}
		line, err := r.decode(raw)
		if err != nil {
			r.err = err
			break
		}
		if line != nil {
			return line, nil
		}
	}
	return nil, r.err
}

// Several allows the file to have several records, see More.
func (r *Reader) Several() { r.several = true }

// More reports whether the file has another record, which [Writer.Join] may have appended. Call it
// after io.EOF. Next then returns the lines of that record, and Problems and Truncated apply to it.
func (r *Reader) More() bool {
	if r.another == nil {
		return false
	}
	r.err, r.ended, r.problems, r.count, r.truncated = nil, false, nil, 0, false
	return true
}

// Problems returns the first MaxProblems unusable lines so far.
func (r *Reader) Problems() []Problem { return r.problems }

// ProblemCount returns the number of unusable lines so far.
func (r *Reader) ProblemCount() int { return r.count }

// Truncated reports whether the record ends within a line or a compressed frame. Call it after
// io.EOF. A record that was cut between two lines only lacks its *End.
func (r *Reader) Truncated() bool { return r.truncated }

// Close closes a file that Open opened.
func (r *Reader) Close() error {
	if r.decoder != nil {
		r.decoder.Close()
		r.decoder = nil
	}
	if r.err == nil {
		r.err = errors.New("read record: the reader is closed")
	}
	if r.closer == nil {
		return nil
	}
	closer := r.closer
	r.closer = nil
	return closer.Close()
}

func (r *Reader) read() (rawLine, error) {
	if r.lines == nil {
		if err := r.begin(); err != nil {
			return rawLine{number: 1}, err
		}
	}
	return r.lines.next()
}

// zstdMagic is the beginning of every zstd frame (RFC 8878, 3.1.1).
var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

// begin detects compression from the first bytes.
func (r *Reader) begin() error {
	in := bufio.NewReader(r.source)
	magic, err := in.Peek(len(zstdMagic))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.Equal(magic, zstdMagic) {
		r.lines = newLineReader(r.bound(in))
		return nil
	}
	// With a single goroutine the decoder returns all complete blocks before it reports an error
	// in a damaged one.
	r.decoder, err = zstd.NewReader(in,
		zstd.WithDecoderConcurrency(1),
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(decoderWindow))
	if err != nil {
		return err
	}
	r.lines = newLineReader(r.bound(&proportionate{r.decoder, r.source, 0}))
	return nil
}

func (r *Reader) bound(in io.Reader) io.Reader {
	if r.most == 0 {
		return in
	}
	return &bounded{in, r.most + 1, r.source} // one more byte, to detect the end of a text of exactly this length
}

// decode returns the line, or nil if it is skipped. After an error, reading of the file ends.
func (r *Reader) decode(raw rawLine) (any, error) {
	if raw.long {
		return nil, r.problem(raw, fmt.Errorf("longer than %d MiB", MaxLine>>20))
	}
	text := bytes.TrimSpace(raw.text)
	if len(text) == 0 {
		return nil, nil
	}
	word, err := lineType(text)
	if err != nil {
		return nil, r.problem(raw, err)
	}
	kind, line := r.types.byWord[word], any(nil)
	switch {
	case kind == nil && !json.Valid(text):
		err = errors.New("not JSON")
	case kind == nil: // from a later version or another package
	case word == TypeHeader && (r.several || !r.opened):
		if err := r.checkSchema(text); err != nil {
			return nil, err
		}
		fallthrough
	default:
		line, err = kind.decode(text)
	}
	if err != nil {
		return nil, r.problem(raw, err)
	}
	return r.place(raw, word, line)
}

// place checks the position of a valid line.
func (r *Reader) place(raw rawLine, word Type, line any) (any, error) {
	switch {
	case !r.opened && word != TypeHeader:
		return nil, r.notRecord(fmt.Sprintf("line %d is a %.40q line in place of the header", raw.number, word))
	case line == nil:
		return nil, nil
	case r.opened && word == TypeHeader && r.several:
		r.another = line.(*Header)
		return nil, io.EOF
	case r.opened && word == TypeHeader:
		// Times of different runs are not comparable.
		r.note(raw.number, "a second header: this line and the rest are another record; split the file")
		return nil, io.EOF
	case r.ended && word != TypeLabel: // labels are added to finished records
		return nil, r.problem(raw, fmt.Errorf("a %s line after the end mark", word))
	}
	r.opened = true
	r.ended = r.ended || word == TypeEnd
	r.truncated = r.truncated || !raw.whole
	return line, nil
}

// checkSchema checks the schema before the rest of the header is decoded, because a newer schema may
// define it differently.
func (r *Reader) checkSchema(text []byte) error {
	var header struct {
		Schema  int    `json:"schema"`
		Version string `json:"tare_version"`
	}
	if err := json.Unmarshal(text, &header); err != nil || header.Schema <= Schema {
		return nil // decoding the header reports the error
	}
	writer := "a later tare"
	if header.Version != "" {
		writer = fmt.Sprintf("tare %.40s or later", header.Version)
	}
	return fmt.Errorf("%s: %w: schema %d, supported up to %d; open it with %s, which wrote it",
		r.name, ErrNewerSchema, header.Schema, Schema, writer)
}

// problem counts a bad line. It returns an error for too many bad lines before the header.
func (r *Reader) problem(raw rawLine, why error) error {
	if !raw.whole { // left by a crash
		r.truncated = true
		return nil
	}
	r.note(raw.number, why.Error())
	if !r.opened && r.count >= headerWithin {
		return r.notRecord(fmt.Sprintf("none of its first %d lines can be read", raw.number))
	}
	return nil
}

func (r *Reader) note(line int, reason string) {
	r.count++
	if len(r.problems) < MaxProblems {
		if len(reason) > reasonLength {
			reason = strings.ToValidUTF8(reason[:reasonLength], "") + "…"
		}
		r.problems = append(r.problems, Problem{Line: line, Reason: reason})
	}
}

// finish sets the final error and the state at the end of the input.
func (r *Reader) finish(last rawLine, err error) {
	switch {
	case r.source.err != nil:
		r.err = fmt.Errorf("read %s: %w; the lines before it were read", r.name, r.source.err)
		return
	case errors.Is(err, io.EOF):
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.truncated = true
	default:
		r.truncated = true
		r.note(last.number, fmt.Sprintf("the compressed stream is damaged here, and the rest is unreadable: %v", err))
	}
	if r.err = io.EOF; !r.opened {
		r.err = r.notRecord("it is empty: the run ended before its header, or it is the wrong file")
	}
}

// notRecord returns an error for a file that is not a record. The first bad line is the most likely
// reason.
func (r *Reader) notRecord(reason string) error {
	if len(r.problems) > 0 {
		reason = r.problems[0].String()
	} else if r.truncated {
		reason = "it ends before the header is complete"
	}
	return fmt.Errorf("%s: %w: %s; give a file that tare wrote", r.name, ErrNotRecord, reason)
}

// proportionate fails if the input unpacks to more than maxRatio times its size.
type proportionate struct {
	in     io.Reader
	source *source
	size   int64
}

func (p *proportionate) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if p.size += int64(n); p.size > anyRatio+maxRatio*p.source.size {
		return 0, fmt.Errorf("it unpacks to more than %d times its size", maxRatio)
	}
	return n, err
}

// source stores read errors of the file, to distinguish them from errors in its content.
type source struct {
	r    io.Reader
	err  error
	size int64 // bytes read
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.size += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
