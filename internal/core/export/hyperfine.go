package export

import (
	"io"
	"slices"

	"github.com/aclements/go-moremath/stats"

	"github.com/tare-bench/tare/internal/core/figure"
)

// timing is a result of hyperfine --export-json. Times are in s.
type timing struct {
	Command    string        `json:"command"`
	Mean       float64       `json:"mean"`
	Stddev     *float64      `json:"stddev"` // null for a single time
	Median     float64       `json:"median"`
	User       *float64      `json:"user,omitempty"`
	System     *float64      `json:"system,omitempty"`
	Min        float64       `json:"min"`
	Max        float64       `json:"max"`
	Times      []float64     `json:"times"`
	Parameters figure.Labels `json:"parameters,omitempty"`
}

// Hyperfine writes the times of rounds in hyperfine's format. It omits figures that are not
// times or have no rounds.
func Hyperfine(w io.Writer, all []Document) error {
	results := []timing{}
	for i, figures := range naming(all) {
		for _, n := range figures {
			if times := n.values(); n.Unit == figure.Nanoseconds && !n.AtMost && len(times) > 0 {
				results = append(results, n.timing(times, all[i].Figures))
			}
		}
	}
	return Value(w, map[string][]timing{"results": results})
}

func (n *named) timing(times []float64, beside []figure.Figure) timing {
	t := timing{Command: n.name(), Parameters: n.labels, Times: times}
	for i := range times {
		times[i] /= 1e9
	}
	t.Mean, t.Median, t.Min, t.Max = stats.Mean(times), figure.MedianOf(times).Value, slices.Min(times), slices.Max(times)
	if len(times) > 1 {
		s := stats.StdDev(times)
		t.Stddev = &s
	}
	for quantity, into := range map[string]**float64{"user-cpu": &t.User, "system-cpu": &t.System} {
		for _, f := range beside { // the matching figure
			if f.Quantity == quantity && f.Known() && f.Labels.String() == n.Figure.Labels.String() {
				s := f.Value / 1e9
				*into = &s
			}
		}
	}
	return t
}
