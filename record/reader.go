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

// Errors of files that cannot be read as a record.
var (
	// ErrNotRecord is wrapped when a file does not begin with a header.
	ErrNotRecord = errors.New("not a tare record")
	// ErrNewerSchema is wrapped when a record needs a later tare.
	ErrNewerSchema = errors.New("the record is of a newer schema")
)

// Limits of what a reader keeps, so that no file can exhaust it.
const (
	// MaxProblems is how many problems are kept; the others are counted.
	MaxProblems = 100
	// headerWithin is how many bad lines may come before the header. More
	// of them are another kind of file.
	headerWithin = 100
	// decoderWindow is what `zstd -19` and below need.
	decoderWindow = 32 << 20
	// maxRatio is how many times its size a compressed record unpacks to, beyond anyRatio
	// bytes. Those of runs unpack to 5 to 20 times their size, a bomb to 30,000.
	maxRatio = 100
	anyRatio = 16 << 20
	// reasonLength keeps a hostile value out of a problem's reason.
	reasonLength = 300
)

// Problem is a line that could not be used, and why. The others still are.
type Problem struct {
	Line   int    `json:"line,omitempty"` // from 1; 0: not known, see String
	Reason string `json:"reason"`
}

// String has no number for a line that was read before it turned out to be of no use,
// such as one that is there twice.
func (p Problem) String() string {
	if p.Line == 0 {
		return p.Reason
	}
	return fmt.Sprintf("line %d: %s", p.Line, p.Reason)
}

// Reader reads a record line by line in memory that does not grow with it.
type Reader struct {
	name    string
	source  *source
	types   *Lines
	lines   *lineReader
	decoder *zstd.Decoder
	closer  io.Closer
	most    int64 // bytes of text, see AtMost; 0: no matter how many
	skimmed int64

	several   bool    // a second header begins another record, see More
	another   *Header // which it is
	opened    bool    // the header was read
	ended     bool    // the end mark was read
	err       error
	problems  []Problem
	count     int
	truncated bool
}

// Open is [Open] for these types of line.
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
		return nil, fmt.Errorf("open record: %s is a folder; give the records in it, such as %s", path, filepath.Join(path, "*.jsonl"))
	}
	r := l.NewReader(file)
	r.name, r.closer = path, file
	return r, nil
}

// NewReader is [NewReader] for these types of line.
func (l *Lines) NewReader(r io.Reader) *Reader {
	return &Reader{name: "record", types: l, source: &source{r: r}}
}

// Next returns the next line, a pointer to its struct, and io.EOF after the last.
// The first is the *Header: without one the error wraps [ErrNotRecord]. Lines of
// unknown types are passed over, and lines that cannot be true are too, as
// Problems.
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

// Several lets the reader go on behind the first record, see More.
func (r *Reader) Several() { r.several = true }

// More says, after io.EOF, whether the file holds another record behind the one that
// was read, as [Writer.Join] makes them. Next then returns the lines of that one, and
// Problems and Truncated are about it.
func (r *Reader) More() bool {
	if r.another == nil {
		return false
	}
	r.err, r.ended, r.problems, r.count, r.truncated = nil, false, nil, 0, false
	return true
}

// Problems returns the first MaxProblems lines that could not be used so far.
func (r *Reader) Problems() []Problem { return r.problems }

// ProblemCount returns how many lines could not be used so far.
func (r *Reader) ProblemCount() int { return r.count }

// Truncated says, after io.EOF, that the record breaks off within a line or a
// compressed frame. One that was cut between two lines lacks only its *End.
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

// zstdMagic begins every zstd frame (RFC 8878, 3.1.1).
var zstdMagic = []byte{0x28, 0xB5, 0x2F, 0xFD}

// begin looks at the first bytes, since a name can lie about compression.
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
	// One goroutine's decoder hands out every block that is whole before it
	// reports the one that is not.
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
	return &bounded{in, r.most + 1, r.source} // of what is exactly as long, the end is seen
}

// decode returns the line, nil if it is passed over, or the error that makes
// the rest of the file worthless.
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
	case kind == nil: // of a later version, or of another package
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

// place says whether a good line may stand where it does.
func (r *Reader) place(raw rawLine, word Type, line any) (any, error) {
	switch {
	case !r.opened && word != TypeHeader:
		return nil, r.notRecord(fmt.Sprintf("line %d is a %.40q line where the header belongs", raw.number, word))
	case line == nil:
		return nil, nil
	case r.opened && word == TypeHeader && r.several:
		r.another = line.(*Header)
		return nil, io.EOF
	case r.opened && word == TypeHeader:
		// Times of two runs cannot be mixed, so what follows is left alone.
		r.note(raw.number, "a second header: this and all that follows is another record; give it a file of its own")
		return nil, io.EOF
	case r.ended && word != TypeLabel: // which says something of a record that is whole
		return nil, r.problem(raw, fmt.Errorf("a %s line after the end mark", word))
	}
	r.opened = true
	r.ended = r.ended || word == TypeEnd
	r.truncated = r.truncated || !raw.whole
	return line, nil
}

// checkSchema comes before the rest of the header is looked at, which in a
// newer schema may have changed its meaning.
func (r *Reader) checkSchema(text []byte) error {
	var header struct {
		Schema  int    `json:"schema"`
		Version string `json:"tare_version"`
	}
	if err := json.Unmarshal(text, &header); err != nil || header.Schema <= Schema {
		return nil // what is wrong with it is found when the header is read
	}
	writer := "a later tare"
	if header.Version != "" {
		writer = fmt.Sprintf("tare %.40s or later", header.Version)
	}
	return fmt.Errorf("%s: %w: it has schema %d and this tare reads up to %d; open it with %s, which wrote it",
		r.name, ErrNewerSchema, header.Schema, Schema, writer)
}

// problem counts a bad line. Before the header, too many of them are an error.
func (r *Reader) problem(raw rawLine, why error) error {
	if !raw.whole {
		// A half line is how a crash looks; it is no one's mistake.
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

// finish decides what the end of the input means.
func (r *Reader) finish(last rawLine, err error) {
	switch {
	case r.source.err != nil:
		r.err = fmt.Errorf("read %s: %w; what came before it was read", r.name, r.source.err)
		return
	case errors.Is(err, io.EOF): // all of it was read
	case errors.Is(err, io.ErrUnexpectedEOF):
		r.truncated = true
	default:
		r.truncated = true
		r.note(last.number, fmt.Sprintf("the compressed stream is damaged here, and what follows cannot be read: %v", err))
	}
	if r.err = io.EOF; !r.opened {
		r.err = r.notRecord("it is empty: the run ended before its header, or it is not the right file")
	}
}

// notRecord says why a file is not a record. The first bad line is likelier
// the reason than whatever came last.
func (r *Reader) notRecord(reason string) error {
	if len(r.problems) > 0 {
		reason = r.problems[0].String()
	} else if r.truncated {
		reason = "it breaks off before the header is complete"
	}
	return fmt.Errorf("%s: %w: %s; give a file that tare wrote", r.name, ErrNotRecord, reason)
}

// proportionate ends with an error what unpacks to more than maxRatio allows.
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

// source keeps the error of the file apart from the errors of what is in it.
type source struct {
	r    io.Reader
	err  error
	size int64 // that was read
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.size += int64(n)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
