// Package figure holds the one type in which anything measured leaves a
// judgement.
//
// An instrument turns its record into figures; every table, chart, export,
// comparison and gate is a projection of them and knows no instrument by name.
// So a sample changes its form three times on its way to a reader: sample (a
// line of the record), figure, cell of a page, text.
package figure

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/stat"
)

// Figure is one quantity of one thing: what it is, what tells it apart, its value
// in every round, and what they come to.
type Figure struct {
	Experiment string    `json:"experiment"`       // the instrument's name: "lifecycle"
	Quantity   string    `json:"quantity"`         // what was measured: "latency"; docs/figures.md lists them
	Unit       Unit      `json:"unit"`             // of Rounds, Estimate and Series
	Better     Direction `json:"better,omitempty"` // whether more or less of it is better; "" where neither is
	Labels     Labels    `json:"labels"`
	Until      string    `json:"-"` // the moment at which a time ends, where records may differ in it

	// Rounds are the values by the number of their round, in its order; none where
	// the figure is of all samples together, such as a quantile of lanes.
	Rounds   []Round    `json:"rounds,omitempty"`
	Estimate `json:"-"` // of them; in JSON an object of its own, see MarshalJSON
	AtMost   bool       `json:"at_most,omitempty"` // the value is known as an upper bound only

	Failed int `json:"failed,omitempty"` // of Total attempts; no value of theirs entered
	Total  int `json:"total,omitempty"`

	Versus *Versus `json:"versus,omitempty"` // against the baseline of the same table

	Verdict string   `json:"verdict,omitempty"` // what the figure is a figure of, where that was judged: "host cache"
	Reasons []string `json:"reasons,omitempty"` // of the verdict, or of why there is no value

	Series *Series `json:"series,omitempty"` // what was sampled over time, in one round
}

// What is known of a value that is a bound only. AtMost is also the verdict on a figure
// that is one, where it has no other.
const (
	AtMost  = "at most"
	AtLeast = "at least"
)

// Bound is [AtMost] where the value is known as that only.
func (f *Figure) Bound() string {
	if f.AtMost {
		return AtMost
	}
	return ""
}

// Direction says which change of a figure is an improvement.
type Direction string

// The directions.
const (
	Less Direction = "less"
	More Direction = "more"
)

// Unit is what a figure counts. Values are always in these base units; a reader's
// units (ms, MiB) are the renderer's business.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Bytes       Unit = "bytes"
	CPUs        Unit = "cpus" // CPU seconds a second
	PerSecond   Unit = "1/s"
	BytesPerSec Unit = "bytes/s"
	Ratio       Unit = "ratio" // of two like quantities; shares are ratios too
	Count       Unit = "count"
	NsPerByte   Unit = "ns/byte"
	Load        Unit = "load"
)

// Label identifies a figure among others: op=create.
type Label struct{ Key, Value string }

// Labels are in the order in which a reader would say them.
type Labels []Label

// Of makes labels of keys and values in turn. A label without a value is left out.
func Of(pairs ...string) Labels {
	labels := make(Labels, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			labels = append(labels, Label{pairs[i], pairs[i+1]})
		}
	}
	return labels
}

// Get returns the value of a key, "" where there is none.
func (l Labels) Get(key string) string {
	for _, label := range l {
		if label.Key == key {
			return label.Value
		}
	}
	return ""
}

// With returns the labels and one more, or another value of one.
func (l Labels) With(key, value string) Labels {
	out := slices.Clone(l)
	for i := range out {
		if out[i].Key == key {
			out[i].Value = value
			return out
		}
	}
	return append(out, Label{key, value})
}

// String is "op=create target=runc".
func (l Labels) String() string {
	parts := make([]string, len(l))
	for i, label := range l {
		parts[i] = label.Key + "=" + label.Value
	}
	return strings.Join(parts, " ")
}

// MarshalJSON writes an object that keeps the order.
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

// Series is a course over time: s since its beginning, and values in the unit.
type Series struct {
	Times  []float64 `json:"times"`
	Values []float64 `json:"values"`
	Missed int       `json:"missed,omitempty"` // samples that came too late to be taken
}

// MarshalJSON leaves out what JSON has no number for: a figure without a value has
// no estimate at all.
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

// Find returns a copy of [Set.Of].
func Find(all []Figure, quantity string, labels ...string) Figure {
	return *Set(all).Of(quantity, labels...)
}
