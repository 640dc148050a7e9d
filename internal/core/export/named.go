package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// named is a figure as formats take it that know figures by a name: no two of them
// have the same one.
type named struct {
	*figure.Figure
	labels figure.Labels // harmless; with the run, where several are of one experiment
}

// name is "lifecycle latency target=runc op=create".
func (n *named) name() string {
	return strings.TrimSpace(n.Experiment + " " + n.Quantity + " " + n.labels.String())
}

// known tells whether there is a value. NaN and infinities are none, and an upper bound
// would pass for one where no word beside it says what it is.
func (n *named) known() bool { return n.finite() && !n.AtMost }

// atMost is what a figure is at most that is known as an upper bound only: where there is
// an interval, its upper end.
func (n *named) atMost() (bound float64, ok bool) {
	if bound = n.Value; n.Bounded && stat.Finite(n.Hi) {
		bound = n.Hi
	}
	return bound, n.finite() && n.AtMost
}

func (n *named) finite() bool { return n.Estimate.Known() && stat.Finite(n.Value) }

// bounded tells whether the value has an interval.
func (n *named) bounded() bool {
	return n.known() && n.Bounded && stat.Finite(n.Lo) && stat.Finite(n.Hi)
}

// values are those of the rounds, in their order.
func (n *named) values() []float64 {
	var out []float64
	for _, r := range n.Rounds {
		if stat.Finite(r.Value) {
			out = append(out, r.Value)
		}
	}
	return out
}

// naming gives names to the figures of documents. Theirs are those of records, so two
// may be called the same: the later one is numbered.
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

// apart are the labels by which the runs of one experiment are told apart: those that
// a document was given, or its run's id where there are several. What is cold says so even
// alone, since files are put beside each other.
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
