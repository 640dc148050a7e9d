package compare

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"
	"golang.org/x/perf/benchproc"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// Nodes are records of many machines: how figures are distributed over them, which
// machines are unlike the others, and what sets them apart. Records are added one after
// the other and forgotten; of every figure its value and half of its interval stay, so a
// thousand nodes take a few MiB.
type Nodes struct {
	Unnamed bool // some record was called by its file: it may be of the same machine as others

	over   string // what tells them apart: "node"
	filter *benchproc.Filter
	kinds  []*measured
}

// measured are the records of one measurement: of one experiment with the same options.
type measured struct {
	over, key, experiment, title string

	unnamed  bool
	names    []string
	at       map[string]int // places of the names
	records  int
	failed   []int // operations, by node
	total    []int
	memories []int64 // that are not the same

	circumstances []*circumstance
	circumstance  map[string]*circumstance // by target and field
	figures       []*overNodes
	figure        map[string]*overNodes
	found         map[string]map[int]string // code → node → message
}

// circumstance is a fact, and what it is on each node.
type circumstance struct {
	fact
	values []string // by node
	with   []string // facts that part the nodes in the same way
}

// overNodes is a figure on many nodes.
type overNodes struct {
	figure.Figure           // of the first, without its values
	of            []int     // whose each value is
	values        []float64 // of one record each, until they are settled
	halves        []float64 // of each its interval's half, as a share
}

// NewNodes are no records yet, told apart by a label. The filter says which figures are
// shown and looked at for outliers; all of them are exported.
func NewNodes(over, filter string) (*Nodes, error) {
	f, err := benchproc.NewFilter(filter)
	if err != nil {
		return nil, fmt.Errorf("figures of nodes: %w", err)
	}
	return &Nodes{over: over, filter: f}, nil
}

// Add takes a record of a node, with how many operations failed of how many, and what
// was found.
func (n *Nodes) Add(node string, run *Run, failed, total int, findings []record.Finding) {
	m := n.kind(run)
	i, met := m.at[node]
	if !met {
		i = len(m.names)
		m.at[node], m.names = i, append(m.names, node)
		m.failed, m.total = append(m.failed, 0), append(m.total, 0)
	}
	m.records++
	m.failed[i], m.total[i] = m.failed[i]+failed, m.total[i]+total
	for _, f := range m.facts(run) {
		m.note(i, f)
	}
	for k := range run.Figures {
		m.take(i, &run.Figures[k])
	}
	for _, f := range findings {
		if m.found[f.Code] == nil {
			m.found[f.Code] = map[int]string{}
		}
		m.found[f.Code][i] = cmp.Or(m.found[f.Code][i], page.Short(f.Message, page.LongestMessage))
	}
}

// kind is the measurement that a run is of.
func (n *Nodes) kind(run *Run) *measured {
	h := &run.Header
	key := fmt.Sprintf("%q %#v", h.Experiment, options(run))
	i := slices.IndexFunc(n.kinds, func(m *measured) bool { return m.key == key })
	if i < 0 {
		i = len(n.kinds)
		n.kinds = append(n.kinds, &measured{over: n.over, key: key, experiment: h.Experiment, title: h.Planned().Title,
			at: map[string]int{}, circumstance: map[string]*circumstance{}, figure: map[string]*overNodes{}, found: map[string]map[int]string{}})
	}
	return n.kinds[i]
}

// The facts that the type of a machine is made of, and that it is told by.
const (
	machineField = "machine"
	kernelField  = "kernel"
)

// facts are a node's. CPU, CPUs and memory come together, as the machine's type.
func (m *measured) facts(run *Run) []fact {
	e := &run.Header.Environment
	memory := m.memories[ofMemory(&m.memories, e.Memory)]
	out := []fact{{kind: Machine, field: machineField, value: page.Dotted(page.Processor(e), page.Size(float64(memory)))}}
	for _, f := range environment(e) {
		if f.field != "CPU" && f.field != "CPUs" {
			out = append(out, f)
		}
	}
	out = append(out, fact{kind: Instrument, field: "tare", value: run.Header.Version})
	for i := range run.Targets {
		out = append(out, target(&run.Targets[i])...)
	}
	return out
}

func (m *measured) note(node int, f fact) {
	key := f.target + "\x00" + f.field
	c := m.circumstance[key]
	if c == nil {
		c = &circumstance{fact: f}
		m.circumstance[key], m.circumstances = c, append(m.circumstances, c)
	}
	for len(c.values) <= node {
		c.values = append(c.values, "")
	}
	c.values[node] = cmp.Or(c.values[node], f.value)
}

// value is the fact of a node, "" where it has none.
func (c *circumstance) value(node int) string {
	if c == nil || node >= len(c.values) {
		return ""
	}
	return c.values[node]
}

func (m *measured) take(node int, f *figure.Figure) {
	if !f.Known() || !stat.Finite(f.Value) {
		return
	}
	key := f.Quantity + " " + string(f.Unit) + " " + f.Labels.String()
	o := m.figure[key]
	if o == nil {
		o = &overNodes{Figure: figure.Figure{Experiment: f.Experiment, Quantity: f.Quantity, Unit: f.Unit, Better: f.Better, Labels: f.Labels}}
		m.figure[key], m.figures = o, append(m.figures, o)
	}
	o.AtMost = o.AtMost || f.AtMost // what is less somewhere may move all of the distribution down
	half := math.NaN()
	if f.Bounded && f.Value != 0 {
		half = (f.Hi - f.Lo) / 2 / math.Abs(f.Value)
	}
	o.of, o.values, o.halves = append(o.of, node), append(o.values, f.Value), append(o.halves, half)
}

// settle makes one value of several of a node: their median.
func (o *overNodes) settle() {
	each := map[int][]float64{}
	for i, node := range o.of {
		each[node] = append(each[node], o.values[i])
	}
	if len(each) == len(o.of) {
		return
	}
	o.of, o.values = slices.Sorted(maps.Keys(each)), nil
	for _, node := range o.of {
		o.values = append(o.values, figure.MedianOf(each[node]).Value)
	}
}

// shown are the figures that the filter lets through.
func (n *Nodes) shown(m *measured) (out []*overNodes) {
	for _, o := range m.figures {
		as := &benchfmt.Result{Values: []benchfmt.Value{{Unit: string(o.Unit)}}}
		for _, l := range append(figure.Of("experiment", o.Experiment, "quantity", o.Quantity, "unit", string(o.Unit)), o.Labels...) {
			as.SetConfig(l.Key, l.Value)
		}
		if match, err := n.filter.Match(as); err == nil && match.Any() {
			o.settle()
			out = append(out, o)
		}
	}
	return out
}

// The words for where in the distribution over nodes a figure is.
const (
	least = iota
	tenth
	middle
	ninetieth
	most
	between
	within
)

var levelNames = []string{"min", "p10", "median", "p90", "max", "between", "within"}

// levels are the distribution as figures: quantiles, each the value of some node, the
// median with its interval, how far nodes lie apart, and how well one of them is known.
func (o *overNodes) levels(m *measured) []figure.Figure {
	q := stat.Quantiles(o.values, 0, 0.1, 0.9, 1)
	out := make([]figure.Figure, len(levelNames))
	for i := range out {
		out[i] = o.Figure
		out[i].Labels = o.Labels.With("nodes", levelNames[i])
	}
	for i, at := range []int{least, tenth, ninetieth, most} {
		out[at].Estimate = figure.Exactly(q[i])
		out[at].N = len(o.values)
	}
	for at, v := range map[int]float64{least: q[0], most: q[3]} {
		out[at].Labels = out[at].Labels.With(m.over, m.names[o.of[slices.Index(o.values, v)]])
	}
	out[middle].Estimate = figure.MedianOf(o.values)
	known := slices.DeleteFunc(slices.Clone(o.halves), math.IsNaN)
	for at, share := range map[int]float64{between: stat.Scatter(o.values), within: stat.Quantiles(known, 0.5)[0]} {
		f := &out[at]
		f.Quantity, f.Unit, f.Better, f.AtMost, f.Labels = "node-spread", figure.Ratio, "", false, f.Labels.With("of", o.Quantity)
		if stat.Finite(share) && !o.AtMost {
			f.Estimate = figure.Exactly(share)
			f.N = len(o.values)
		}
	}
	return out
}

// Figures are the distributions of all figures.
func (n *Nodes) Figures() (out []figure.Figure) {
	for _, m := range n.kinds {
		for _, o := range m.figures {
			o.settle()
			out = append(out, o.levels(m)...)
		}
	}
	return out
}

// Findings are the outliers.
func (n *Nodes) Findings() (out []record.Finding) {
	for _, m := range n.kinds {
		parted := m.parted()
		for _, a := range m.outliers(n.shown(m)) {
			out = append(out, record.Finding{Code: "outlier-node", Level: "warning",
				Message: m.names[a.node] + ": " + a.String(), Advice: "unlike about it: " + strings.Join(m.unlike(a.node, parted), "; ")})
		}
	}
	return out
}

// parted are the circumstances that differ between nodes; those that part them in the
// same way cannot be told apart, and are one.
func (m *measured) parted() (out []*circumstance) {
	by := map[string]*circumstance{}
	for _, c := range m.circumstances {
		var key strings.Builder
		numbers := map[string]int{}
		for node := range m.names {
			v := c.value(node)
			if _, met := numbers[v]; !met {
				numbers[v] = len(numbers)
			}
			fmt.Fprint(&key, numbers[v], " ")
		}
		c.with = nil
		switch same := by[key.String()]; {
		case len(numbers) < 2:
		case same != nil:
			same.with = append(same.with, c.field)
		default:
			by[key.String()] = c
			out = append(out, c)
		}
	}
	return out
}

// groups are the values of a circumstance with the nodes that have them, the most first.
func (m *measured) groups(c *circumstance) (values []string, nodes map[string][]int) {
	nodes = map[string][]int{}
	for node := range m.names {
		v := c.value(node)
		nodes[v] = append(nodes[v], node)
	}
	values = slices.SortedFunc(maps.Keys(nodes), func(a, b string) int {
		return cmp.Or(len(nodes[b])-len(nodes[a]), strings.Compare(a, b))
	})
	return values, nodes
}

// apartNode is a node some of whose figures are outliers.
type apartNode struct {
	node    int
	figures []apartFigure // the furthest first
	among   int           // figures that were looked at
}

type apartFigure struct {
	stat.Outlier
	of    *overNodes
	value float64
}

// String is the figure that lies furthest, and how many more there are.
func (a *apartNode) String() string {
	f := a.figures[0]
	shift := ""
	if stat.Finite(f.Shift) {
		shift = page.Percent(100*f.Shift) + ", "
	}
	return fmt.Sprintf("%s %s is %s (%sscore %.1f); %d of %s lie apart", f.of.Quantity, f.of.Labels, page.Text(f.value, f.of.Unit), shift, f.Score, len(a.figures), page.Amount(a.among, "figure"))
}

// proven are the figures of which no node has an upper bound only.
func proven(all []*overNodes) []*overNodes {
	return slices.DeleteFunc(slices.Clone(all), func(o *overNodes) bool { return o.AtMost })
}

// outliers are the nodes that lie apart from those like them, the furthest first. Upper
// bounds do not show who does.
func (m *measured) outliers(all []*overNodes) (out []apartNode) {
	all = proven(all)
	among, apart := 0, map[int]*apartNode{}
	for _, o := range all {
		among += len(o.values)
	}
	for _, o := range all {
		for _, found := range stat.Outliers(o.values, m.like(o), among) {
			node := o.of[found.At]
			if apart[node] == nil {
				apart[node] = &apartNode{node: node, among: len(all)}
			}
			apart[node].figures = append(apart[node].figures, apartFigure{found, o, o.values[found.At]})
		}
	}
	for _, a := range apart {
		slices.SortStableFunc(a.figures, func(x, y apartFigure) int { return cmp.Compare(math.Abs(y.Score), math.Abs(x.Score)) })
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b apartNode) int {
		return cmp.Or(cmp.Compare(math.Abs(b.figures[0].Score), math.Abs(a.figures[0].Score)), a.node-b.node)
	})
	return out
}

// like says which nodes are alike: those of a type of machine and kernel; where these are
// too few, what is usual is the median of all of its type of machine, or else of all.
func (m *measured) like(o *overNodes) (kinds stat.Kinds) {
	machine, kernel := m.circumstance["\x00"+machineField], m.circumstance["\x00"+kernelField]
	kinds.Of = make([]int, len(o.of))
	for _, level := range []func(node int) string{
		func(int) string { return "" }, machine.value,
		func(node int) string { return machine.value(node) + "\x00" + kernel.value(node) },
	} {
		members := map[string][]int{}
		for i, node := range o.of {
			members[level(node)] = append(members[level(node)], i)
		}
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if len(members[name]) < stat.FewestForOutliers && kinds.Members != nil {
				continue
			}
			for _, i := range members[name] {
				kinds.Of[i] = len(kinds.Members)
			}
			kinds.Members = append(kinds.Members, members[name])
		}
	}
	return kinds
}

// few is how many nodes share at most what is called unlike about one of them.
func (m *measured) few() int { return max(1, len(m.names)/10) }

// unlike is what few nodes share with one: circumstances, findings, failures.
func (m *measured) unlike(node int, parted []*circumstance) (out []string) {
	share := func(n int) string { return fmt.Sprintf("(%d of %s)", n, m.amount(len(m.names))) }
	for _, c := range parted {
		_, groups := m.groups(c)
		if n := len(groups[c.value(node)]); n <= m.few() {
			out = append(out, fmt.Sprintf("%s %s %s", c.name(), shortly(c.value(node)), share(n)))
		}
	}
	for _, code := range slices.Sorted(maps.Keys(m.found)) {
		if message, has := m.found[code][node]; has && len(m.found[code]) <= m.few() {
			out = append(out, fmt.Sprintf("%s: %s %s", page.Heading(code), message, share(len(m.found[code]))))
		}
	}
	failing := 0
	for _, n := range m.failed {
		failing += min(n, 1)
	}
	if m.failed[node] > 0 && failing <= m.few() {
		out = append(out, fmt.Sprintf("failed %d/%d %s", m.failed[node], m.total[node], share(failing)))
	}
	if out == nil {
		return []string{"nothing that its record tells and few others have"}
	}
	return out
}

// name is the fact's, with those that part the nodes in the same way.
func (c *circumstance) name() string {
	if c.with == nil {
		return c.field
	}
	return c.field + " (with " + page.Listed(c.with) + ")"
}
