package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// selection selects the targets of a measurement.
type selection struct {
	*terms.Whom
	named []*string // pointers to other target names; cleared if that target is unavailable
	// workload is what targets run; nil for the probe.
	workload *setting.Workload
}

// settings returns the settings for finding the targets.
func (c selection) settings() find.Settings {
	return find.Settings{Engine: c.Engines.Of, Via: c.Via}
}

// choose returns the targets of the plan, or all available ones if it names none.
// Unavailable targets that the plan allows to skip are reported as findings.
func choose(ctx context.Context, s *app, c selection, quiet bool) ([]subject.Target, []record.Finding, error) {
	if len(c.Targets) == 0 {
		found := find.All(ctx, c.settings(), false)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err() // an unfinished check does not make a target missing
		}
		c.leaveOut(found)
		targets := present(found)
		var only []record.Finding
		if os.Geteuid() != 0 && len(targets) == 1 {
			only = []record.Finding{{Code: finding.NotWeighed, Level: finding.Warning, Message: "only " + targets[0].Info().Name + " was measured: every other target needs root or is unavailable",
				Advice: "run tare as root (sudo tare …); tare doctor has the reasons"}}
			fmt.Fprintf(s.Err, "tare: %s; %s\n", strings.Replace(only[0].Message, "was measured", "is measured", 1), only[0].Advice)
		}
		if !quiet {
			tellMissing(s, found)
		}
		return targets, only, nil
	}
	found, err := find.Named(ctx, c.Targets, c.settings())
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, nil, err
	}
	without := c.leaveOut(found)
	targets := present(found)
	var skipped []record.Finding
	var errs []error
	for _, f := range found {
		if f.Target != nil {
			continue
		}
		if !without[f.Name] {
			errs = append(errs, f.Why)
		}
		message, level := "not weighed: "+f.Why.Reason, finding.Note
		for _, name := range c.named {
			if *name != f.Name {
				continue
			}
			// Comparisons that name this target use the same engine and runtime over another
			// client, if available.
			if *name = otherWay(f.Name, targets); *name == "" {
				level = finding.Warning
				message += "; comparisons that name it, such as the VS columns, are with the baseline instead"
			} else {
				message += "; comparisons use " + *name + " instead"
			}
		}
		skipped = append(skipped, record.Finding{Code: finding.NotWeighed, Level: level, Target: f.Name, Message: message, Advice: f.Why.Advice})
	}
	if len(targets) == 0 && errs == nil { // no target can run the workload
		for _, f := range found {
			errs = append(errs, f.Why)
		}
	}
	if errs != nil && (c.Missing != terms.MissingSkip || len(targets) == 0) {
		return nil, nil, &notHere{errors.Join(errs...)}
	}
	if !quiet {
		tellMissing(s, found)
	}
	return targets, skipped, nil
}

// otherWay returns the target with the same engine and runtime as a missing one, over the
// API instead of the command line or the reverse. It returns "" if there is none.
func otherWay(missing string, targets []subject.Target) string {
	plain := func(name string) string {
		return strings.Replace(strings.Replace(name, "+cli/", "/", 1), "+api/", "/", 1)
	}
	for _, t := range targets {
		if name := t.Info().Name; plain(name) == plain(missing) {
			return name
		}
	}
	return ""
}

// leaveOut removes targets that cannot run the user's own program, and returns their names.
func (c selection) leaveOut(found []find.Found) map[string]bool {
	out := map[string]bool{}
	if c.workload == nil || !c.workload.Is() {
		return out
	}
	for i := range found {
		f := &found[i]
		if f.Target == nil {
			continue
		}
		if p, is := f.Target.(subject.Refuser); is {
			if why := p.Refuses(c.workload); why != nil {
				f.Target, f.Why, out[f.Name] = nil, why, true
			}
		}
	}
	return out
}

// notHere is the reason why a measure has no available target on this machine.
type notHere struct{ error }

func (e *notHere) Unwrap() error { return e.error }

func present(found []find.Found) []subject.Target {
	var out []subject.Target
	for _, f := range found {
		if f.Target != nil {
			out = append(out, f.Target)
		}
	}
	return out
}

// tellMissing prints the skipped targets on one line before the run starts: "3 skipped:
// docker, containerd (no daemon); youki (not installed)".
func tellMissing(s *app, found []find.Found) {
	n, why := 0, []string{}
	names := map[string][]string{}
	for _, f := range found {
		if f.Target == nil {
			reason := brief(f.Why.Reason)
			if names[reason] == nil {
				why = append(why, reason)
			}
			n, names[reason] = n+1, append(names[reason], f.Name)
		}
	}
	if n == 0 {
		return
	}
	for i, reason := range why {
		why[i] = strings.Join(names[reason], ", ") + " (" + reason + ")"
	}
	fmt.Fprintf(s.Err, "%d skipped: %s; tare doctor has the reasons\n", n, strings.Join(why, "; "))
}

// brief shortens the reason why a target is unavailable.
func brief(reason string) string {
	for _, known := range [][2]string{{"root", "needs root"}, {"looked on PATH", "not installed"}, {"daemon", "no daemon"}, {"dial unix", "no daemon"}, {"which cluster", "no cluster"}} {
		if strings.Contains(reason, known[0]) {
			return known[1]
		}
	}
	return page.Short(term.Clean(reason), 2*page.LongestName)
}
