package page

import (
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Chart describes a chart independently of its renderer: its data and their meaning.
// Instruments know no renderer, and renderers know no instrument.
type Chart struct {
	Name    string // file name, such as "makespan"; renderers make it unique
	Title   string
	Caption string // describes the chart, also for readers who cannot see it
	Kind    ChartKind
	X, Y    Axis
	Rules   []Rule
	Data    []Datum // more than [MostData] are thinned, and the caption says so
}

// MostData is the maximum number of points of a chart. Estimates, bars and the ends of lines
// do not count, since all of them are drawn.
const MostData = 2000

// ChartKind is the type of a chart.
type ChartKind int

// The kinds of charts. Y is always the value that is estimated or summed, even where a renderer
// draws it horizontally.
const (
	Intervals  ChartKind = iota // Y with Lo to Hi for each Group and Series; each round's Y as a dot
	Cumulative                  // the share Y, 0 to 1, of the values of a Series that are at most X
	Gantt                       // bars from X to X2 in rows of Groups, coloured by Series
	Stacked                     // Y of each Series, stacked within each Group; the rest of a total is also a Series
	Lines                       // Y over X by Series, with an optional band from Lo to Hi
)

// Axis describes an axis. An axis of categories has only a title.
type Axis struct {
	Title string
	Unit  figure.Unit
	Log   bool
}

// Rule is a line across a chart: a published value, a ratio of 1, a limit or a change point.
type Rule struct {
	Value    float64 // on the Y axis
	Text     string
	Vertical bool // the value is on the X axis
}

// Datum is a point, a bar or an interval.
type Datum struct {
	Panel, Group, Series string  // facet, category and colour
	X, X2, Y, Lo, Hi     float64 // in the axis's unit; NaN if absent
	Text                 string  // tooltip
	Round                bool    // the value of a single round, not an estimate
	Bound                string  // Y is only a bound: [figure.AtMost] or [figure.AtLeast]
}

// At returns a datum whose values are all NaN, since 0 would be a value.
func At(panel, group, series string) Datum {
	nan := math.NaN()
	return Datum{Panel: panel, Group: group, Series: series, X: nan, X2: nan, Y: nan, Lo: nan, Hi: nan}
}

// scale is a unit for display.
type scale struct {
	per  float64 // in the base unit
	name string
}

// Units of times and sizes, smallest first.
var (
	times = []scale{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	sizes = []scale{{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}}
)

// scales are the display units of an axis.
var scales = map[figure.Unit][]scale{
	figure.Nanoseconds: times,
	figure.Bytes:       sizes,
	figure.CPUs:        {{1e-3, "milli-CPUs"}, {1, "CPUs"}},
	figure.BytesPerSec: {{1e6, "MB/s"}},
	figure.PerSecond:   {{1, "1/s"}},
	figure.NsPerByte:   {{1, "ns/byte"}},
}

// scale returns the display unit that fits the largest value, or the geometric middle of the
// values on a logarithmic axis.
func (a Axis) scale(values []float64) scale {
	lo, hi := math.Inf(1), 0.0
	for _, v := range values {
		if v = math.Abs(v); stat.Finite(v) && v > 0 {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	if a.Log && hi > 0 {
		hi = math.Sqrt(lo) * math.Sqrt(hi)
	}
	best := scale{per: 1}
	for i, s := range scales[a.Unit] {
		if i == 0 || hi >= s.per {
			best = s
		}
	}
	return best
}

// title returns the title of the axis with its unit.
func (a Axis) title(s scale) string {
	if s.name == "" {
		return term.Clean(a.Title)
	}
	return strings.TrimSpace(term.Clean(a.Title) + " (" + s.name + ")")
}

// along returns all values of a chart on its X axis or on its Y axis.
func (c *Chart) along(x bool) (values []float64) {
	for i := range c.Data {
		if d := &c.Data[i]; x {
			values = append(values, d.X, d.X2)
		} else {
			values = append(values, d.Y, d.Lo, d.Hi)
		}
	}
	return values
}

// distinct returns the distinct texts of the data in order of appearance.
func distinct(data []Datum, of func(*Datum) string) (all []string) {
	seen := map[string]bool{}
	for i := range data {
		if text := of(&data[i]); !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}

// longestID is the maximum length of a file name or an anchor.
const longestID = 60

// uniqueID converts a text to an unused name of letters, digits and dashes.
func uniqueID(taken map[string]bool, text string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(term.Clean(text)) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
		if b.Len() == longestID {
			break
		}
	}
	name := strings.Trim(b.String(), "-")
	if name == "" {
		name = "part"
	}
	id := name
	for n := 2; taken[id]; n++ {
		id = name + "-" + strconv.Itoa(n)
	}
	taken[id] = true
	return id
}
