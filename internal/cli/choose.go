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

// selection is the part of a measurement that says what is weighed.
type selection struct {
	*terms.Whom
	named []*string // other names of targets in it, emptied if theirs is not here
	// workload is what targets are to run; nil for the probe.
	workload *setting.Workload
}

// settings are those for finding the targets.
func (c selection) settings() find.Settings {
	return find.Settings{Engine: c.Engines.Of, Via: c.Via}
}

// choose finds the targets of the plan, or all that can be weighed. Those that
// the plan names, that are not here and that may be missing are told of in
// findings.
func choose(ctx context.Context, s *app, c selection, quiet bool) ([]subject.Target, []record.Finding, error) {
	if len(c.Targets) == 0 {
		found := find.All(ctx, c.settings(), false)
		if ctx.Err() != nil {
			return nil, nil, ctx.Err() // what was not asked to the end is not missing
		}
		c.leaveOut(found)
		targets := present(found)
		var only []record.Finding
		if os.Geteuid() != 0 && len(targets) == 1 {
			only = []record.Finding{{Code: finding.NotWeighed, Level: finding.Warning, Message: "only " + targets[0].Info().Name + " was measured: every other target needs root or is not here",
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
			// Comparisons are with what the plan says, or the same driven another way.
			if *name = otherWay(f.Name, targets); *name == "" {
				level = finding.Warning
				message += "; comparisons that name it, such as the VS columns, are with the baseline instead"
			} else {
				message += "; in comparisons " + *name + " stands for it"
			}
		}
		skipped = append(skipped, record.Finding{Code: finding.NotWeighed, Level: level, Target: f.Name, Message: message, Advice: f.Why.Advice})
	}
	if len(targets) == 0 && errs == nil { // none that could run the workload
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

// otherWay returns the target that is the same engine and runtime as one that is missing,
// driven by its API in place of its command line or the other way about, "" for none.
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

// leaveOut takes away what cannot run the user's own program, and tells which those are.
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

// notHere says why nothing of a measure can be weighed on this machine.
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

// tellMissing says in one line what is left out before the work begins: "3 skipped: docker,
// containerd (no daemon); youki (not installed)".
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

// brief is why a target is not here, in a few words.
func brief(reason string) string {
	for _, known := range [][2]string{{"root", "needs root"}, {"looked on PATH", "not installed"}, {"daemon", "no daemon"}, {"dial unix", "no daemon"}, {"which cluster", "no cluster"}} {
		if strings.Contains(reason, known[0]) {
			return known[1]
		}
	}
	return page.Short(term.Clean(reason), 2*page.LongestName)
}
