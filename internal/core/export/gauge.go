package export

import (
	"slices"

	"github.com/tare-bench/tare/internal/core/figure"
)

// convention is how others write a unit of ours.
type convention struct {
	per         float64 // of ours in one of theirs
	openMetrics string  // the end of a metric's name; "": none
	ucum        string  // the Unified Code for Units of Measure, as OpenTelemetry has it
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

// gauge is one number of all figures of a quantity, as monitoring takes it.
type gauge struct {
	experiment, quantity string
	part                 string // "" is the value; "lower", "upper", "failed", "attempts"
	convention
	points []point
}

type point struct {
	of    *named
	value float64
}

// parts of a figure, and what is said of them.
var parts = map[string]string{
	"": "", "lower": ", the lower end of its interval", "upper": ", the upper end of its interval",
	"failed": ": attempts that failed", "attempts": ": attempts",
}

func (g *gauge) help() string {
	return g.quantity + " as tare " + g.experiment + " has it" + parts[g.part]
}

// gauges are the values of figures with their bounds, and how many of how many attempts
// failed, in the order in which they first appear.
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
