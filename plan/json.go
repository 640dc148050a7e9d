package plan

import (
	"encoding/json"
	"fmt"
	"time"
)

// A record and a plan file write a lifecycle in the same words: durations as
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
	read := lifecycleJSON{plainLifecycle: new(plainLifecycle)}
	if err := json.Unmarshal(text, &read); err != nil {
		return err
	}
	for _, d := range []struct {
		field string
		text  string
		into  *time.Duration
	}{{"budget", read.Budget, &read.plainLifecycle.Budget}, {"timeout", read.Timeout, &read.plainLifecycle.Timeout}} {
		if d.text == "" {
			continue
		}
		var err error
		if *d.into, err = parseDuration(d.text); err != nil {
			return fmt.Errorf("%s: %w", d.field, err)
		}
	}
	*l = Lifecycle(*read.plainLifecycle)
	return nil
}
