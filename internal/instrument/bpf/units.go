package bpf

import (
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
)

// CPU shares are of one core or of the node. Column titles name the unit briefly, so
// that a table fits both.
const (
	ofACore   = "core %"
	ofTheNode = "node %"
)

// ofNode converts a share of one core into a share of the node.
func ofNode(of *figure.Figure, cpus int) *figure.Figure {
	f := Quantities.New("cpu-share", of.Estimate, of.Labels)
	f.Rounds = of.Rounds
	if cpus <= 0 {
		f.Estimate, f.Rounds = figure.Estimate{}, nil
		return &f
	}
	n := float64(cpus)
	f.Value, f.Lo, f.Hi, f.Rounds = f.Value/n, f.Lo/n, f.Hi/n, slices.Clone(f.Rounds)
	for i := range f.Rounds {
		f.Rounds[i].Value /= n
	}
	return &f
}

// cpuLimit formats a number of CPUs: "1 CPU", "0.2 CPUs".
func cpuLimit(cpus float64) string {
	text := strconv.FormatFloat(cpus, 'g', 4, 64)
	if text == "1" {
		return "1 CPU"
	}
	return text + " CPUs"
}
