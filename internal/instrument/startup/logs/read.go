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

// Source is a file to read, or a pipe.
type Source struct {
	Name   string // of the file, in errors; it may also say whose log it is
	Reader io.Reader
	// Journal says that it is `journalctl -o json` or `-o export`. Both are
	// recognised without it where an entry begins with its cursor.
	Journal bool
	// Line is how many lines of its file precede it.
	Line int64
	// Lines are the numbers that its lines have, where they were put in order.
	Lines []int64
	// Date is that of its file, from which times without a year have it where no line of
	// the file has one; the zero time is now. Zone is that of times without one, nil is UTC.
	Date time.Time
	Zone *time.Location
}

// Read reads all sources as one stream in order of time and gives every event out.
// It holds a block of each source, whatever their size.
//
// Each source is taken to be in order: the line of which the time is the lowest
// comes next, a line without a time has that of the line before it in its source,
// and one that goes back in time comes at once. Several events of one line come one
// after the other. The year and the zone of times that have neither are taken from
// the source's other lines, then from the other sources', from what their first
// blocks hold.
//
// It ends with ctx's error, with each's, or with that of a source that cannot be
// read; what was counted until then is returned with it.
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
	heads  []*source // that have a line, the one that comes next first
	stats  Stats
	counts [forms]int64
}

// open reads the first block of a source and looks in it for what its lines need.
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

// run gives out the events of the line with the lowest time until there is none.
func (r *reader) run(ctx context.Context) error {
	for _, s := range r.all {
		if s.advance() {
			r.heads = append(r.heads, s)
		} else if err := r.ended(ctx, s); err != nil {
			return err
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
		if s.advance() {
			to, _ := slices.BinarySearchFunc(r.heads[1:], s, byTime)
			copy(r.heads, r.heads[1:to+1])
			r.heads[to] = s
			continue
		}
		r.heads = r.heads[1:]
		if err := r.ended(ctx, s); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// byTime is the order of two sources by the time of their lines, then by their place.
func byTime(a, b *source) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.file, b.file)) }

// ended keeps why a source ended before its end, if it did. Only ctx's end is that
// of everything.
func (r *reader) ended(ctx context.Context, s *source) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) {
		r.stats.Broken = append(r.stats.Broken, Broken{File: s.file, Lines: s.number, Err: fmt.Errorf("reading %s: %w", s.name, s.err)})
	}
	return nil
}

// errUTF16 is what a source that is no UTF-8 ends with.
var errUTF16 = errors.New("it is UTF-16: convert it, iconv -f utf-16 -t utf-8")

// isUTF16 says whether a text begins with UTF-16's mark, or as letters do in it.
func isUTF16(b []byte) bool {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return true
	}
	var none [2]int // NULs at even and odd places
	for i, c := range b[:min(len(b), 16)] {
		if c == 0 {
			none[i%2]++
		}
	}
	return none == [2]int{8, 0} || none == [2]int{0, 8}
}

// Until is a reader that ends with a context: a source of which no line is
// known gives out no event that could.
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

// engineOf says whose a line of logfmt is that does not say so itself: what only
// one of them writes at its start tells, or the file's name, else it is containerd.
func engineOf(b []byte, name string) Form {
	for _, sign := range signs {
		if bytes.Contains(b, []byte(sign.text)) {
			return sign.form
		}
	}
	for _, sign := range nameSigns {
		if strings.Contains(strings.ToLower(name), sign.text) {
			return sign.form
		}
	}
	return Containerd
}

type sign struct {
	text string
	form Form
}

var nameSigns = []sign{{"crio", CRIO}, {"cri-o", CRIO}, {"docker", Docker}, {"podman", Podman}, {"kubelet", Kubelet}, {"isula", Isulad}, {"runsc", Runsc}, {"gvisor", Runsc}}

var signs = []sign{
	{"**************** gVisor", Runsc},
	{"Starting CRI-O, version", CRIO},
	{"name=/runtime.v1", CRIO},
	{"module=libcontainerd", Docker},
	{"Daemon has completed initialization", Docker},
	{"msg=\"API listen on ", Docker},
	{"msg=\"Calling GET /", Docker},
	{"msg=\"Calling POST /", Docker},
	{"] Calling POST /", Docker},
	{"msg=\"handling POST request", Docker},
	{"msg=\"container mounted via layerStore", Docker},
	{"podman filtering at log level", Podman},
	{".PersistentPreRunE(", Podman},
}
