package plan

import (
	"encoding/json"
	"fmt"
	"time"
)

// A record and a plan file write an experiment in the same words: durations as
// "10m", so that the plan of a record is a plan file.

type plainLifecycle Lifecycle

type lifecycleJSON struct {
	*plainLifecycle
	Budget  string `json:"budget"`
	Timeout string `json:"timeout"`
}

// MarshalJSON writes durations as text.
func (l Lifecycle) MarshalJSON() ([]byte, error) {
	if l.Targets == nil {
		l.Targets = []string{} // null would be no list to a reader
	}
	return json.Marshal(lifecycleJSON{(*plainLifecycle)(&l), formatDuration(l.Budget), formatDuration(l.Timeout)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (l *Lifecycle) UnmarshalJSON(text []byte) error {
	plain := new(plainLifecycle)
	read := lifecycleJSON{plainLifecycle: plain}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if err := parseDurations([]durationText{
		{"budget", read.Budget, &plain.Budget}, {"timeout", read.Timeout, &plain.Timeout},
	}); err != nil {
		return err
	}
	*l = Lifecycle(*plain)
	return nil
}

type plainOverhead Overhead

type overheadJSON struct {
	*plainOverhead
	Hold     string `json:"hold"`
	Interval string `json:"interval"`
	Settle   string `json:"settle"`
	Budget   string `json:"budget"`
	Timeout  string `json:"timeout"`
	Patience string `json:"patience"`
}

// MarshalJSON writes durations as text.
func (o Overhead) MarshalJSON() ([]byte, error) {
	if o.Targets == nil {
		o.Targets = []string{}
	}
	return json.Marshal(overheadJSON{
		(*plainOverhead)(&o), formatDuration(o.Hold), formatDuration(o.Interval), formatDuration(o.Settle),
		formatDuration(o.Budget), formatDuration(o.Timeout), formatDuration(o.Patience),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Overhead) UnmarshalJSON(text []byte) error {
	plain := new(plainOverhead)
	read := overheadJSON{plainOverhead: plain}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	if err := parseDurations([]durationText{
		{"hold", read.Hold, &plain.Hold}, {"interval", read.Interval, &plain.Interval}, {"settle", read.Settle, &plain.Settle},
		{"budget", read.Budget, &plain.Budget}, {"timeout", read.Timeout, &plain.Timeout}, {"patience", read.Patience, &plain.Patience},
	}); err != nil {
		return err
	}
	*o = Overhead(*plain)
	return nil
}

type durationText struct {
	field string
	text  string
	into  *time.Duration
}

// parseDurations leaves what has no text as it is.
func parseDurations(all []durationText) error {
	for _, d := range all {
		if d.text == "" {
			continue
		}
		var err error
		if *d.into, err = parseDuration(d.text); err != nil {
			return fmt.Errorf("%s: %w", d.field, err)
		}
	}
	return nil
}
