package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// whom returns the targets that a measurement selects, with the settings to connect to them.
// ok is false for a measurement without that option.
func whom(o option.Options) (w *terms.Whom, ok bool) {
	if of, ok := o.(interface{ Weighed() *terms.Whom }); ok {
		return of.Weighed(), true
	}
	return &terms.Whom{}, false
}

// settings returns the settings for finding targets.
func settings(w *terms.Whom) find.Settings { return find.Settings{Engine: w.Engines.Of, Via: w.Via} }

// look finds the named targets, or all if none is named.
func look(ctx context.Context, w *terms.Whom) ([]find.Found, error) {
	if len(w.Targets) == 0 {
		return find.All(ctx, settings(w), false), nil
	}
	return find.Named(ctx, w.Targets, settings(w))
}

// choose returns the targets of a measurement, and findings about unavailable ones that the plan
// allows to skip.
func (s *app) choose(ctx context.Context, m *perform.Measure, quiet bool) (targets []subject.Target, skipped []record.Finding, err error) {
	w, ok := whom(m.Plan)
	if err := checkEngines(w.Engines); err != nil {
		return nil, nil, err
	}
	if m.Check != nil {
		if err := m.Check(); err != nil {
			return nil, nil, err
		}
	}
	if ok && (len(w.Targets) > 0 || len(m.Commands) == 0) {
		if targets, skipped, err = s.available(ctx, w, m, quiet); err != nil {
			return nil, nil, err
		}
	}
	targets = append(targets, m.Commands...)
	if m.Suits != nil {
		err = m.Suits(targets, len(skipped) > 0)
	}
	return targets, skipped, err
}

// available returns the available targets.
func (s *app) available(ctx context.Context, w *terms.Whom, m *perform.Measure, quiet bool) (targets []subject.Target, skipped []record.Finding, err error) {
	found, err := look(ctx, w)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err() // an unfinished check does not make a target missing
	}
	if err != nil {
		return nil, nil, err
	}
	unfit := leaveOut(found, m.Workload)
	targets = present(found)
	if len(w.Targets) > 0 {
		if skipped, err = missing(w, m, found, unfit, targets); err != nil {
			return nil, nil, err
		}
	} else if os.Geteuid() != 0 && len(targets) == 1 {
		skipped = []record.Finding{{Code: finding.NotWeighed, Level: finding.Warning, Message: "only " + targets[0].Info().Name + " was measured: every other target needs root or is unavailable",
			Advice: "run tare as root (sudo tare …); tare doctor has the reasons"}}
		fmt.Fprintf(s.Err, "tare: %s; %s\n", strings.Replace(skipped[0].Message, "was measured", "is measured", 1), skipped[0].Advice)
	}
	if !quiet {
		tellMissing(s, found)
	}
	return targets, skipped, nil
}

// missing returns a finding for each named target that is unavailable, or an error if the plan
// does not allow to skip it. unfit has the targets that cannot run the workload: these are
// skipped in any case.
func missing(w *terms.Whom, m *perform.Measure, found []find.Found, unfit map[string]bool, targets []subject.Target) (skipped []record.Finding, err error) {
	var errs, all []error
	for _, f := range found {
		if f.Target != nil {
			continue
		}
		if all = append(all, f.Why); !unfit[f.Name] {
			errs = append(errs, f.Why)
		}
		message, level := "not weighed: "+f.Why.Reason, finding.Note
		for _, name := range m.Named {
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
		errs = all
	}
	if errs != nil && (!w.Skips() || len(targets) == 0) {
		return nil, perform.Missing(errors.Join(errs...))
	}
	return skipped, nil
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
func leaveOut(found []find.Found, workload *setting.Workload) map[string]bool {
	unfit := map[string]bool{}
	if workload == nil || !workload.Is() {
		return unfit
	}
	for i := range found {
		f := &found[i]
		if p, is := f.Target.(subject.Refuser); is {
			if why := p.Refuses(workload); why != nil {
				f.Target, f.Why, unfit[f.Name] = nil, why, true
			}
		}
	}
	return unfit
}

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
