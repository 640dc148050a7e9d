package serve

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// Row is a record in the list and on its progress page.
type Row struct {
	of         *found
	Run        string    `json:"run"`
	Key        string    `json:"-"`    // key for requests, see keyOf
	Name       string    `json:"path"` // below the folder
	Title      string    `json:"-"`    // of the plan, or the file name
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
	Last       string    `json:"last"`    // last measurement
	Written    string    `json:"written"` // time of the last write
	State      string    `json:"state"`
	Live       bool      `json:"live"` // the run may still be active
	Wrong      string    `json:"-"`    // why the report is missing
	Formats    []string  `json:"-"`
}

// mayGoOn is how long after its last write a record without an end counts as that of an
// active run on another machine.
const mayGoOn = 10 * time.Minute

// Brief returns the error, shortened for a column of the list.
func (r Row) Brief() string { return page.Short(r.Wrong, 60) }

// keyOf escapes a path for forms and URLs, whatever bytes it has. Usual paths do not
// change.
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
	known := h.Environment.CPUs > 0 // imported records have no machine and no executed plan
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

// state returns the state of the file's records, and whether the run may still be active.
func (s *site) state(f *found) (state string, live bool) {
	switch {
	case !f.open:
		state = page.Known(f.status)
	case f.partial && f.offset == 0:
		state = "compressed, and too long to read"
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

// atLeast formats a count, with ≥ if lines were skipped.
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

// String returns the location, such as "round 3, docker/runc, run, 50 lanes".
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

// ago formats a time within the last minute as its age, and an earlier one as UTC.
func ago(at time.Time) string {
	since := time.Since(at).Round(time.Second)
	if since < time.Minute {
		return fmt.Sprintf("%d s ago", max(0, int(since.Seconds())))
	}
	return at.UTC().Format("2006-01-02 15:04:05")
}

// has reports whether the row contains every word.
func (r *Row) has(words []string) bool {
	text := strings.ToLower(strings.Join([]string{r.Name, r.Title, r.Instrument, r.Targets, r.Began.Format(time.DateTime), r.Machine, r.Kernel, r.Findings, r.State, r.Wrong}, " "))
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}
