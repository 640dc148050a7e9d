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

// Nodes compares the records of many machines: the distribution of each figure, outliers, and
// the circumstances that distinguish them. It keeps only the value of each figure and half of
// its interval, so a thousand nodes need a few MiB.
type Nodes struct {
	Unnamed bool // some record is named by its file and may be from the same machine as others

	over   string // label that identifies a node: "node"
	filter *benchproc.Filter
	kinds  []*measured
}

// measured has the results of all records of one experiment with the same options.
type measured struct {
	over, key, experiment, title string

	unnamed  bool
	names    []string
	at       map[string]int // index by name
	records  int
	failed   []int // failed operations by node
	total    []int
	memories []int64 // distinct memory sizes

	circumstances []*circumstance
	circumstance  map[string]*circumstance // by target and field
	figures       []*overNodes
	figure        map[string]*overNodes
	found         map[string]map[int]string // code → node → message
}

// circumstance is a fact with its value on each node.
type circumstance struct {
	fact
	values []string // by node
	with   []string // facts that split the nodes in the same way
}

// overNodes is a figure on many nodes.
type overNodes struct {
	figure.Figure           // the figure of the first node, without its values
	of            []int     // node of each value
	values        []float64 // one value per record; after settle, one per node
	halves        []float64 // relative half of each interval
}

// NewNodes returns an empty set of records, grouped by a label. The filter selects the figures
// for tables and outliers. All figures are exported.
func NewNodes(over, filter string) (*Nodes, error) {
	f, err := benchproc.NewFilter(filter)
	if err != nil {
		return nil, fmt.Errorf("filter node figures: %w", err)
	}
	return &Nodes{over: over, filter: f}, nil
}

// Add adds a record of a node, its failed and total operations, and its findings.
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

// kind returns the measurement that a run belongs to, and adds it if it is new.
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

// Fields that identify the type of a machine and its kernel.
const (
	machineField = "machine"
	kernelField  = "kernel"
)

// facts returns the facts of a node. CPU, CPUs and memory are one fact, the machine type.
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

// value returns the fact's value on a node, or "" if it has none.
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
	o.AtMost = o.AtMost || f.AtMost // a smaller value on one node may move the whole distribution down
	half := math.NaN()
	if f.Bounded && f.Value != 0 {
		half = (f.Hi - f.Lo) / 2 / math.Abs(f.Value)
	}
	o.of, o.values, o.halves = append(o.of, node), append(o.values, f.Value), append(o.halves, half)
}

// settle reduces several values of a node to their median.
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

// shown returns the figures that match the filter.
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

// Indexes of the figures that describe a distribution over nodes.
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

// levels describes the distribution as figures: quantiles, the median with its interval, the
// spread between nodes and the typical interval within a node. A quantile is the value of one
// node.
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

// Figures returns the distributions of all figures.
func (n *Nodes) Figures() (out []figure.Figure) {
	for _, m := range n.kinds {
		for _, o := range m.figures {
			o.settle()
			out = append(out, o.levels(m)...)
		}
	}
	return out
}

// Findings lists the outliers.
func (n *Nodes) Findings() (out []record.Finding) {
	for _, m := range n.kinds {
		parted := m.parted()
		for _, a := range m.outliers(n.shown(m)) {
			out = append(out, record.Finding{Code: "outlier-node", Level: "warning",
				Message: m.names[a.node] + ": " + a.String(), Advice: "distinguishing facts: " + strings.Join(m.unlike(a.node, parted), "; ")})
		}
	}
	return out
}

// parted returns the circumstances that differ between nodes. Circumstances that split the
// nodes in the same way are indistinguishable, so they are merged into one.
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

// groups returns the values of a circumstance and their nodes, most frequent first.
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

// apartNode is a node with outlying figures.
type apartNode struct {
	node    int
	figures []apartFigure // largest score first
	among   int           // number of tested figures
}

type apartFigure struct {
	stat.Outlier
	of    *overNodes
	value float64
}

// String describes the figure with the largest score and counts the others.
func (a *apartNode) String() string {
	f := a.figures[0]
	shift := ""
	if stat.Finite(f.Shift) {
		shift = page.Percent(100*f.Shift) + ", "
	}
	return fmt.Sprintf("%s %s is %s (%sscore %.1f); %d of %s are outliers", f.of.Quantity, f.of.Labels, page.Text(f.value, f.of.Unit), shift, f.Score, len(a.figures), page.Amount(a.among, "figure"))
}

// proven returns the figures that are not an upper bound on any node.
func proven(all []*overNodes) []*overNodes {
	return slices.DeleteFunc(slices.Clone(all), func(o *overNodes) bool { return o.AtMost })
}

// outliers returns the nodes that differ from similar nodes, largest score first. It ignores
// figures with upper bounds, which cannot prove an outlier.
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

// like groups similar nodes: those with the same machine type and kernel. A group that is too
// small is compared with all nodes of its machine type, or else with all nodes.
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

// few returns how many nodes may share a fact that still counts as unusual.
func (m *measured) few() int { return max(1, len(m.names)/10) }

// unlike returns the circumstances, findings and failures of a node that at most m.few() nodes
// have.
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
		return []string{"nothing in its record that few others share"}
	}
	return out
}

// name returns the name of the fact and of the facts merged into it.
func (c *circumstance) name() string {
	if c.with == nil {
		return c.field
	}
	return c.field + " (with " + page.Listed(c.with) + ")"
}
