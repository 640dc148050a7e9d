package page

import (
	"math"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Chart is a picture before it is drawn: data and what it tells, without a way to draw
// it. Who makes one knows no renderer, and a renderer knows no instrument.
type Chart struct {
	Name    string // of its files: "makespan"; renderers make it unique
	Title   string
	Caption string // what is seen, for those who cannot see it, too
	Kind    ChartKind
	X, Y    Axis
	Rules   []Rule
	Data    []Datum // more than [MostData] are thinned, which the caption says
}

// MostData is how many points a chart has at most, beside estimates, bars and the ends of
// courses, which all stay.
const MostData = 2000

// ChartKind is how data become a picture.
type ChartKind int

// The kinds. A value that is estimated or summed is Y in all of them, whichever way a
// renderer lays them.
const (
	Intervals  ChartKind = iota // Y with Lo to Hi for each Group and Series; every round's Y as a dot
	Cumulative                  // what share Y, 0 to 1, of a Series is at most X
	Gantt                       // bars from X to X2 in rows of Groups, coloured by Series
	Stacked                     // Y of each Series, one on the other, in each Group; what is left of a total is a Series, too
	Lines                       // Y over X by Series, with a band Lo to Hi where there is one
)

// Axis is what is told along one; of categories it has a title only.
type Axis struct {
	Title string
	Unit  figure.Unit
	Log   bool
}

// Rule is a line across a picture: a published value, a ratio of 1, a limit, a point of
// change.
type Rule struct {
	Value    float64 // of Y
	Text     string
	Vertical bool // the value is one of X
}

// Datum is a point, a bar or an interval.
type Datum struct {
	Panel, Group, Series string  // which of several small pictures, which category, which colour
	X, X2, Y, Lo, Hi     float64 // in the axis's unit; NaN where there is none
	Text                 string  // shown when it is pointed at
	Round                bool    // a single round's value and no estimate
	Bound                string  // Y is no value but at most or at least that: [figure.AtMost], [figure.AtLeast]
}

// At is a datum without any value yet, since 0 would be one.
func At(panel, group, series string) Datum {
	nan := math.NaN()
	return Datum{Panel: panel, Group: group, Series: series, X: nan, X2: nan, Y: nan, Lo: nan, Hi: nan}
}

// scale is a unit in which values read best.
type scale struct {
	per  float64 // of their own unit
	name string
}

// Times and sizes have units from the smallest on.
var (
	times = []scale{{1, "ns"}, {1e3, "µs"}, {1e6, "ms"}, {1e9, "s"}}
	sizes = []scale{{1, "B"}, {1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}}
)

// scales are those of an axis.
func scales(unit figure.Unit) []scale {
	switch unit {
	case figure.Nanoseconds:
		return times
	case figure.Bytes:
		return sizes
	case figure.CPUs:
		return []scale{{1e-3, "milli-CPUs"}, {1, "CPUs"}}
	case figure.BytesPerSec:
		return []scale{{1e6, "MB/s"}}
	case figure.PerSecond:
		return []scale{{1, "1/s"}}
	case figure.NsPerByte:
		return []scale{{1, "ns/byte"}}
	}
	return nil
}

// scale is that of the largest of the values, or where the axis is logarithmic of one
// in their middle.
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
	for i, s := range scales(a.Unit) {
		if i == 0 || hi >= s.per {
			best = s
		}
	}
	return best
}

// title is the axis's with the unit.
func (a Axis) title(s scale) string {
	if s.name == "" {
		return term.Clean(a.Title)
	}
	return strings.TrimSpace(term.Clean(a.Title) + " (" + s.name + ")")
}

// along are all values of a chart on its X, or on its Y.
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

// distinct are the different texts of data, in their order.
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

// longestID is where the name of a file or an anchor is cut.
const longestID = 60

// uniqueID makes a name of letters, digits and dashes, which is not taken yet, of any text.
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
