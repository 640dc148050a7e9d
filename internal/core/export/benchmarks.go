package export

import (
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
)

// entry is a result in github-action-benchmark's custom format.
type entry struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	Range string  `json:"range,omitempty"`
	Extra string  `json:"extra,omitempty"`
}

// SmallerIsBetter writes the customSmallerIsBetter format of github-action-benchmark.
func SmallerIsBetter(w io.Writer, all []Document) error { return entries(w, all, figure.Less) }

// BiggerIsBetter writes the customBiggerIsBetter format of github-action-benchmark.
func BiggerIsBetter(w io.Writer, all []Document) error { return entries(w, all, figure.More) }

// entries writes the figures of one direction, since a file can have only one.
func entries(w io.Writer, all []Document, better figure.Direction) error {
	out := []entry{}
	for i, figures := range naming(all) {
		for _, n := range figures {
			if !n.known() || n.Better != better {
				continue
			}
			e := entry{Name: n.name(), Unit: string(n.Unit), Value: n.Value, Extra: "run " + all[i].Record.Header.RunID}
			if n.bounded() {
				e.Range = number(n.Lo) + " to " + number(n.Hi)
			}
			if n.Total > 0 {
				e.Extra += fmt.Sprintf("\n%d of %d failed", n.Failed, n.Total)
			}
			out = append(out, e)
		}
	}
	return Value(w, out)
}

// measure is a measure in Bencher Metric Format.
type measure struct {
	Value float64  `json:"value"`
	Lower *float64 `json:"lower_value,omitempty"`
	Upper *float64 `json:"upper_value,omitempty"`
}

// Bencher writes Bencher Metric Format. The labels form the name of a benchmark. Bencher's
// default unit is ns, so other measures have their unit in the name.
func Bencher(w io.Writer, all []Document) error {
	out := map[string]map[string]measure{}
	for _, figures := range naming(all) {
		for _, n := range figures {
			if !n.known() {
				continue
			}
			name := strings.TrimSpace(n.Experiment + " " + n.labels.String())
			if out[name] == nil {
				out[name] = map[string]measure{}
			}
			m := measure{Value: n.Value}
			if n.bounded() {
				m.Lower, m.Upper = &n.Lo, &n.Hi
			}
			out[name][measureName(n.Figure)] = m
		}
	}
	return Value(w, out)
}

// measureName returns "latency" for a time in ns, or "bandwidth-bytes-per-second".
func measureName(f *figure.Figure) string {
	return f.Quantity + map[figure.Unit]string{
		figure.Bytes: "-bytes", figure.CPUs: "-cpus", figure.PerSecond: "-per-second", figure.BytesPerSec: "-bytes-per-second", figure.Ratio: "-ratio",
		figure.Count: "-count", figure.NsPerByte: "-ns-per-byte", figure.Load: "-load",
	}[f.Unit]
}
