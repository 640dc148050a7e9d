package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// named is a figure for formats that identify figures by name. Names are unique.
type named struct {
	*figure.Figure
	labels figure.Labels // cleaned; include the run if an experiment has several
}

// name returns a name such as "lifecycle latency target=runc op=create".
func (n *named) name() string {
	return strings.TrimSpace(n.Experiment + " " + n.Quantity + " " + n.labels.String())
}

// known reports whether the figure has a value. NaN and infinities do not count. Neither do
// upper bounds, since these formats cannot mark them.
func (n *named) known() bool { return n.finite() && !n.AtMost }

// atMost returns the upper bound of a figure whose value is only a bound. If the bound has an
// interval, atMost returns its upper end.
func (n *named) atMost() (bound float64, ok bool) {
	if bound = n.Value; n.Bounded && stat.Finite(n.Hi) {
		bound = n.Hi
	}
	return bound, n.finite() && n.AtMost
}

func (n *named) finite() bool { return n.Estimate.Known() && stat.Finite(n.Value) }

// bounded reports whether the value has an interval.
func (n *named) bounded() bool {
	return n.known() && n.Bounded && stat.Finite(n.Lo) && stat.Finite(n.Hi)
}

// values returns the finite values of the rounds, in order.
func (n *named) values() []float64 {
	var out []float64
	for _, r := range n.Rounds {
		if stat.Finite(r.Value) {
			out = append(out, r.Value)
		}
	}
	return out
}

// naming names the figures of documents. Names come from the records, so two may be equal. The
// later one then gets a number.
func naming(all []Document) [][]named {
	out, seen, apart := make([][]named, len(all)), map[string]int{}, apart(all)
	for i := range all {
		d := &all[i]
		for k := range d.Figures {
			n := named{Figure: &d.Figures[k]}
			for _, l := range n.Labels {
				n.labels = append(n.labels, figure.Label{Key: term.Clean(l.Key), Value: term.Clean(l.Value)})
			}
			for _, l := range apart[i] {
				n.labels = n.labels.With(l.Key, term.Clean(l.Value))
			}
			called := n.name() + " " + string(n.Unit)
			if seen[called]++; seen[called] > 1 {
				n.labels = append(n.labels, figure.Label{Key: "again", Value: fmt.Sprint(seen[called])})
			}
			out[i] = append(out[i], n)
		}
	}
	return out
}

// apart returns the labels that distinguish the runs of one experiment: the document's own, or
// the run ID if there are several runs. The label of a cold page cache is always present, since
// files may be compared later.
func apart(all []Document) []figure.Labels {
	out, runs := make([]figure.Labels, len(all)), map[string]int{}
	for i := range all {
		runs[all[i].Record.Header.Experiment]++
	}
	for i := range all {
		h := &all[i].Record.Header
		if out[i] = all[i].Apart; out[i] == nil && runs[h.Experiment] > 1 {
			out[i] = figure.Of("run", h.RunID)
		}
		out[i] = append(slices.Clip(out[i]), figure.Of("cache", string(h.Planned().Cache))...)
	}
	return out
}
