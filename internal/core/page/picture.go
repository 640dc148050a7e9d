package page

import (
	"math"

	"github.com/tare-bench/tare/internal/core/figure"
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
	Data    []Datum // at most [MostData]: more are thinned by who makes it, which the caption says
}

// MostData is how many points a chart has at most.
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
}

// At is a datum without any value yet, since 0 would be one.
func At(panel, group, series string) Datum {
	nan := math.NaN()
	return Datum{Panel: panel, Group: group, Series: series, X: nan, X2: nan, Y: nan, Lo: nan, Hi: nan}
}
