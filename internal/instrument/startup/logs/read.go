package logs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/record"
)

// Source is a file or a pipe to read.
type Source struct {
	Name   string // of the file, used in errors and to detect the writer
	Reader io.Reader
	// Journal marks the output of `journalctl -o json` or `-o export`. Both are also
	// detected from an entry that begins with its cursor.
	Journal bool
	// Line is the number of lines before this source in its file.
	Line int64
	// Lines has the original line numbers if the lines were sorted.
	Lines []int64
	// Date is the date of the file. It supplies the year if no line of the file has
	// one. The zero time means now. Zone applies to times without a zone; nil means UTC.
	Date time.Time
	Zone *time.Location
}

// Read merges all sources in time order and calls each for every event. It holds one
// block per source in memory, whatever the size of the source.
//
// Each source is assumed to be sorted. The line with the lowest time is read next. A
// line without a time takes the time of the previous line in its source. A line that
// goes back in time is read at once. Several events of one line are consecutive.
// Missing years and zones come from the first blocks of the source, then of the other
// sources.
//
// Read returns the error of ctx, of each, or of an unreadable source. The returned
// counts are valid in every case.
func Read(ctx context.Context, sources []Source, each func(*Event) error) (Stats, error) {
	r := reader{each: each, stats: Stats{Logs: record.Logs{Type: record.TypeLogs, Forms: map[string]int64{}}}}
	for i := range sources {
		r.open(ctx, i, &sources[i], len(sources))
	}
	err := r.run(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	for _, s := range r.all {
		r.stats.Bytes += s.bytes
	}
	for form, n := range r.counts {
		if n > 0 {
			r.stats.Forms[formNames[form]] = n
		}
	}
	return r.stats, err
}

// reader merges sources.
type reader struct {
	each   func(*Event) error
	all    []*source
	heads  []*source // sources with a pending line, earliest first
	stats  Stats
	counts [forms]int64
}

// open reads the first block of a source to detect the defaults for its lines.
func (r *reader) open(ctx context.Context, i int, from *Source, among int) {
	size := block
	if among > 16 {
		size = 2 * maxLine
	}
	s := &source{
		lines:   linesOf(Until(ctx, from.Reader), size),
		file:    i,
		name:    from.Name,
		journal: from.Journal,
		stats:   &r.stats,
		counts:  &r.counts,
		number:  from.Line,
		numbers: from.Lines,
	}
	first := s.first()
	if isUTF16(first) {
		first, s.err = nil, errUTF16
	}
	date := from.Date
	if date.IsZero() {
		date = now()
	}
	if s.date = date.UnixNano(); from.Zone != nil {
		_, east := date.In(from.Zone).Zone()
		s.own.zone = int64(east) * second
	}
	s.engine = engineOf(first, from.Name)
	s.foresee(first)
	r.all = append(r.all, s)
}

// run emits events in time order until all sources are read.
func (r *reader) run(ctx context.Context) error {
	for _, s := range r.all {
		if r.advance(ctx, s) {
			r.heads = append(r.heads, s)
		}
	}
	slices.SortFunc(r.heads, byTime)
	for n := 0; len(r.heads) > 0; n++ {
		if n%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		s := r.heads[0]
		for i := range s.events {
			if err := r.each(&s.events[i]); err != nil {
				return err
			}
		}
		if r.advance(ctx, s) {
			to, _ := slices.BinarySearchFunc(r.heads[1:], s, byTime)
			copy(r.heads, r.heads[1:to+1])
			r.heads[to] = s
			continue
		}
		r.heads = r.heads[1:]
	}
	return ctx.Err()
}

// byTime orders sources by the time of their line, then by index.
func byTime(a, b *source) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.file, b.file)) }

// advance reads the next line of a source with events. It returns false at the end of
// the source, and records the error of a source that ended early.
func (r *reader) advance(ctx context.Context, s *source) bool {
	if s.advance() {
		return true
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) && ctx.Err() == nil {
		r.stats.Broken = append(r.stats.Broken, Broken{File: s.file, Lines: s.number, Err: fmt.Errorf("reading %s: %w", s.name, s.err)})
	}
	return false
}

// errUTF16 is the error of a source in UTF-16.
var errUTF16 = errors.New("encoded in UTF-16: convert it with iconv -f utf-16 -t utf-8")

// isUTF16 reports whether a text begins with a UTF-16 byte order mark, or with ASCII
// letters in UTF-16.
func isUTF16(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	var none [2]int // NULs at even and odd offsets
	for i, c := range b[:min(len(b), 16)] {
		if c == 0 {
			none[i%2]++
		}
	}
	return none == [2]int{8, 0} || none == [2]int{0, 8}
}

// Until returns a reader that ends with ctx, even if it never yields a line.
func Until(ctx context.Context, r io.Reader) io.Reader { return stoppable{ctx, r} }

type stoppable struct {
	ctx context.Context
	io.Reader
}

func (r stoppable) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

// engineOf returns the writer of logfmt lines without a program name. It checks for
// texts specific to one engine, then for the file name. The default is containerd.
func engineOf(b []byte, name string) Form {
	name = strings.ToLower(name)
	for _, sign := range signs {
		if sign.text != "" && bytes.Contains(b, []byte(sign.text)) || sign.name != "" && strings.Contains(name, sign.name) {
			return sign.form
		}
	}
	return Containerd
}

// signs are texts in a log, or else in its name, that identify its writer.
var signs = []struct {
	text string
	form Form
	name string
}{
	{"**************** gVisor", Runsc, ""},
	{"Starting CRI-O, version", CRIO, ""},
	{"name=/runtime.v1", CRIO, ""},
	{"module=libcontainerd", Docker, ""},
	{"Daemon has completed initialization", Docker, ""},
	{"msg=\"API listen on ", Docker, ""},
	{"msg=\"Calling GET /", Docker, ""},
	{"msg=\"Calling POST /", Docker, ""},
	{"] Calling POST /", Docker, ""},
	{"msg=\"handling POST request", Docker, ""},
	{"msg=\"container mounted via layerStore", Docker, ""},
	{"podman filtering at log level", Podman, ""},
	{".PersistentPreRunE(", Podman, ""},
	{"", CRIO, "crio"}, {"", CRIO, "cri-o"}, {"", Docker, "docker"}, {"", Podman, "podman"},
	{"", Kubelet, "kubelet"}, {"", Isulad, "isula"}, {"", Runsc, "runsc"}, {"", Runsc, "gvisor"},
}
