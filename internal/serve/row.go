package serve

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// Row is a record as the list and the page of its progress show it.
type Row struct {
	of         *found
	Run        string    `json:"run"`
	Key        string    `json:"-"`    // by which it is asked for, see keyOf
	Name       string    `json:"path"` // below the folder
	Title      string    `json:"-"`    // the plan's, or else the name
	Instrument string    `json:"experiment"`
	Targets    string    `json:"targets"`
	Began      time.Time `json:"began"`
	Machine    string    `json:"-"`
	Kernel     string    `json:"-"`
	Size       string    `json:"size"`
	Rounds     string    `json:"rounds"`
	Samples    string    `json:"samples"`
	Failures   string    `json:"failures"`
	Failed     bool      `json:"-"`
	Findings   string    `json:"findings"`
	Last       string    `json:"last"`    // what was measured last
	Written    string    `json:"written"` // when
	State      string    `json:"state"`
	Live       bool      `json:"live"` // more may come
	Wrong      string    `json:"-"`    // why there is nothing to report
	Formats    []string  `json:"-"`
}

// mayGoOn is how long after its last line a record without an end may be that of a run
// elsewhere, whose end would be missed.
const mayGoOn = 10 * time.Minute

// Brief is why, as wide as a column of the list may be.
func (r Row) Brief() string { return page.Short(r.Wrong, 60) }

// keyOf is a path as a form can hold it and an address in a page, whatever bytes are in
// it; usual ones stay as they are.
func keyOf(path string) string { return (&url.URL{Path: path}).EscapedPath() }

func (s *site) row(f *found) Row {
	name := term.Clean(f.path)
	r := Row{of: f, Key: keyOf(f.path), Name: name, Title: name, Began: f.began().UTC()}
	if f.info != nil {
		r.Size = page.Size(float64(f.info.Size()))
		r.Written = ago(f.info.ModTime())
	}
	if f.header == nil {
		r.State, r.Wrong = "cannot be read", term.Clean(f.err.Error())
		return r
	}
	h := f.header
	if f.plan.Title != "" {
		r.Title = page.Short(term.Clean(f.plan.Title), page.LongestTitle)
	}
	if f.records > 1 {
		r.Title += fmt.Sprintf(" and %d more", f.records-1)
	}
	names := make([]string, len(f.targets))
	for i, name := range f.targets {
		names[i] = page.Heading(name)
	}
	r.Run, r.Instrument, r.Targets = page.Heading(h.RunID), page.Heading(h.Experiment), page.Listed(names)
	known := h.Environment.CPUs > 0 // of what was imported the machine is not, and its plan was not carried out
	if known {
		r.Machine = page.Heading(page.Processor(&h.Environment))
	}
	r.Kernel = page.Heading(h.Environment.Kernel)
	r.Formats = s.Instruments.FormatNames(h.Experiment)
	r.Samples, r.Last = f.atLeast(f.samples), f.last.String()
	if f.rounds > 0 {
		r.Rounds = fmt.Sprint(f.rounds)
		if known && f.plan.Rounds > f.rounds {
			r.Rounds += fmt.Sprintf(" of %d", f.plan.Rounds)
		}
	}
	r.Findings = f.found()
	r.State, r.Live = s.state(f)
	failures := f.told
	if f.open {
		failures = max(f.told, f.failures)
	}
	r.Failures, r.Failed = f.atLeast(failures), failures > 0
	if f.err != nil {
		r.Wrong = term.Clean(f.err.Error())
	}
	return r
}

// state says how the file's records ended, and whether more may come.
func (s *site) state(f *found) (state string, live bool) {
	switch {
	case !f.open:
		state = page.Known(f.status)
	case f.partial && f.offset == 0:
		state = "packed, and too long to be looked through"
	case s.Alive(f.header.RunID):
		state, live = "under way", true
	case time.Since(f.info.ModTime()) < mayGoOn:
		state, live = "no end yet", true
	default:
		state = cutOff
	}
	if f.garbled > 0 {
		state += fmt.Sprintf("; %s cannot be read", page.Amount(f.garbled, "line"))
	}
	return term.Clean(state), live
}

// atLeast is a count, which is too low where not every line was read.
func (e *entry) atLeast(n int) string {
	if e.partial {
		return fmt.Sprintf("≥ %d", n)
	}
	return fmt.Sprint(n)
}

func (e *entry) found() string {
	var parts []string
	for i, n := range e.findings {
		if n > 0 {
			parts = append(parts, page.Amount(n, levels[i]))
		}
	}
	return strings.Join(parts, ", ")
}

// String is "round 3, docker/runc, run, 50 lanes".
func (w where) String() string {
	if w.Target == "" {
		return ""
	}
	parts := []string{fmt.Sprintf("round %d", w.Round+1)}
	for _, part := range []string{w.Phase, w.Target, w.Op, w.Volume, w.Job} {
		if part != "" && part != "measure" {
			parts = append(parts, page.Heading(part))
		}
	}
	if w.Lanes > 0 {
		parts = append(parts, page.Lanes(w.Lanes))
	}
	return strings.Join(parts, ", ")
}

// ago is a time in words that need no clock of the reader's.
func ago(at time.Time) string {
	since := time.Since(at).Round(time.Second)
	if since < time.Minute {
		return fmt.Sprintf("%d s ago", max(0, int(since.Seconds())))
	}
	return at.UTC().Format("2006-01-02 15:04:05")
}

// has tells whether every word stands somewhere in the row.
func (r *Row) has(words []string) bool {
	text := strings.ToLower(strings.Join([]string{r.Name, r.Title, r.Instrument, r.Targets, r.Began.Format(time.DateTime), r.Machine, r.Kernel, r.Findings, r.State, r.Wrong}, " "))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
