package export

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
)

// convention describes how other formats write one of tare's units.
type convention struct {
	per         float64 // tare's units in one of theirs
	openMetrics string  // suffix of a metric name; "": none
	ucum        string  // Unified Code for Units of Measure, as used by OpenTelemetry
}

var conventions = map[figure.Unit]convention{
	figure.Nanoseconds: {1e9, "seconds", "s"},
	figure.Bytes:       {1, "bytes", "By"},
	figure.CPUs:        {1, "cpus", "{cpu}"},
	figure.PerSecond:   {1, "per_second", "1/s"},
	figure.BytesPerSec: {1, "bytes_per_second", "By/s"},
	figure.Ratio:       {1, "ratio", "1"},
	figure.Count:       {1, "", "{count}"},
	figure.NsPerByte:   {1e9, "seconds_per_byte", "s/By"},
	figure.Load:        {1, "", "{load}"},
}

// gauge is a monitoring metric. It has the same part, such as the lower bound, of all figures of
// one quantity.
type gauge struct {
	experiment, quantity string
	part                 string // "" for the value; or "lower", "upper", "failed", "attempts"
	convention
	points []point
}

type point struct {
	of    *named
	value float64
}

// parts describe the parts of a figure in help texts.
var parts = map[string]string{
	"": "", "lower": ", the lower end of its interval", "upper": ", the upper end of its interval",
	"failed": ": failed attempts", "attempts": ": attempts",
}

func (g *gauge) help() string {
	return g.quantity + " measured by tare " + g.experiment + parts[g.part]
}

// gauges returns the values, the bounds, and the failed and total attempts of figures, in order
// of first appearance.
func gauges(figures []named) []gauge {
	var out []gauge
	add := func(n *named, part string, in convention, value float64) {
		i := slices.IndexFunc(out, func(g gauge) bool {
			return g.experiment == n.Experiment && g.quantity == n.Quantity && g.part == part && g.convention == in
		})
		if i < 0 {
			i = len(out)
			out = append(out, gauge{experiment: n.Experiment, quantity: n.Quantity, part: part, convention: in})
		}
		out[i].points = append(out[i].points, point{n, value / in.per})
	}
	for i := range figures {
		n := &figures[i]
		in := conventions[n.Unit]
		if n.known() {
			add(n, "", in, n.Value)
		}
		if n.bounded() {
			add(n, "lower", in, n.Lo)
			add(n, "upper", in, n.Hi)
		}
		if bound, ok := n.atMost(); ok {
			add(n, "upper", in, bound)
		}
		if n.Total > 0 {
			add(n, "failed", conventions[figure.Count], float64(n.Failed))
			add(n, "attempts", conventions[figure.Count], float64(n.Total))
		}
	}
	return out
}
