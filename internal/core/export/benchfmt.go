package export

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/perf/benchfmt"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
)

// Benchfmt writes Go's benchmark format, which benchstat reads. The labels form the name of a
// benchmark, the quantity forms the unit, and each round is a sample.
//
// The configuration contains only properties that make figures incomparable, because
// benchstat puts each configuration into its own table.
func Benchfmt(w io.Writer, all []Document) error {
	out := benchfmt.NewWriter(w)
	figures := naming(all)
	said := map[string]bool{}
	for _, n := range slices.Concat(figures...) {
		better := map[figure.Direction]string{figure.Less: "lower", figure.More: "higher"}[n.Better]
		if unit := benchUnit(n.Figure); better != "" && !said[unit] {
			said[unit] = true
			meta := &benchfmt.UnitMetadata{OrigUnit: unit, Value: better}
			meta.Key = "better"
			if err := out.Write(meta); err != nil {
				return err
			}
		}
	}
	for i, d := range all {
		if _, err := fmt.Fprintf(w, "\n# run %s, tare %s\n", term.Clean(d.Record.Header.RunID), term.Clean(d.Record.Header.Version)); err != nil {
			return err
		}
		env := &d.Record.Header.Environment
		var config []benchfmt.Config
		for _, l := range figure.Of("goos", osType(env), "goarch", goarch(env.Arch), "cpu", env.CPUModel, "kernel", env.Kernel) {
			config = append(config, benchfmt.Config{Key: l.Key, Value: []byte(term.Clean(l.Value)), File: true})
		}
		for k := range figures[i] {
			n := &figures[i][k]
			for _, v := range n.samples() {
				err := out.Write(&benchfmt.Result{Config: config, Name: benchName(n), Iters: 1, Values: []benchfmt.Value{{Value: v, Unit: benchUnit(n.Figure)}}})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// samples returns values whose median is the figure's value: the values of the rounds, or else
// the figure's value alone.
func (n *named) samples() []float64 {
	values := n.values()
	switch {
	case !n.known():
		return nil
	case len(values) == 0 || figure.MedianOf(values).Value != n.Value:
		return []float64{n.Value}
	}
	return values
}

// cpusAtEnd matches a suffix that benchstat would parse as the number of CPUs.
var cpusAtEnd = regexp.MustCompile(`-(\d+)$`)

// benchName returns a name such as "Lifecycle/target=docker%2Frunc/op=create". Separators,
// spaces and control characters are escaped as in a URL path.
func benchName(n *named) benchfmt.Name {
	name := strings.ToUpper(n.Experiment[:1]) + n.Experiment[1:]
	for _, l := range n.labels {
		name += "/" + strings.ReplaceAll(url.PathEscape(l.Key), "=", "%3D") + "=" + cpusAtEnd.ReplaceAllString(url.PathEscape(l.Value), "%2D$1")
	}
	return benchfmt.Name(name)
}

// benchUnit returns the quantity with a unit suffix that benchstat recognizes.
func benchUnit(f *figure.Figure) string {
	return f.Quantity + map[figure.Unit]string{
		figure.Nanoseconds: "-ns", figure.Bytes: "-B", figure.CPUs: "-cpus", figure.PerSecond: "/s", figure.BytesPerSec: "-B/s", figure.NsPerByte: "-ns/B",
	}[f.Unit]
}
