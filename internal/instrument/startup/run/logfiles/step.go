package logfiles

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// step is a clock that was set back while somebody wrote a log: from and to are what it
// showed, ns since 1970. No time between the two is known to be before another.
type step struct {
	file     int // of those that are read
	name     string
	from, to int64
	line     int64
}

// glance is how much of a file is looked at on either side of a place where time goes
// back, and at its beginning.
const glance = 64 << 10

// steps finds where time goes back in a file because the clock did, and not because
// another log begins there: the same process writes on, and does not say once more what
// the file began with, as in a file that holds the same log twice. Where time goes back more
// than once, several greps were pasted one after another.
func steps(ctx context.Context, file int, name string, f *io.SectionReader, before logs.Segment) (found []step) {
	_, a := ends(ctx, name, f, max(before.Bytes-glance, 0), before.Bytes)
	b, _ := ends(ctx, name, f, before.Bytes, min(before.Bytes+glance, f.Size()))
	first, _ := ends(ctx, name, f, 0, min(glance, before.Bytes))
	if a.pid != 0 && a.pid == b.pid && a.program == b.program && (b.at != first.at || b.message != first.message) {
		found = append(found, step{file, name, a.at, b.at, before.Lines + 1})
	}
	return found
}

// end is a line at the end of a piece.
type end struct {
	at               int64
	pid              int
	program, message string
}

// ends are the first and the last line of a part of a file that say who wrote them.
func ends(ctx context.Context, name string, f io.ReaderAt, from, to int64) (first, last end) {
	part, err := io.ReadAll(io.NewSectionReader(f, from, to-from))
	if err != nil {
		return end{}, end{}
	}
	if _, whole, ok := bytes.Cut(part, []byte("\n")); ok && to-from == glance && from != 0 {
		part = append([]byte(nil), whole...) // its first line may be half a one
	}
	_, _ = logs.Read(ctx, []logs.Source{{Name: name, Reader: bytes.NewReader(part)}}, func(e *logs.Event) error {
		if e.Guest {
			return nil
		}
		last = end{e.Time, e.Pid, string(e.Program), string(e.Message)}
		if first.at == 0 {
			first = last
		}
		return nil
	})
	return first, last
}

// doubt takes the times from a start that begins in a file and beside which the clock of
// that was set back: how long it took is not known, nor what lay between its lines.
func (r *Reading) doubt(x *record.Start, file int) {
	until := max(x.Ended, x.Began)
	for i := range x.Spans {
		until = max(until, x.Spans[i].Ended)
	}
	for _, s := range r.steps {
		if file == s.file && x.Began <= s.from && until >= s.to {
			x.Ended, x.Gaps, x.Spans = 0, nil, nil
			x.Missing = append(x.Missing, record.Missing{What: "clock", Count: 1, Detail: fmt.Sprintf("it was set back by %v at %s:%d, so that this start has no times",
				cmp.Or(time.Duration(s.from-s.to).Round(time.Millisecond), time.Millisecond), s.name, s.line)})
			return
		}
	}
}
