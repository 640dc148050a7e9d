package compare

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/term"
)

// grid is figures by table, row and column.
type grid struct {
	filter          *benchproc.Filter
	table, row, col *benchproc.Projection
	cells           map[place]*cell
	tables          []benchproc.Key
	rows            map[benchproc.Key][]benchproc.Key // by table
	cols            []benchproc.Key                   // of all tables
	known           []string                          // valid keys
}

type place struct{ table, row, col benchproc.Key }

// keys returns the keys of a record and the labels that were added to it. A figure's own label
// overrides a key of the same name.
func keys(run *sided, f *figure.Figure) figure.Labels {
	h := &run.Header
	own := figure.Labels{{Key: "experiment", Value: f.Experiment}, {Key: "quantity", Value: f.Quantity}, {Key: "unit", Value: string(f.Unit)},
		{Key: "side", Value: run.side}, {Key: "run", Value: h.RunID}, {Key: "tare", Value: h.Version},
		{Key: "kernel", Value: h.Environment.Kernel}, {Key: "arch", Value: h.Environment.Arch}, {Key: "os", Value: h.Environment.OS},
		{Key: "cpu", Value: h.Environment.CPUModel}, {Key: "cgroup", Value: h.Environment.Cgroup}, {Key: "version", Value: run.target(f).Version}}
	return append(own, run.Labels...)
}

// project assigns every figure to a table, a row and a column. It applies benchstat's
// projections to figures. The keys are the labels of a figure and the keys of its record.
func (c *Comparison) project(o Options) (*grid, error) {
	g := &grid{cells: map[place]*cell{}, rows: map[benchproc.Key][]benchproc.Key{}}
	if err := g.parse(o, c.labels(), c.runs); err != nil {
		return nil, err
	}
	for i := range c.runs {
		run := &c.runs[i]
		for k := range run.Figures {
			f := &run.Figures[k]
			as := &benchfmt.Result{Values: []benchfmt.Value{{Unit: string(f.Unit)}}}
			for _, l := range slices.Concat(keys(run, f), f.Labels) {
				as.SetConfig(l.Key, l.Value)
			}
			match, err := g.filter.Match(as)
			if err != nil {
				return nil, fmt.Errorf("--filter: %w", err)
			}
			if !match.Any() {
				continue
			}
			if err := g.add(place{g.table.Project(as), g.row.Project(as), g.col.Project(as)}, i, f); err != nil {
				return nil, err
			}
		}
	}
	if len(g.cells) == 0 {
		if err := c.unknownQuantity(o.Filter); err != nil {
			return nil, err
		}
	}
	benchproc.SortKeys(g.tables)
	benchproc.SortKeys(g.cols)
	for _, rows := range g.rows {
		benchproc.SortKeys(rows)
	}
	return g, nil
}

// quantityOf matches the name of a quantity in a filter.
var quantityOf = regexp.MustCompile(`\bquantity:"?([\w.-]+)`)

// unknownQuantity returns an error if a filter names a quantity that no figure has.
func (c *Comparison) unknownQuantity(filter string) error {
	var known []string
	for _, run := range c.runs {
		for i := range run.Figures {
			known = append(known, run.Figures[i].Quantity)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range quantityOf.FindAllStringSubmatch(filter, -1) {
		if !slices.Contains(known, name[1]) {
			return term.Unknown("quantity", name[1], known)
		}
	}
	return nil
}

// labels returns the label keys of all figures in order of appearance.
func (c *Comparison) labels() (out []string) {
	for _, run := range c.runs {
		for _, f := range run.Figures {
			for _, l := range f.Labels {
				out = page.Union(out, l.Key)
			}
		}
	}
	return out
}

// parse parses the projections. Different quantities never share a row. By default a row is
// identified by all labels that no other projection uses.
func (g *grid) parse(o Options, labels []string, runs []sided) (err error) {
	g.known = slices.Clone(labels)
	for i := range runs {
		for _, own := range keys(&runs[i], &figure.Figure{}) {
			g.known = page.Union(g.known, own.Key)
		}
	}
	if g.filter, err = benchproc.NewFilter(cmp.Or(strings.TrimSpace(o.Filter), "*")); err != nil {
		return fmt.Errorf("--filter: %w", err)
	}
	var parser benchproc.ProjectionParser
	var taken []string
	read := func(flag, text string, more ...string) *benchproc.Projection {
		for _, key := range more {
			if !slices.Contains(taken, key) {
				text += " " + strconv.Quote(key)
			}
		}
		p, wrong := parser.Parse(text, g.filter)
		if wrong != nil {
			err = cmp.Or(err, fmt.Errorf("--%s: %w", flag, wrong))
			return nil
		}
		for _, f := range p.Fields() {
			if taken = append(taken, f.Name); !slices.Contains(g.known, f.Name) {
				err = cmp.Or(err, fmt.Errorf("--%s: unknown key %q; the keys are %s", flag, f.Name, strings.Join(g.known, ", ")))
			}
		}
		return p
	}
	g.col = read("col", cmp.Or(strings.TrimSpace(o.Col), "side"))
	if o.Row != "" {
		g.row = read("row", o.Row)
	}
	g.table = read("table", o.Table, "experiment", "quantity")
	if o.Row == "" {
		g.row = read("row", "", labels...)
	}
	return err
}

// add adds a figure to its cell. Two figures of a run in one cell would be different things, so
// they are an error.
func (g *grid) add(at place, run int, f *figure.Figure) error {
	one := g.cells[at]
	if one == nil {
		one = &cell{}
		g.cells[at] = one
		if g.rows[at.table] == nil {
			g.tables = append(g.tables, at.table)
		}
		g.rows[at.table], g.cols = page.Union(g.rows[at.table], at.row), page.Union(g.cols, at.col)
	}
	if n := len(one.runs); n > 0 && one.runs[n-1] == run {
		return fmt.Errorf("%s of %q and of %q share a cell: add a distinguishing key to --row or --table, or select one with --filter",
			f.Quantity, one.of[n-1].Labels.String(), f.Labels.String())
	}
	one.runs, one.of = append(one.runs, run), append(one.of, f)
	return nil
}

// columns returns the columns of a table. The first column of all is always included, since the
// others are compared with it.
func (g *grid) columns(table benchproc.Key) []benchproc.Key {
	return slices.DeleteFunc(slices.Clone(g.cols), func(col benchproc.Key) bool {
		return col != g.cols[0] && !slices.ContainsFunc(g.rows[table], func(row benchproc.Key) bool { return g.cells[place{table, row, col}] != nil })
	})
}
