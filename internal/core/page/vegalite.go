package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/term"
)

// Types of a specification. Untrusted texts occur in it only as data and titles, never in an
// expression.
type (
	object = map[string]any
	list   = []any
)

// palette has colours that remain distinct for colour-blind readers. Their contrast with both
// the white and the dark page is at least 3:1.
var palette = []string{"#2f7dc0", "#cf5a1e", "#2b9162", "#a9569f", "#8f7a1d", "#7a6bd1", "#c2476b", "#3b8f9f", "#858585", "#6d8b2c"}

// amber is the colour of waits, which belong to no component.
const amber = "#b8860b"

// vegaLite returns the chart with its data as a Vega-Lite 6 specification, for the HTML page,
// Vega's editor and Altair. usermeta.gutter is the width of the category names in pixels.
// colours has the colours of series in earlier charts. A series keeps its colour unless another
// series of this chart already has it.
func (c *Chart) vegaLite(colours map[string]string) map[string]any {
	v := vega{Chart: c, colours: colours, x: c.X.scale(c.along(true)), y: c.Y.scale(c.along(false)),
		panels: distinct(c.Data, func(d *Datum) string { return vegaName(d.Panel) }),
		groups: distinct(c.Data, func(d *Datum) string { return vegaName(d.Group) }),
		series: distinct(c.Data, func(d *Datum) string { return vegaName(d.Series) })}
	spec := map[ChartKind]func() object{Intervals: v.intervals, Cumulative: v.cumulative, Gantt: v.gantt, Stacked: v.stacked, Lines: v.lines}[c.Kind]()
	spec["layer"] = append(spec["layer"].(list), v.rules()...)
	top := object{
		"$schema":     "https://vega.github.io/schema/vega-lite/v6.json",
		"title":       term.Clean(c.Title),
		"description": term.Clean(c.Caption),
		"background":  "white",
		"config":      v.config(),
		"data":        object{"values": v.values()},
		"usermeta":    object{"gutter": v.gutter()},
	}
	into := top
	if len(v.panels) > 1 {
		into = object{}
		top["facet"] = object{"field": "panel", "type": "nominal", "sort": v.panels, "title": nil, "header": object{"labelAnchor": "start", "labelFontWeight": 600}}
		top["columns"], top["spec"] = 2, into
		// All panels share their categories. In a Gantt chart they also share the time axis.
		own := map[ChartKind]object{Intervals: {"x": "independent"}, Stacked: {"x": "independent"}, Gantt: {}, Cumulative: {"x": "independent"}, Lines: {"x": "independent", "y": "independent"}}[c.Kind]
		top["resolve"] = object{"scale": own, "axis": object{"x": "independent", "y": "independent"}}
	}
	into["width"] = 640 / min(max(len(v.panels), 1), 2)
	maps.Copy(into, spec)
	return top
}

// config returns the common style of all charts. The legend has as many columns as fit.
func (v *vega) config() object {
	return object{
		"font": "system-ui, sans-serif",
		"view": object{"stroke": nil},
		// Vega-Lite would turn each mark's label into an expression, in which the \ of a title
		// is an escape. The data table has the same content.
		"mark":             object{"aria": false},
		"axis":             object{"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "gridColor": "#dddddd", "domainColor": "#999999", "tickColor": "#999999", "titleColor": "#444444", "labelColor": "#444444"},
		"axisQuantitative": object{"tickCount": 7},
		"legend":           object{"orient": "top", "title": nil, "labelFontSize": 11, "symbolType": "circle", "symbolOpacity": 1, "labelLimit": 240, "columns": 640 / pixels(v.series, 34, 270)},
		"header":           object{"labelFontSize": 12},
		"title":            object{"anchor": "start", "fontSize": 14},
		"range":            object{"category": palette},
	}
}

// vega has the intermediate data for the specification of a chart.
type vega struct {
	*Chart
	x, y                   scale
	panels, groups, series []string
	colours                map[string]string
}

// row is a datum in the units of the axes.
type row struct {
	Panel  string   `json:"panel,omitempty"`
	Group  string   `json:"group,omitempty"`
	Series string   `json:"series,omitempty"`
	Order  int      `json:"order"` // index of the series, from 1
	X      *float64 `json:"x,omitempty"`
	X2     *float64 `json:"x2,omitempty"`
	Y      *float64 `json:"y,omitempty"`
	Lo     *float64 `json:"lo,omitempty"`
	Hi     *float64 `json:"hi,omitempty"`
	Round  bool     `json:"round,omitempty"`
	Bound  string   `json:"bound"`
	Text   string   `json:"text"`
}

func (v *vega) values() []row {
	order := map[string]int{}
	for i, s := range v.series {
		order[s] = i + 1
	}
	in := func(value float64, s scale) *float64 {
		if !stat.Finite(value) {
			return nil
		}
		value /= s.per
		return &value
	}
	out := make([]row, len(v.Data))
	for i := range v.Data {
		d := &v.Data[i]
		out[i] = row{Panel: vegaName(d.Panel), Group: vegaName(d.Group), Series: vegaName(d.Series), Order: order[vegaName(d.Series)],
			X: in(d.X, v.x), X2: in(d.X2, v.x), Y: in(d.Y, v.y), Lo: in(d.Lo, v.y), Hi: in(d.Hi, v.y), Round: d.Round, Bound: d.Bound, Text: v.told(d)}
	}
	return out
}

// inherited are the properties of every JavaScript object. Vega 6 stores categories as
// properties and would consider these to exist already.
var inherited = []string{"constructor", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString", "toString", "valueOf",
	"__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__", "__proto__"}

// vegaName cleans a name for Vega. A no-break space makes it different from an inherited
// property.
func vegaName(name string) string {
	name = term.Clean(name)
	if slices.Contains(inherited, name) {
		name += "\u00a0"
	}
	return name
}

// told returns the tooltip of a datum.
func (c *Chart) told(d *Datum) string {
	x, y := func(v float64) string { return Text(v, c.X.Unit) }, func(v float64) string { return Text(v, c.Y.Unit) }
	between := ""
	if stat.Finite(d.Lo) && stat.Finite(d.Hi) {
		between = " [" + y(d.Lo) + ", " + y(d.Hi) + "]"
	}
	what := ""
	switch {
	case c.Kind == Gantt:
		what = fmt.Sprintf("%s, from %s to %s", x(d.X2-d.X), x(d.X), x(d.X2))
	case c.Kind == Cumulative:
		what = Share(d.Y) + " ≤ " + x(d.X)
	case c.Kind == Lines:
		what = strings.TrimSpace(c.X.Title+" "+x(d.X)) + ": " + signs[d.Bound] + y(d.Y) + between
	case d.Round:
		what = "one round: " + signs[d.Bound] + y(d.Y)
	default:
		what = signs[d.Bound] + y(d.Y) + between
	}
	return strings.Join(Filled(term.Clean(Dotted(d.Panel, d.Group, d.Series)), term.Clean(what), term.Clean(d.Text)), "\n")
}

// Maximum width of the category names and approximate width of a character, in pixels.
const (
	widestGutter = 260
	perCharacter = 6.4
)

func (v *vega) gutter() int { return pixels(v.groups, 12, widestGutter) }

// pixels returns the width of the longest name plus a margin, up to a maximum.
func pixels(names []string, beside, most int) int {
	longest := 0
	for _, name := range names {
		longest = max(longest, utf8.RuneCountInString(name))
	}
	return min(int(perCharacter*float64(longest))+beside, most)
}

// quantity returns an encoding channel for values.
func quantity(field string, a Axis, s scale) object {
	out := object{"field": field, "type": "quantitative", "title": a.title(s)}
	if a.Log {
		out["scale"] = object{"type": "log"}
	}
	return out
}

// logarithmic returns an axis with the marks 1, 2, 5, 10, …. Above two decades it has the marks
// 1, 10, ….
func (v *vega) logarithmic() object {
	lo, hi := math.Inf(1), 0.0
	for _, value := range v.along(false) {
		if value > 0 && stat.Finite(value) {
			lo, hi = min(lo, value/v.y.per), max(hi, value/v.y.per)
		}
	}
	steps := []float64{1, 2, 5}
	if hi > 100*lo {
		steps = steps[:1]
	}
	var marks list
	for power := math.Floor(math.Log10(lo)); hi > 0 && power <= math.Ceil(math.Log10(hi)); power++ {
		for _, n := range steps {
			if mark := n * math.Pow(10, power); mark > 0 && stat.Finite(mark) {
				marks = append(marks, mark)
			}
		}
	}
	return object{"values": marks, "format": "~r"}
}

// category returns the encoding channel for groups, one below the other.
func (v *vega) category() object {
	return object{"field": "group", "type": "ordinal", "scale": object{"domain": v.groups}, "title": nil, "axis": object{"grid": false, "ticks": false, "domain": false, "labelPadding": 6, "labelLimit": widestGutter}}
}

// colour returns the colour channel. A single series has a fixed colour.
func (v *vega) colour() object {
	if len(v.series) < 2 {
		return object{"value": palette[0]}
	}
	var colours []string
	for _, s := range v.series {
		colours = append(colours, v.free(s, colours))
	}
	return object{"field": "series", "type": "nominal", "title": nil, "scale": object{"domain": v.series, "range": colours}}
}

// free returns the colour of a series: its colour in earlier charts, or else the least common
// one. It avoids the colours in used.
func (v *vega) free(series string, used []string) string {
	if series == waiting {
		return amber
	}
	if had := v.colours[series]; had != "" && !slices.Contains(used, had) {
		return had
	}
	best, least := palette[len(used)%len(palette)], len(v.colours)+1
	for _, one := range palette {
		n := 0
		for _, taken := range v.colours {
			if taken == one {
				n++
			}
		}
		if n < least && !slices.Contains(used, one) {
			best, least = one, n
		}
	}
	v.colours[series] = best
	return best
}

// ends returns the shapes of values. The triangle of a bound points towards the actual value.
func ends(less, more string) object {
	return object{"field": "bound", "type": "nominal", "legend": nil, "scale": object{"domain": list{"", figure.AtMost, figure.AtLeast}, "range": list{"circle", "triangle-" + less, "triangle-" + more}}}
}

// pointed returns the tooltip of a mark.
func pointed() object { return object{"field": "text", "type": "nominal"} }

// intervals draws each estimate and, in a lane below it, the estimate's rounds.
func (v *vega) intervals() object {
	// A lane for each series is useful only if a group has several.
	n, of := 1, map[Datum][]string{}
	for i := range v.Data {
		d := &v.Data[i]
		at := Datum{Panel: d.Panel, Group: d.Group}
		if !slices.Contains(of[at], d.Series) {
			of[at] = append(of[at], d.Series)
		}
		n = max(n, len(of[at]))
	}
	which := "(datum.round ? 1 : 0)"
	if n > 1 {
		n, which = len(v.series), "2 * (datum.order - 1) + "+which
	}
	var lanes list
	for i := range 2 * n {
		lanes = append(lanes, i)
	}
	with := func(mark object, filter string, channels object) object {
		channels["y"], channels["color"], channels["tooltip"] = v.category(), v.colour(), pointed()
		channels["yOffset"] = object{"field": "lane", "type": "nominal", "scale": object{"domain": lanes}}
		return object{"mark": mark, "encoding": channels, "transform": list{object{"filter": filter}}}
	}
	value, lo := quantity("y", v.Y, v.y), quantity("lo", v.Y, v.y)
	if v.Y.Log {
		value["axis"] = v.logarithmic()
	}
	return object{
		"transform": list{object{"calculate": which, "as": "lane"}},
		"height":    object{"step": 12 + 11*n, "for": "position"},
		"layer": list{
			with(object{"type": "circle", "size": 16, "opacity": 0.5}, "datum.round", object{"x": value}),
			with(object{"type": "rule", "strokeWidth": 3, "opacity": 0.75}, "!datum.round && isValid(datum.lo)", object{"x": lo, "x2": object{"field": "hi"}}),
			with(object{"type": "point", "filled": true, "size": 80, "opacity": 1}, "!datum.round", object{"x": value, "shape": ends("left", "right")}),
		},
	}
}

func (v *vega) stacked() object {
	return object{"height": object{"step": 26}, "layer": list{object{
		"mark": object{"type": "bar", "height": object{"band": 0.75}},
		"encoding": object{"y": v.category(), "x": quantity("y", v.Y, v.y), "color": v.colour(), "tooltip": pointed(),
			"order": object{"field": "order", "type": "quantitative"}},
	}}}
}

// shape adds dashes to the colour of a series, since prints may have no colours.
func (v *vega) shape(channels object) object {
	channels["color"] = v.colour()
	if len(v.series) > 1 {
		channels["strokeDash"] = object{"field": "series", "type": "nominal", "title": nil, "scale": object{"domain": v.series}}
	}
	return channels
}

func (v *vega) cumulative() object {
	x, y := quantity("x", v.X, v.x), quantity("y", v.Y, scale{})
	y["axis"] = object{"format": "%"}
	y["scale"] = object{"domain": list{0, 1}}
	return object{"height": 240, "layer": list{
		object{"mark": object{"type": "line", "interpolate": "step-after", "strokeWidth": 1.8, "clip": true}, "encoding": v.shape(object{"x": x, "y": y})},
		object{"mark": object{"type": "circle", "size": 60, "opacity": 0}, "encoding": object{"x": x, "y": y, "color": v.colour(), "tooltip": pointed()}},
	}}
}

// fewMarks is the maximum number of points at which an axis has a mark for every point.
const fewMarks = 8

func (v *vega) lines() object {
	x, y, lo := quantity("x", v.X, v.x), quantity("y", v.Y, v.y), quantity("lo", v.Y, v.y)
	x["scale"] = object{"zero": false, "nice": false}
	var marks []float64
	for i := range v.Data {
		if at := v.Data[i].X / v.x.per; stat.Finite(at) && !slices.Contains(marks, at) && len(marks) <= fewMarks {
			marks = append(marks, at)
		}
	}
	if len(marks) <= fewMarks {
		x["axis"] = object{"values": marks, "labelOverlap": true}
	}
	if least, most := Range(v.along(false)); least > most/2 && !v.Y.Log {
		y["scale"] = object{"zero": false}
	}
	return object{"height": 240, "layer": list{
		object{"mark": object{"type": "area", "opacity": 0.18}, "encoding": object{"x": x, "y": lo, "y2": object{"field": "hi"}, "color": v.colour()},
			"transform": list{object{"filter": "isValid(datum.lo) && !datum.round"}}},
		object{"mark": object{"type": "line", "strokeWidth": 1.8}, "encoding": v.shape(object{"x": x, "y": y}), "transform": list{object{"filter": "!datum.round"}}},
		object{"mark": object{"type": "point", "filled": true, "opacity": 0.9}, "encoding": object{"x": x, "y": y, "color": v.colour(), "shape": ends("down", "up"), "tooltip": pointed(),
			"size": object{"condition": list{object{"test": "datum.round", "value": 14}, object{"test": "datum.bound", "value": 90}}, "value": 28}}},
	}}
}

// Height of a row and maximum height of a Gantt chart, in pixels.
const (
	ganttRow    = 18
	ganttHeight = 480
)

// gantt draws a chart that can be zoomed. The page's buttons and Vega's editor use "zoom".
func (v *vega) gantt() object {
	y := v.category()
	y["axis"].(object)["labelAlign"], y["axis"].(object)["labelPadding"] = "left", v.gutter()
	y["axis"].(object)["labelOverlap"] = true
	x := quantity("x", v.X, v.x)
	x["scale"] = object{"nice": false, "zero": true}
	return object{"height": object{"step": max(min(ganttRow, ganttHeight/max(len(v.groups), 1)), 2)}, "layer": list{object{
		"mark": object{"type": "bar", "clip": true, "height": object{"band": 0.7}, "strokeWidth": 1},
		"encoding": object{"y": y, "x": x, "x2": object{"field": "x2"}, "color": v.colour(), "tooltip": pointed(),
			"stroke": v.colour()}, // a stroke keeps short bars visible
		"params": list{object{"name": "zoom", "bind": "scales", "select": object{"type": "interval", "encodings": list{"x"}, "zoom": "wheel![event.ctrlKey]"}}},
	}}}
}

// upright reports whether a rule is vertical. In Intervals and Stacked charts Y is horizontal,
// so its rules are vertical.
func (v *vega) upright(r *Rule) bool {
	return r.Vertical || v.Kind == Intervals || v.Kind == Stacked
}

func (v *vega) rules() (layers list) {
	for i, r := range v.Rules {
		if slices.ContainsFunc(v.Rules, func(o Rule) bool { return o.Text == r.Text && o != v.Rules[i] }) {
			r.Text = "" // rules with the same text are close together, such as both ends of a margin
		}
		s := v.y
		if r.Vertical {
			s = v.x
		}
		of, at, place := "y", "x", object{"value": 2}
		text := object{"type": "text", "align": "left", "baseline": "bottom", "dx": 3, "dy": -2, "fontSize": 11, "clip": false}
		if v.upright(&r) {
			of, at, place = "x", "y", object{"value": 0}
			if _, hi := Range(v.along(r.Vertical)); r.Value > hi/2 {
				text["align"], text["dx"] = "right", 0 // no room on the right
			}
		}
		data := object{"values": list{object{"at": r.Value / s.per, "text": term.Clean(r.Text)}}}
		channel := object{"field": "at", "type": "quantitative"}
		layers = append(layers,
			object{"data": data, "mark": object{"type": "rule", "strokeDash": list{4, 3}, "color": "#777777", "clip": true}, "encoding": object{of: channel, "tooltip": pointed()}},
			object{"data": data, "mark": text, "encoding": object{of: channel, at: place, "text": object{"field": "text"}}})
	}
	return layers
}

// dataBlock encodes a value as JSON that cannot close an HTML element.
func dataBlock(v any) (string, error) {
	text, err := json.Marshal(v) // escapes <, > and &
	if err != nil {
		return "", fmt.Errorf("marshal page data: %w", err)
	}
	return string(term.CleanJSON(text)), nil
}
