package startup

import (
	"fmt"

	"github.com/tare-bench/tare/internal/core/page"
)

// chromeTrace is a trace in the JSON form of Chrome's Trace Event Format, which
// Perfetto opens. Each chosen start is a process, and its rows are slices on threads.
type chromeTrace struct {
	Events []chromeEvent `json:"traceEvents"`
	Unit   string        `json:"displayTimeUnit"`
	lanes  int           // number of lanes so far
}

// chromeEvent is a slice ("X"), an instant ("i") or a name ("M").
type chromeEvent struct {
	Name  string     `json:"name"`
	Phase string     `json:"ph"`
	Cat   string     `json:"cat,omitempty"`
	At    micros     `json:"ts"`            // since the start began
	Took  *micros    `json:"dur,omitempty"` // duration of a slice
	Pid   int        `json:"pid"`           // number of the start, from 1; viewers treat 0 as the idle process
	Tid   int        `json:"tid"`           // lane, from 1; unique across starts, like a real thread id
	Scope string     `json:"s,omitempty"`   // of an instant: "p" is the whole process
	Args  chromeArgs `json:"args"`
}

// chromeArgs are the details of an event that a viewer shows.
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

// micros is a time in ns. It is encoded in µs, as the format requires, without loss.
type micros int64

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

// add adds a start with its parts, then its gaps, then its rows.
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
	rows, gaps := slicesOf(d)
	c.draw(pid, s.Began, gaps)
	c.draw(pid, s.Began, rows)
}

// draw assigns slices to lanes and adds them. The longest slice of a lane names it.
func (c *chromeTrace) draw(pid int, zero int64, all []slice) {
	lanes, made := laid(all)
	longest := make([]*slice, made)
	for i := range all {
		if n := &longest[lanes[i]]; *n == nil || all[i].Ended-all[i].Began > (*n).Ended-(*n).Began {
			*n = &all[i]
		}
	}
	tids := make([]int, made)
	for lane, s := range longest {
		name := s.track()
		if s.Pid != 0 {
			name = fmt.Sprintf("%s (%d)", s.Name, s.Pid)
		}
		tids[lane] = c.lane(pid, name)
	}
	for i := range all {
		s := &all[i]
		c.slice(pid, tids[lanes[i]], s.Name, since(zero, s.Began), since(zero, s.Ended), chromeArgs{
			Kind: s.Kind, Container: s.Container, CPU: microsOf(s.CPU), Exit: s.Exit, Process: s.Pid, Open: s.Open,
			After: s.after, Before: s.before, Why: s.why,
		})
	}
}

func microsOf(ns int64) *micros {
	if ns < 0 {
		return nil
	}
	m := micros(ns)
	return &m
}

// lane allocates the next lane.
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
