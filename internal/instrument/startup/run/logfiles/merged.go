package logfiles

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/term"
)

// Merged writes the lines of all logs in time order. Each output line has the time,
// the time since the previous line, the source position, the writer and the message.
// Guest lines have their time of arrival, since a guest has a different clock.
func (r *Reading) Merged(ctx context.Context, to io.Writer) error {
	w, last := bufio.NewWriter(to), int64(0)
	_, err := logs.Read(ctx, r.sources, func(e *logs.Event) error {
		at, guest := cmp.Or(e.Arrived, e.Time), ""
		if e.Guest {
			guest = "guest "
		}
		if at < last || last == 0 { // programs write from several threads
			last = at
		}
		_, err := fmt.Fprintf(w, "%s %+11.6f  %s:%d  %s%s  %s\n", time.Unix(0, at).UTC().Format("2006-01-02T15:04:05.000000000Z"), float64(at-last)/1e9,
			r.files[e.File], e.Line, guest, e.Form, term.Clean(string(e.Message)))
		last = at
		return err
	})
	return errors.Join(err, w.Flush())
}
