package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

var (
	startMethods = []string{MethodBPF, MethodTracefs, MethodConnector, MethodNone, MethodLogs, MethodNotes}
	startClocks  = []string{ClockMonotonic, ClockWall, ClockNone}
)

// Validate says whether the start can be true.
func (s *Start) Validate() error {
	switch {
	case s.Target == "":
		return errors.New("a start without a target")
	case !slices.Contains(startMethods, s.Method):
		return fmt.Errorf("method %.40q: a start is seen by one of %v", s.Method, startMethods)
	case !slices.Contains(startClocks, s.Clock):
		return fmt.Errorf("clock %.40q: a start is on one of %v", s.Clock, startClocks)
	case s.Failure != nil && s.Failure.Kind == "":
		return errors.New("a failure without a kind")
	}
	if err := allNotLonger(text{"target", s.Target, maxLabel}, text{"command", s.Command, maxCommand}, text{"name", s.Name, maxLabel},
		text{"sandbox", s.Sandbox, maxLabel}, text{"source", s.Source, maxPath + maxLabel}); err != nil {
		return err
	}
	if err := notNegative(amount{"round", int64(s.Round)}, amount{"order", int64(s.Order)}, amount{"began", s.Began}, amount{"first", s.First},
		amount{"ended", s.Ended}, amount{"events", s.Events}, amount{"lost", s.Lost}, amount{"tracing", s.Tracing}); err != nil {
		return err
	}
	if s.Ended != 0 {
		if err := after("ended", s.Began, s.Ended); err != nil {
			return err
		}
	}
	for _, validate := range []func() error{s.validateProcesses, s.validateSpans, s.validateGaps, s.validateRest} {
		if err := validate(); err != nil {
			return err
		}
	}
	return nil
}

// after says whether an interval can be.
func after(name string, began, ended int64) error {
	switch {
	case ended < began:
		return fmt.Errorf("%s %d is before it began, %d", name, ended, began)
	case ended-began > int64(longestSpan):
		return fmt.Errorf("%s %d is more than a year after it began, %d: it is of another clock", name, ended, began)
	}
	return nil
}

func (s *Start) validateProcesses() error {
	for i := range s.Processes {
		p := &s.Processes[i]
		if err := p.validate(); err != nil {
			return fmt.Errorf("process %d: %w", p.Pid, err)
		}
	}
	for i, b := range s.Busy {
		if b.At < 0 || b.CPU < 0 || b.CPU > maxCPU {
			return fmt.Errorf("busy: %d ns of CPU at %d cannot be", b.CPU, b.At)
		}
		if i > 0 && b.At < s.Busy[i-1].At {
			return fmt.Errorf("busy: %d stands after %d", b.At, s.Busy[i-1].At)
		}
	}
	return nil
}

func (p *StartProcess) validate() error {
	switch {
	case p.Pid < 0 || p.Pid > maxProcesses || p.Parent < 0 || p.Parent > maxProcesses:
		return fmt.Errorf("%d, of %d, is no pid", p.Pid, p.Parent)
	case p.Kind == "" || p.Name == "":
		return errors.New("without a kind or a name")
	case p.CPU < -1 || p.CPU > maxCPU:
		return fmt.Errorf("cpu is %d and has to be an amount, or -1 where it is not known", p.CPU)
	case p.Exit != nil && (*p.Exit < -1 || *p.Exit > 255):
		return fmt.Errorf("%d is no exit code", *p.Exit)
	case p.Born < 0:
		return fmt.Errorf("born is %d", p.Born)
	}
	if p.Ended != 0 {
		if err := after("ended", p.Born, p.Ended); err != nil {
			return err
		}
	}
	if p.Exec != 0 {
		if err := after("exec", p.Born, p.Exec); err != nil {
			return err
		}
	}
	return allNotLonger(text{"kind", p.Kind, maxRoleName}, text{"name", p.Name, maxLabel}, text{"program", p.Program, maxLabel},
		text{"verb", p.Verb, maxLabel}, text{"container", p.Container, maxLabel})
}

func (s *Start) validateSpans() error {
	for i := range s.Spans {
		x := &s.Spans[i]
		if x.Name == "" || x.Kind == "" {
			return errors.New("a span without a name or a kind")
		}
		if x.Began < 0 {
			return fmt.Errorf("span %.40q: began is %d", x.Name, x.Began)
		}
		if err := cmp.Or(within("span", after("ended", x.Began, x.Ended)), allNotLonger(text{"name", x.Name, maxLabel}, text{"kind", x.Kind, maxRoleName},
			text{"container", x.Container, maxLabel}, text{"source", x.Source, maxPath + maxLabel})); err != nil {
			return err
		}
	}
	return nil
}

func (s *Start) validateGaps() error {
	for i := range s.Gaps {
		g := &s.Gaps[i]
		if g.Began < 0 || g.Others < 0 || g.CPU < -1 || g.CPU > maxCPU {
			return errors.New("a gap that cannot be: something in it is negative")
		}
		if err := cmp.Or(within("gap", after("ended", g.Began, g.Ended)), allNotLonger(text{"after", g.After, maxCommand}, text{"before", g.Before, maxCommand},
			text{"in", g.In, maxLabel}, text{"source", g.Source, maxPath + maxLabel})); err != nil {
			return err
		}
		if w := g.Wait; w != nil {
			if err := cmp.Or(within("wait", spans(amount{"nominal", w.Nominal})), allNotLonger(text{"timer", w.Timer, maxLabel}, text{"why", w.Why, maxCommand})); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Start) validateRest() error {
	for _, id := range s.Containers {
		if err := notLonger("a container's id", id, maxLabel); err != nil {
			return err
		}
	}
	for _, g := range s.Guests {
		if g.Pairs < 0 || g.Uncertainty < -1 {
			return errors.New("a guest's clock with a negative count")
		}
		if err := notLonger("the name of a guest", g.Name, maxLabel); err != nil {
			return err
		}
	}
	for _, m := range s.Missing {
		if m.Count < 0 || m.What == "" {
			return errors.New("missing evidence without a name or with a negative count")
		}
		if err := allNotLonger(text{"what", m.What, maxLabel}, text{"detail", m.Detail, maxCommand}); err != nil {
			return err
		}
	}
	for _, c := range s.Claims {
		if err := cmp.Or(spans(amount{"claim", c.Value}), allNotLonger(text{"name", c.Name, maxLabel}, text{"source", c.Source, maxPath + maxLabel})); err != nil {
			return err
		}
	}
	return nil
}

// Validate says whether the line can be true.
func (l *Logs) Validate() error {
	if len(l.Files) > maxLogFiles || len(l.Forms) > maxRoles {
		return fmt.Errorf("%d files of %d forms: at most %d and %d are read", len(l.Files), len(l.Forms), maxLogFiles, maxRoles)
	}
	for _, name := range l.Files {
		if err := notLonger("a file's name", name, maxPath); err != nil {
			return err
		}
	}
	for _, m := range l.Missing {
		if m.Count < 0 || m.What == "" {
			return errors.New("missing logs without a name or with a negative count")
		}
		if err := allNotLonger(text{"what", m.What, maxLabel}, text{"detail", m.Detail, maxCommand}); err != nil {
			return err
		}
	}
	for form, lines := range l.Forms {
		if len(form) > maxRoleName || lines < 0 {
			return fmt.Errorf("%d lines of form %.40q", lines, form)
		}
	}
	return cmp.Or(notLonger("first", l.First, maxPath+maxLabel), notNegative(
		amount{"bytes", l.Bytes}, amount{"lines", l.Lines}, amount{"events", l.Events}, amount{"cut", l.Cut}, amount{"long", l.Long},
		amount{"unreadable", l.Unreadable}, amount{"suppressed", l.Suppressed}, amount{"backward", l.Backward}, amount{"unplaced", l.Unplaced}, amount{"dropped", l.Dropped}))
}

const maxLogFiles = 1000
