package bpflist

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/live"
	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/term"
)

// Output formats.
const (
	formatText        = "text"
	formatJSON        = "json"
	formatOpenMetrics = "openmetrics"
)

// Formats are the values of --format.
var Formats = []string{formatText, formatJSON, formatOpenMetrics}

// Options are the options of `tare bpf list`.
type Options struct {
	Filter bpfstat.Filter
	// Interval is the time between two readings. With 0 there is one reading, without
	// rates, and statistics are not enabled.
	Interval time.Duration
	Watch    bool   // until ctx ends
	Format   string // "": text
	Selection
}

// Check returns an error if options conflict.
func (o *Options) Check() error {
	switch {
	case o.Interval < 0:
		return fmt.Errorf("--interval: %s is less than none", o.Interval)
	case o.Watch && o.Interval == 0:
		return errors.New("--watch: it takes an interval; leave out --interval 0")
	case o.Watch && o.Format == formatOpenMetrics:
		return errors.New("--watch: OpenMetrics is one exposition, which ends; it cannot be watched")
	}
	return live.CheckColumns(append(slices.Clip(o.Columns), o.Sort), ColumnNames())
}

// Run prints the programs to w once, after an interval. With Watch it repeats until ctx
// ends, live if w is a terminal. It returns nil if the user quits, and ctx's error if
// ctx ends. Statistics are always released.
func Run(ctx context.Context, w io.Writer, o Options) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	m, err := bpfstat.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	c, err := newCollector(m, o.Filter)
	if err != nil {
		return err
	}
	c.watch = o.Watch
	s := &shown{options: o, out: w}
	if o.Interval > 0 {
		release, before, err := m.Statistics()
		if err != nil {
			return err
		}
		s.counted, s.before = true, before
		defer func() { _ = release() }() // Close reports the error
	}
	if o.Watch && (o.Format == "" || o.Format == formatText) && live.Possible(w) {
		return s.watch(c).Run(ctx, w)
	}
	return s.blocks(ctx, c)
}

// lookOnce returns all loaded programs, without rates.
func lookOnce() (v *View, err error) {
	m, err := bpfstat.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	c, err := newCollector(m, bpfstat.Filter{})
	if err != nil {
		return nil, err
	}
	return c.look()
}

// Loaded returns one line with the number of programs per owner and some of their
// names.
func Loaded() string {
	v, err := lookOnce()
	if err != nil {
		return "unknown: " + err.Error()
	}
	const owners, names = 6, 3
	by, order := map[string][]string{}, []string{}
	for i := range v.Programs {
		p := &v.Programs[i]
		owner := page.Heading(cmp.Or(p.Owner, few(p.Holders, 1), "unknown owner"))
		if by[owner] == nil {
			order = append(order, owner)
		}
		by[owner] = append(by[owner], page.Heading(p.name()))
	}
	for i, owner := range order {
		order[i] = fmt.Sprintf("%d of %s (%s)", len(by[owner]), owner, few(by[owner], names))
	}
	return cmp.Or(few(order, owners), "none")
}

// shown prints views.
type shown struct {
	options         Options
	out             io.Writer
	counted, before bool
	view            *View
	printed         int
}

// look takes a view and adds the state of the statistics.
func (s *shown) look(c *collector) error {
	v, err := c.look()
	if err != nil {
		return err
	}
	v.Counted, v.Before = s.counted, s.before
	s.view = v
	return nil
}

func (s *shown) blocks(ctx context.Context, c *collector) error {
	if err := s.look(c); err != nil {
		return err
	}
	if s.options.Interval == 0 {
		return errors.Join(ctx.Err(), s.print(), s.found())
	}
	// A description takes long, so start the interval after it.
	if err := s.look(c); err != nil {
		return err
	}
	ticks := time.NewTicker(s.options.Interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		if err := s.look(c); err != nil {
			return err
		}
		if err := s.print(); err != nil {
			return err
		}
		if !s.options.Watch {
			return s.found()
		}
	}
}

// errNotFound reports that no loaded program matches the filter. The output has been
// printed by then.
var errNotFound = errors.New("no such program")

// found returns [errNotFound] if no program matches.
func (s *shown) found() error {
	if len(s.view.Programs) > 0 || s.options.Filter.Empty() {
		return nil
	}
	if s.view.loaded == 0 {
		return fmt.Errorf("%w: none is loaded at all", errNotFound)
	}
	return fmt.Errorf("%w: %s %s loaded, but none matches %s", errNotFound, page.Amount(s.view.loaded, "program"), are(s.view.loaded), flags(&s.options.Filter))
}

// flags formats the filter as command-line flags.
func flags(f *bpfstat.Filter) string {
	var all []string
	add := func(flag string, values ...string) {
		for _, v := range values {
			all = append(all, flag+" "+strconv.Quote(v))
		}
	}
	if f.Kmesh {
		all = append(all, "--kmesh")
	}
	add("--name", f.Names...)
	add("--pin", f.Pins...)
	add("--cgroup", f.Cgroups...)
	add("--owner", f.Owners...)
	for _, id := range f.IDs {
		all = append(all, fmt.Sprintf("--id %d", id))
	}
	return few(all, 5)
}

func (s *shown) print() error {
	defer func() { s.printed++ }()
	switch s.options.Format {
	case formatJSON:
		return term.WriteJSON(s.out, s.view, !s.options.Watch)
	case formatOpenMetrics:
		return s.view.writeOpenMetrics(s.out)
	}
	if s.printed > 0 {
		fmt.Fprintln(s.out)
	}
	width, _ := term.Columns(s.out)
	return s.view.writeText(s.out, width, term.Colour(s.out), s.options.Selection)
}
