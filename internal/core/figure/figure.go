// Package figure defines Figure, the common type for all measured results.
//
// An instrument converts its record to figures. Tables, charts, exports, comparisons
// and gates work on figures only and do not depend on any instrument. So a sample has
// four forms: sample (a line of the record), figure, cell of a page, text.
package figure

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Figure is one quantity of one object: its identity, its value in every round, and the
// estimate from these values.
type Figure struct {
	Experiment string    `json:"experiment"`       // the instrument's name: "lifecycle"
	Quantity   string    `json:"quantity"`         // what was measured: "latency"; docs/figures.md lists them
	Unit       Unit      `json:"unit"`             // of Rounds, Estimate and Series
	Better     Direction `json:"better,omitempty"` // "" if neither direction is better
	Labels     Labels    `json:"labels"`
	Until      string    `json:"-"` // the event at which a duration ends, if records differ in it

	// Rounds are the values in the order of their rounds. It is empty if the figure
	// combines all samples, such as a quantile over lanes.
	Rounds   []Round    `json:"rounds,omitempty"`
	Estimate `json:"-"` // of Rounds; a separate object in JSON, see MarshalJSON
	AtMost   bool       `json:"at_most,omitempty"` // Value is only an upper bound

	Failed int `json:"failed,omitempty"` // failed attempts, out of Total; their values are not used
	Total  int `json:"total,omitempty"`

	Versus *Versus `json:"versus,omitempty"` // comparison with the baseline of the same table

	Verdict string   `json:"verdict,omitempty"` // what the figure represents, if that was decided: "host cache"
	Reasons []string `json:"reasons,omitempty"` // reasons for the verdict, or for a missing value

	Series *Series `json:"series,omitempty"` // samples over time, of one round
}

// Kinds of bounds. AtMost is also the verdict of a figure that is an upper bound and has no
// other verdict.
const (
	AtMost  = "at most"
	AtLeast = "at least"
)

// Bound returns [AtMost] if the value is an upper bound, else "".
func (f *Figure) Bound() string {
	if f.AtMost {
		return AtMost
	}
	return ""
}

// Direction is the direction of change that is an improvement.
type Direction string

// The directions.
const (
	Less Direction = "less"
	More Direction = "more"
)

// Unit is the unit of a figure. Values are always in these base units. The renderers convert
// them to units for display (ms, MiB).
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Bytes       Unit = "bytes"
	CPUs        Unit = "cpus" // CPU seconds per second
	PerSecond   Unit = "1/s"
	BytesPerSec Unit = "bytes/s"
	Ratio       Unit = "ratio" // of two quantities of the same unit, and shares
	Count       Unit = "count"
	NsPerByte   Unit = "ns/byte"
	Load        Unit = "load"
)

// Label identifies a figure among others: op=create.
type Label struct{ Key, Value string }

// Labels are ordered for display.
type Labels []Label

// Of returns labels from alternating keys and values. It skips labels with an empty value.
func Of(pairs ...string) Labels {
	labels := make(Labels, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			labels = append(labels, Label{pairs[i], pairs[i+1]})
		}
	}
	return labels
}

// Get returns the value of a key, or "" if the key is missing.
func (l Labels) Get(key string) string {
	for _, label := range l {
		if label.Key == key {
			return label.Value
		}
	}
	return ""
}

// With returns a copy of the labels with the value of key set.
func (l Labels) With(key, value string) Labels {
	out := slices.Clone(l)
	if i := slices.IndexFunc(out, func(l Label) bool { return l.Key == key }); i >= 0 {
		out[i].Value = value
		return out
	}
	return append(out, Label{key, value})
}

// String returns the labels in the form "op=create target=runc".
func (l Labels) String() string {
	parts := make([]string, len(l))
	for i, label := range l {
		parts[i] = label.Key + "=" + label.Value
	}
	return strings.Join(parts, " ")
}

// MarshalJSON writes an object and keeps the order of the labels.
func (l Labels) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, label := range l {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(label.Key)
		if err != nil {
			return nil, fmt.Errorf("label: %w", err)
		}
		value, err := json.Marshal(label.Value)
		if err != nil {
			return nil, fmt.Errorf("label %s: %w", label.Key, err)
		}
		out = append(append(append(out, key...), ':'), value...)
	}
	return append(out, '}'), nil
}

// Round is the value of one round.
type Round struct {
	Round int     `json:"round"`
	Value float64 `json:"value"`
}

// Series is a time series. Times are in seconds since its start.
type Series struct {
	Times  []float64 `json:"times"`
	Values []float64 `json:"values"`
	Missed int       `json:"missed,omitempty"` // samples skipped because they were late
}

// MarshalJSON omits NaN and infinity, which JSON cannot represent. A figure without a value
// has no estimate.
func (f Figure) MarshalJSON() ([]byte, error) {
	type plain Figure
	f.Rounds = slices.DeleteFunc(slices.Clone(f.Rounds), func(r Round) bool { return !stat.Finite(r.Value) })
	if v := f.Versus; v != nil && !(stat.Finite(v.P) && stat.Finite(v.Shift.Value)) {
		f.Versus = nil
	}
	return json.Marshal(struct {
		plain
		Estimate *written `json:"estimate,omitempty"`
	}{plain(f), f.Estimate.orNil()})
}

// Find returns a copy of the figure that [Set.Of] finds.
func Find(all []Figure, quantity string, labels ...string) Figure {
	return *Set(all).Of(quantity, labels...)
}
