package tool

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// Told holds what the user said about all outputs in a text.
type Told struct {
	Label string     // target name; "": the name in the output, else File
	File  string     // fallback target name
	Op    setting.Op // operation; "": the one in the output, else run
}

// Imported collects the outputs in several texts into the plan and lines of one record.
type Imported struct {
	Plan     lifecycle.Options
	Targets  []record.Target
	Batches  []record.Batch
	Findings []record.Finding
	rounds   map[[3]string]int
}

// Add adds the outputs in a text. Unusable outputs are left out and reported.
func (g *Imported) Add(file string, text *transcript.Stream, told Told) {
	for _, format := range formats {
		g.add(file, format(text), told)
	}
}

// add adds what a format found in a text.
func (g *Imported) add(file string, f found, told Told) {
	if g.rounds == nil {
		g.rounds, g.Plan = map[[3]string]int{}, lifecycle.Defaults()
		g.Plan.Title, g.Plan.Whom = "imported results", terms.Whom{Targets: []string{}}
		g.Plan.Ops, g.Plan.Lanes, g.Plan.Rounds, g.Plan.Warmup = nil, nil, 1, 0
	}
	f.outputs = slices.DeleteFunc(f.outputs, func(o output) bool {
		why := o.check(file)
		if why != nil {
			f.bad = append(f.bad, fmt.Errorf("line %d: %w", o.line, why))
		}
		return why != nil
	})
	g.take(file, f.outputs, told)
	g.tell(file, &f)
}

// check returns an error if the output is not valid in a record.
func (o *output) check(file string) error {
	for i := range o.batches {
		b := o.batch(i, "x", file)
		if err := record.Validate(&b); err != nil {
			return err
		}
	}
	return nil
}

func (o *output) batch(i int, target, file string) record.Batch {
	b := o.batches[i]
	b.Type, b.Phase, b.Target, b.Op, b.Lanes = record.TypeBatch, record.PhaseMeasure, target, string(o.op), o.lanes
	b.Source = fmt.Sprintf("%s:%d", file, o.line)
	return b
}

// take adds the outputs of one tool in one text. Several outputs for the same operation
// and target become different targets, since they may come from different machines.
func (g *Imported) take(file string, outputs []output, told Told) {
	names := map[string]bool{}
	for _, o := range outputs {
		names[o.name] = true
	}
	times := map[[3]string]int{}
	for _, o := range outputs {
		if o.op = cmp.Or(told.Op, o.op); told.Op != "" {
			o.means = "as the importer says; " + o.means
		}
		target := cmp.Or(told.Label, told.File)
		switch own := o.name; {
		case own == "" || !terms.IsTarget(own):
		case told.Label == "":
			target = own
		case len(names) > 1:
			target = told.Label + "/" + own
		}
		key := func() [3]string { return [3]string{target, string(o.op), fmt.Sprint(o.lanes)} }
		if times[key()]++; times[key()] > 1 {
			target = fmt.Sprintf("%s-%d", target, times[key()])
		}
		for i := range o.batches {
			b := o.batch(i, target, file)
			b.Round = g.rounds[key()]
			g.rounds[key()]++
			g.Plan.Rounds = max(g.Plan.Rounds, b.Round+1)
			g.Batches = append(g.Batches, b)
		}
		g.define(target, &o)
	}
}

// define adds the operation to the plan and the targets.
func (g *Imported) define(target string, o *output) {
	p := &g.Plan
	if !slices.Contains(p.Ops, o.op) {
		p.Ops = append(p.Ops, o.op)
		slices.SortFunc(p.Ops, func(a, b setting.Op) int { return slices.Index(setting.Ops, a) - slices.Index(setting.Ops, b) })
	}
	if !slices.Contains(p.Lanes, o.lanes) {
		p.Lanes = append(p.Lanes, o.lanes)
		slices.Sort(p.Lanes)
	}
	i := slices.Index(p.Targets, target)
	if i < 0 {
		i, p.Targets = len(p.Targets), append(p.Targets, target)
		g.Targets = append(g.Targets, record.Target{Name: target, Kind: "imported", Operations: map[string]record.Operation{}})
	}
	g.Targets[i].Operations[string(o.op)] = record.Operation{Command: o.command, Done: record.StampReturned, Means: o.means}
}

// maxNamed is the maximum number of unreadable outputs listed.
const maxNamed = 20

// tell reports what is missing in the record.
func (g *Imported) tell(file string, f *found) {
	add := func(code, level, message, advice string) {
		g.Findings = append(g.Findings, record.Finding{Code: lifecycle.ImportedFindings + code, Level: level, Message: file + ": " + message, Advice: advice})
	}
	if n := len(f.bad); n > 0 {
		why := strings.Join(strings.Fields(errors.Join(f.bad[:min(n, maxNamed)]...).Error()), " ")
		add("unread", finding.Warning, fmt.Sprintf("%d of the outputs of %s could not be read: %s", n, f.tool, why), "complete a truncated output, or leave it out")
	}
	slices.Sort(f.left)
	if n := len(slices.Compact(f.left)); n > 0 {
		add("left", finding.Note, fmt.Sprintf("%d results of %s were left out, because they are not lifecycle operations or not times: %s", n, f.tool, strings.Join(f.left[:min(n, maxNamed)], ", ")), "use the tool's own reports for them")
	}
	if f.unknowable != "" && len(f.outputs) > 0 {
		add("failures", finding.Note, "failed operations are unknown: "+f.unknowable, "they may be among the times, or missing; run tare lifecycle to find out")
	}
}

// Close adds the finding that applies to all imported results.
func (g *Imported) Close() {
	if len(g.Batches) == 0 {
		return
	}
	g.Findings = append(g.Findings, record.Finding{Code: lifecycle.ImportedFindings + "environment", Level: finding.Note,
		Message: "imported: other tools timed these operations; machines, kernels and runtimes are unknown, and targets were not interleaved, so differences include any drift of the machine",
		Advice:  "run tare lifecycle for interleaved measurements with their environment"})
}
