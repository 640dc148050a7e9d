package cli

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/record"
)

const (
	nodeLabel = "node" // tells records of many machines apart
	fewNodes  = 8      // so many have a page each, unless one over all is asked for
)

// toReport is what records are read for.
type toReport struct {
	outputFlags
	over  string // the label of a report over all; "": where they are of many nodes
	alone bool   // nothing is wanted beside the report
}

// reported is what a report is made of: records whole, for pages of their own; for
// programs their figures; of many nodes what stays of each.
type reported struct {
	toReport
	all       []instrument.Judged
	documents []export.Document
	nodes     *compare.Nodes            // nil: there is no report over them
	of        map[string][]*record.Part // by the folders of the records: of which plans they are
	records   int
	code      int
	unread    error
}

// programs tells whether nothing is wanted but figures in a format for programs.
func (o *toReport) programs() bool {
	_, ok := export.FormatOf(o.format)
	return ok && o.alone
}

// kept is what stays of a judged record once it was read.
type kept struct {
	of            *record.Part
	whole         instrument.Judged
	document      export.Document
	run           compare.Run
	failed, total int
	findings      []record.Finding
}

// keep keeps as little of a record as will do.
func (o *toReport) keep(j instrument.Judged) (k kept) {
	k.failed, k.total, k.findings = j.Result()
	switch {
	case o.programs():
		k.document = instrument.Documents([]instrument.Judged{j})[0]
	case o.over == "":
		k.whole = j
	}
	k.of = j.Record.Header.Of
	k.run = compare.NewRun(j.Record, j)
	return k
}

// read reads the records of a report. Whether there is one over many nodes shows as they
// are read, and until then they are kept whole.
func (s *app) read(args []string, o toReport) (*reported, error) {
	filter := compare.Headline
	if o.verbose {
		filter = "*"
	}
	key := cmp.Or(o.over, nodeLabel)
	nodes, err := compare.NewNodes(key, filter)
	if err != nil {
		return nil, err
	}
	r, met := &reported{toReport: o, of: map[string][]*record.Part{}}, map[string]bool{}
	for _, arg := range args {
		r.of[filepath.Clean(arg)] = nil // which a folder may be
	}
	if o.over != "" {
		r.nodes = nodes
	}
	many := o.over == "" && o.alone && slices.Contains(page.Formats, o.format) // they may be
	for f := range each(s, args, o.format, o.keep) {
		r.unread = errors.Join(r.unread, f.err)
		for _, k := range f.kept {
			r.records++
			if dir := filepath.Dir(f.path); k.of != nil {
				r.of[dir] = append(r.of[dir], k.of)
			}
			r.code = max(r.code, codeOf(k.failed, k.findings))
			name := k.run.Labels.Get(key)
			many = many && (name != "" || r.nodes != nil)
			node := cmp.Or(name, nameOf(f.path, args))
			nodes.Unnamed = nodes.Unnamed || name == ""
			if many || r.nodes != nil {
				nodes.Add(node, &k.run, k.failed, k.total, k.findings)
				met[node] = true
			}
			switch {
			case o.programs():
				r.documents = append(r.documents, named(k.document, o.over, node))
			case r.nodes == nil:
				r.all = append(r.all, k.whole)
			}
			if many && r.nodes == nil && len(met) > fewNodes {
				r.nodes, r.all = nodes, nil
			}
		}
	}
	return r, nil
}

// named has the node among the labels of all figures, where it is asked for.
func named(d export.Document, over, node string) export.Document {
	for i := range d.Figures {
		if f := &d.Figures[i]; over != "" && f.Labels.Get(over) == "" {
			f.Labels = f.Labels.With(over, node)
		}
	}
	return d
}

// nameOf is what a node is called whose record does not say: by its file, below the
// folder that was named.
func nameOf(path string, args []string) string {
	for _, arg := range args {
		if rest, below := strings.CutPrefix(path, filepath.Clean(arg)+"/"); below {
			path = rest
		}
	}
	return record.Stem(path)
}

// show prints the report.
func (r *reported) show(s *app) (err error) {
	o := s.pageOptions(r.outputFlags)
	switch {
	case r.programs():
		if r.nodes != nil {
			r.documents = append(comparison("report", r.nodes.Figures(), r.nodes.Findings()), r.documents...)
		}
		format, _ := export.FormatOf(r.format)
		err = format.Write(s.Out, r.documents)
	case r.nodes != nil:
		err = page.Write(s.Out, r.format, r.nodes.Pages(), o)
	default:
		err = s.instruments.Report(s.Out, r.format, r.all, o)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}
