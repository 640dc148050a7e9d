package cli

import (
	"cmp"
	"errors"
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
	nodeLabel = "node" // label that identifies the node
	fewNodes  = 8      // with more nodes, one report covers all of them
)

// toReport are the options of a report.
type toReport struct {
	outputFlags
	over  string // label to group a report over all records by; "": node, if there are many nodes
	alone bool   // only the report is requested
}

// reported is the content of a report. It has whole records (one page each), figures only
// (for programs), or aggregates over many nodes.
type reported struct {
	toReport
	all       []instrument.Judged
	documents []export.Document
	nodes     *compare.Nodes            // nil: no report over nodes
	of        map[string][]*record.Part // measures by folder of the records
	records   int
	code      int
	unread    error
}

// programs reports whether only figures in a format for programs are requested.
func (o *toReport) programs() bool {
	_, ok := export.FormatOf(o.format)
	return ok && o.alone
}

// kept is the part of a judged record that stays in memory.
type kept struct {
	whole         instrument.Judged
	document      export.Document
	run           compare.Run
	failed, total int
	findings      []record.Finding
}

// keep returns the part of a record that the report needs, to save memory.
func (o *toReport) keep(j instrument.Judged) (k kept) {
	k.failed, k.total, k.findings = j.Result()
	switch {
	case o.programs():
		k.document = instrument.Documents([]instrument.Judged{j})[0]
	case o.over == "":
		k.whole = j
	}
	k.run = compare.NewRun(j.Record, j)
	return k
}

// read reads the records of a report. Whether it covers many nodes is only known after
// reading them, so they are kept whole until then.
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
		r.of[filepath.Clean(arg)] = nil // the argument may be a folder
	}
	if o.over != "" {
		r.nodes = nodes
	}
	many := o.over == "" && o.alone && slices.Contains(page.Formats, o.format) // they may be records of many nodes
	for f := range each(s, args, o.format, o.keep) {
		r.unread = errors.Join(r.unread, f.err)
		for _, k := range f.kept {
			r.records++
			if dir, of := filepath.Dir(f.path), k.run.Header.Of; of != nil {
				r.of[dir] = append(r.of[dir], of)
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

// named adds the node as a label to all figures if --over is set.
func named(d export.Document, over, node string) export.Document {
	for i := range d.Figures {
		if f := &d.Figures[i]; over != "" && f.Labels.Get(over) == "" {
			f.Labels = f.Labels.With(over, node)
		}
	}
	return d
}

// nameOf returns the name of a node without a label: its file, relative to the folder
// argument.
func nameOf(path string, args []string) string {
	for _, arg := range args {
		if rest, below := strings.CutPrefix(path, filepath.Clean(arg)+"/"); below {
			path = rest
		}
	}
	return record.Stem(path)
}

// show prints the report.
func (r *reported) show(s *app) error {
	switch {
	case r.programs():
		if r.nodes != nil {
			r.documents = append(comparison("report", r.nodes.Figures(), r.nodes.Findings()), r.documents...)
		}
		return s.showPages(r.outputFlags, r.documents)
	case r.nodes != nil:
		return s.showPages(r.outputFlags, nil, r.nodes.Pages()...)
	}
	_, err := s.show(r.all, r.outputFlags)
	return err
}
