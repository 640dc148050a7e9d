package startup

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/page"
)

// chromeTrace is the JSON form of Chrome's Trace Event Format, which Perfetto opens:
// every chosen start as a process, its rows as slices on threads.
type chromeTrace struct {
	Events []chromeEvent `json:"traceEvents"`
	Unit   string        `json:"displayTimeUnit"`
	lanes  int           // that were given out
}

// chromeEvent is a slice ("X"), an instant ("i") or a name ("M").
type chromeEvent struct {
	Name  string     `json:"name"`
	Phase string     `json:"ph"`
	Cat   string     `json:"cat,omitempty"`
	At    micros     `json:"ts"`            // since the start began
	Took  *micros    `json:"dur,omitempty"` // of a slice
	Pid   int        `json:"pid"`           // the start, from 1: viewers take 0 for the idle process
	Tid   int        `json:"tid"`           // the lane, from 1; not used again in another start, as no kernel would
	Scope string     `json:"s,omitempty"`   // of an instant: "p", the whole process
	Args  chromeArgs `json:"args"`
}

// chromeArgs are what a viewer shows of an event.
type chromeArgs struct {
	Name      string  `json:"name,omitempty"` // of a process or thread
	Index     int     `json:"sort_index,omitempty"`
	Kind      string  `json:"kind,omitempty"`
	Container string  `json:"container,omitempty"`
	CPU       *micros `json:"cpu_us,omitempty"`
	Exit      *int    `json:"exit,omitempty"`
	Process   int     `json:"pid,omitempty"`
	Open      bool    `json:"still_there,omitempty"`
	After     string  `json:"after,omitempty"`
	Before    string  `json:"before,omitempty"`
	Why       string  `json:"why,omitempty"`
	Command   string  `json:"command,omitempty"`
	Clock     string  `json:"clock,omitempty"`
}

// micros is a time in ns that is written in µs, as the format has it, with all its
// digits.
type micros int64

// MarshalJSON implements [json.Marshaler].
func (m micros) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%d.%03d", int64(m)/1000, int64(m)%1000), nil
}

func chromeOf(v *Judgement) chromeTrace {
	t := chromeTrace{Events: []chromeEvent{}, Unit: "ms"}
	pid := 0
	for i := range v.Targets {
		for _, d := range v.Targets[i].traced() {
			pid++
			t.add(&v.Targets[i], d, pid)
		}
	}
	return t
}

// add draws a start: itself with its parts, then its gaps, then its
// rows.
func (c *chromeTrace) add(t *Target, d *Drawn, pid int) {
	s := d.Start
	length := max(since(s.Began, max(endOf(d), s.Began)), 0)
	c.meta("process_name", pid, 0, chromeArgs{Name: fmt.Sprintf("%s, start %d", page.Known(t.Target), s.Round+1)})
	start := c.lane(pid, "start")
	c.slice(pid, start, page.Known(t.Target), 0, length, chromeArgs{Kind: "start", Command: s.Command, Clock: s.Clock})
	ended := int64(0)
	for _, p := range d.Parts {
		began := min(max(since(s.Began, p.Began), ended), length)
		ended = min(max(since(s.Began, p.Ended), began), length)
		c.slice(pid, start, p.Name, began, ended, chromeArgs{Kind: p.Kind, Container: p.Container, CPU: microsOf(p.CPU)})
	}
	for name, ns := range milestones(s) {
		at := micros(min(since(s.Began, ns), length))
		c.Events = append(c.Events, chromeEvent{Name: name, Phase: "i", Cat: "milestone", At: at, Pid: pid, Tid: start, Scope: "p"})
	}
	c.gaps(d, pid)
	all := slicesOf(d)
	lanes, tracks := laid(all)
	named := make([]int, len(tracks)) // the longest slice of each, which names it
	for i := range named {
		named[i] = -1
	}
	for i := range all {
		if n := named[lanes[i]]; n < 0 || all[i].ended-all[i].began > all[n].ended-all[n].began {
			named[lanes[i]] = i
		}
	}
	tids := make([]int, len(tracks))
	for lane, i := range named {
		tids[lane] = c.lane(pid, laneName(&all[i]))
	}
	for i := range all {
		one := &all[i]
		c.slice(pid, tids[lanes[i]], one.name, since(s.Began, one.began), since(s.Began, one.ended),
			chromeArgs{Kind: one.kind, Container: one.container, CPU: microsOf(one.cpu), Exit: one.exit, Process: one.pid, Open: one.open})
	}
}

// gaps draws the gaps on a track of their own.
func (c *chromeTrace) gaps(d *Drawn, pid int) {
	all := gapSlices(d)
	for i := range all {
		all[i].kind = "waits" // one track
	}
	lanes, tracks := laid(all)
	tids := make([]int, len(tracks))
	for lane := range tracks {
		tids[lane] = c.lane(pid, "waits")
	}
	for i := range all {
		g := &d.Gaps[i]
		args := chromeArgs{Kind: "gap", CPU: microsOf(g.CPU), After: g.After, Before: g.Before}
		if g.Wait != nil {
			args.Kind, args.Why = "wait", g.Wait.Why
		}
		c.slice(pid, tids[lanes[i]], all[i].name, since(d.Start.Began, all[i].began), since(d.Start.Began, all[i].ended), args)
	}
}

func laneName(s *slice) string {
	if s.pid != 0 {
		return fmt.Sprintf("%s (%d)", s.name, s.pid)
	}
	return s.kind
}

func microsOf(ns int64) *micros {
	if ns < 0 {
		return nil
	}
	m := micros(ns)
	return &m
}

// lane gives out the next lane.
func (c *chromeTrace) lane(pid int, name string) (tid int) {
	c.lanes++
	c.meta("thread_name", pid, c.lanes, chromeArgs{Name: name})
	c.meta("thread_sort_index", pid, c.lanes, chromeArgs{Index: c.lanes})
	return c.lanes
}

func (c *chromeTrace) meta(what string, pid, tid int, args chromeArgs) {
	c.Events = append(c.Events, chromeEvent{Name: what, Phase: "M", Pid: pid, Tid: tid, Args: args})
}

func (c *chromeTrace) slice(pid, tid int, name string, began, ended int64, args chromeArgs) {
	took := micros(max(ended-began, 0))
	c.Events = append(c.Events, chromeEvent{Name: page.Known(name), Phase: "X", Cat: args.Kind, At: micros(max(began, 0)), Took: &took, Pid: pid, Tid: tid, Args: args})
}
