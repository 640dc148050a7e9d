package startup

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/record"
)

// The codes of findings about starts.
const (
	foundWait      = "suspicious-wait"
	foundNoEnd     = "start-without-end"
	foundMissing   = "missing-evidence"
	foundClaim     = "claim-does-not-follow" // stored by importers of publications
	foundOtherWay  = "started-another-way"
	foundWatching  = "watching-shows"
	foundSomeKept  = "random-choice"
	foundOverwhelm = "too-many-targets"
	foundDisorder  = "lines-in-disorder"
	// FoundUnread is stored by a run with unreadable logs.
	FoundUnread = "logs-not-read"
)

// worth is the minimum share of a start for a recognized wait to be reported.
const worth = 0.02

func (j *Judging) findings(rec *record.Record, s *Judgement) []record.Finding {
	var out finding.List
	add := out.Add
	out.TakeOver(rec, foundClaim, FoundUnread)
	out.Whole(rec)
	least := 0 // rounds of a watched target
	for _, t := range j.targets {
		if n := len(t.with); n > 0 && (least == 0 || n < least) {
			least = n
		}
		t.failures(add)
		t.waits(add)
		t.evidence(add)
		if t.throttle.Starts > 0 {
			add(t.throttle.Of(t.Target.Target, t.watched))
		}
		t.cautions(add)
		if s.Logs != nil && j.Live && t.Starts > 0 && t.logged < t.Starts {
			add(record.Finding{Code: foundMissing, Level: finding.Warning, Target: t.Target.Target,
				Message: fmt.Sprintf("the logs cover %d of %d starts: no line has an id of the others within their time", t.logged, t.Starts),
				Advice:  "use the log files of this engine and its runtime, at debug level; their clock must be this machine's"})
		}
	}
	if len(j.targets) == maxTargets {
		add(record.Finding{Code: foundOverwhelm, Level: finding.Warning, Message: fmt.Sprintf("more than %d targets: the last one includes the starts of all others", maxTargets),
			Advice: "read fewer logs at once"})
	}
	logFindings(s.Logs, add)
	out.Node(rec)
	if f, few := finding.TooFew(least, 0, 0); few {
		add(f)
	}
	return out
}

func (t *gathered) failures(add func(record.Finding)) {
	if t.Failed == 0 {
		return
	}
	message := fmt.Sprintf("%d of %d starts failed; the first: %s: %s", t.Failed, t.Failed+t.Starts+t.NoEnd, t.Failure.Kind, t.Failure.Detail)
	if t.Failure.Output != "" {
		message += ": " + finding.LastLine(t.Failure.Output)
	}
	advice := "failed starts are not in the figures; the record has their output"
	if t.Failure.Command != "" {
		advice = "failed starts are not in the figures; try it by hand: " + t.Failure.Command
	}
	level := finding.Error
	if t.Method == record.MethodLogs || t.Method == record.MethodNotes {
		level = finding.Warning // the input reports a failure; this run did not fail
	}
	add(record.Finding{Code: finding.Failed, Level: level, Target: t.Target.Target, Message: message, Advice: advice})
}

// waits reports gaps that look like a timer.
func (t *gathered) waits(add func(record.Finding)) {
	for i := range t.Gaps {
		g := &t.Gaps[i]
		if g.Wait == nil || t.Wall.Known() && g.Took.Value < worth*t.Wall.Value {
			continue
		}
		message := fmt.Sprintf("%s in %s, between %q and %q, in %d of %d starts: looks like %s. %s", lengthText(g.Took.Value), g.In, g.After, g.Before,
			g.Seen, len(t.kept), g.Wait.Timer, g.Wait.Why)
		if g.Source != "" {
			message += " (" + g.Source + ")"
		}
		level := finding.Warning
		if 2*g.Seen < len(t.kept) {
			level = finding.Note
		}
		add(record.Finding{Code: foundWait, Level: level, Target: t.Target.Target, Message: message,
			Advice: "find the component that sets this timer between the two events; its condition may be met much earlier"})
	}
}

// lengthText formats a duration in ns.
func lengthText(ns float64) string {
	d := time.Duration(ns)
	switch {
	case d >= time.Second:
		return fmt.Sprintf("%.3f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g µs", ns/1e3)
}

// evidence reports missing evidence.
func (t *gathered) evidence(add func(record.Finding)) {
	if t.NoEnd > 0 {
		f := record.Finding{Code: foundNoEnd, Level: finding.Error, Target: t.Target.Target,
			Message: fmt.Sprintf("%d of %d starts have no end", t.NoEnd, t.NoEnd+t.Starts+t.Failed),
			Advice:  "they are not in the medians: find what the call waits for, or use logs that end later"}
		if t.Method != record.MethodLogs {
			f.Level = finding.Warning
		}
		slices.SortStableFunc(t.stuck, func(a, b stuck) int { return b.times - a.times })
		for i := range t.stuck[:min(len(t.stuck), maxStuck)] {
			f.Message += t.stuck[i].text(t.NoEnd)
		}
		add(f)
	}
	for _, what := range slices.Sorted(maps.Keys(t.missing)) {
		if what == "no end" {
			continue
		}
		message := fmt.Sprintf("evidence is missing (%s): %d", what, t.missing[what])
		if where := t.where[what]; where != "" {
			message += "; " + where
		}
		add(record.Finding{Code: foundMissing, Level: finding.Warning, Target: t.Target.Target, Message: message, Advice: "gaps may be due to the missing evidence"})
	}
}

// stuck is the set of starts without an end that stopped at the same place.
type stuck struct {
	record.Waiting // of the first start
	times          int
	longest        int64 // ns
	name           string
}

// maxStuck is the maximum number of places reported.
const maxStuck = 3

// waited records where a start without an end stopped.
func (t *gathered) waited(s *record.Start) {
	w := s.Waiting
	if w == nil {
		return
	}
	i := slices.IndexFunc(t.stuck, func(x stuck) bool { return x.In == w.In })
	if i < 0 {
		if i = len(t.stuck); i == maxSteps {
			return
		}
		t.stuck = append(t.stuck, stuck{Waiting: *w, name: cmp.Or(s.Name, s.Sandbox)})
	}
	x := &t.stuck[i]
	x.times, x.longest = x.times+1, max(x.longest, w.Until-w.Since)
}

// text describes where the starts stopped, since when, and what followed.
func (x *stuck) text(all int) string {
	text := ": "
	if x.times < all {
		text = fmt.Sprintf("; %d of them ", x.times)
	}
	place := "waiting in " + x.In
	if after, ok := strings.CutPrefix(x.In, "after "); ok {
		place = "nothing is logged after " + after
	}
	text += fmt.Sprintf("%s since %s", place, time.Unix(0, x.Since).UTC().Format("15:04:05.000"))
	of := ""
	if x.times > 1 {
		of = "the first; the longest "
	}
	text += fmt.Sprintf(" (%s%s so far), %s at %s", of, duration(x.longest), x.name, x.Source)
	for _, more := range []struct{ what, text string }{{"stage", x.Stage}, {"last line", x.Last}, {"error", x.Error}} {
		if more.text != "" {
			text += fmt.Sprintf("; %s: %.200s", more.what, more.text)
		}
	}
	return text
}

// duration formats minutes and seconds: "4 min 2 s".
func duration(ns int64) string {
	if d := time.Duration(ns).Round(time.Second); d >= time.Minute {
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return lengthText(float64(ns))
}

// cautions reports the limitations of the figures.
func (t *gathered) cautions(add func(record.Finding)) {
	if t.watched > maxKept {
		add(record.Finding{Code: foundSomeKept, Level: finding.Note, Target: t.Target.Target,
			Message: fmt.Sprintf("figures are from a random sample of %d of %d starts", maxKept, t.watched), Advice: "read fewer logs at once to include all starts"})
	}
	if n := t.Starts; t.Same > 0 && t.Same < min(n, maxKept) {
		add(record.Finding{Code: foundOtherWay, Level: finding.Note, Target: t.Target.Target,
			Message: fmt.Sprintf("%d of %d starts made other calls than the table shows, or made them in another order", min(n, maxKept)-t.Same, min(n, maxKept)),
			Advice:  "phases and totals include all starts"})
	}
	if t.Watching.Versus.Different() && t.Watching.Value > 1 {
		add(record.Finding{Code: foundWatching, Level: finding.Warning, Target: t.Target.Target,
			Message: fmt.Sprintf("watching has overhead: watched starts take %.1f %% longer (%s)", 100*(t.Watching.Value-1), t.Watching.Versus.Why), Advice: "use the totals of unwatched rounds (--untraced) and the breakdown of watched ones"})
	}
}

// logFindings reports problems of the logs as a whole.
func logFindings(l *record.Logs, add func(record.Finding)) {
	if l == nil {
		return
	}
	if l.Suppressed > 0 {
		add(record.Finding{Code: foundMissing, Level: finding.Warning, Message: fmt.Sprintf("the journal dropped %d messages", l.Suppressed),
			Advice: "raise RateLimitBurst in journald.conf, or log to a file, and start again"})
	}
	if l.Cut > 0 {
		add(record.Finding{Code: foundMissing, Level: finding.Note, Message: fmt.Sprintf("%d of %d lines are truncated: the rest of each line is lost", l.Cut, l.Lines),
			Advice: "syslog daemons truncate long lines; use the journal (journalctl -o cat) or raise their limit"})
	}
	if l.Dropped > 0 {
		add(record.Finding{Code: foundMissing, Level: finding.Warning, Message: fmt.Sprintf("too many starts were open at once: %d were emitted early", l.Dropped),
			Advice: "read fewer logs at once"})
	}
	ordered := true
	for _, m := range l.Missing {
		f, known := missingOfLogs[m.What]
		if !known {
			f = record.Finding{Code: foundMissing, Level: finding.Warning, Message: m.What + ": ", Advice: "the rest is not in the figures: read it again"}
		}
		ordered = ordered && m.What != "disorder"
		f.Message += m.Detail
		add(f)
	}
	if ordered && float64(l.Backward) > maxBackward*float64(l.Lines) {
		add(record.Finding{Code: foundDisorder, Level: finding.Warning,
			Message: fmt.Sprintf("lines are out of order: %d of %d are older than the previous line", l.Backward, l.Lines), Advice: sortThem})
	}
}

// missingOfLogs maps missing evidence in logs to findings. The message
// precedes the detail.
var missingOfLogs = map[string]record.Finding{
	"disorder": {Code: foundDisorder, Level: finding.Warning, Message: "lines are out of order: ", Advice: sortThem},
	"order":    {Code: foundDisorder, Level: finding.Note, Advice: "gaps are between lines sorted by time; use the original log if it matters"},
	"wrapped":  {Code: foundMissing, Level: finding.Note, Advice: "use the original log if it matters"},
	"whole seconds": {Code: foundMissing, Level: finding.Warning, Message: "times are whole seconds: ",
		Advice: "let the program log times with fractions, or read its journal (journalctl -o json)"},
	"ends in the middle": {Code: foundMissing, Level: finding.Warning, Message: "a file is truncated: ", Advice: "the rest is lost: use the whole file"},
}

// maxBackward is the tolerated share of lines older than the previous one. Programs
// log from several threads.
const maxBackward = 0.05

const sortThem = "sort them by time, or use a separate file for each log, and read them again"
