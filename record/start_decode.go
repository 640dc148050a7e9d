package record

import (
	"cmp"
	"encoding/json"
	"fmt"
)

// How much a start can have.
const (
	MaxStartProcesses  = 4096
	MaxStartSpans      = 4096
	maxStartBusy       = 4 * MaxStartProcesses
	maxStartGaps       = 256
	maxStartGuests     = 64
	maxStartMissing    = 64
	maxStartClaims     = 64
	maxStartContainers = 256
)

// startLine is a Start whose lists are counted while they are read, for the
// reason that a batchLine's are.
type startLine struct {
	Start
	Processes  json.RawMessage `json:"processes"`
	Busy       json.RawMessage `json:"busy"`
	Spans      json.RawMessage `json:"spans"`
	Gaps       json.RawMessage `json:"gaps"`
	Guests     json.RawMessage `json:"guests"`
	Missing    json.RawMessage `json:"missing"`
	Claims     json.RawMessage `json:"claims"`
	Containers json.RawMessage `json:"containers"`
}

func (l *startLine) take() error {
	return cmp.Or(
		bounded(l.Processes, "processes", MaxStartProcesses, &l.Start.Processes), bounded(l.Busy, "busy", maxStartBusy, &l.Start.Busy),
		bounded(l.Spans, "spans", MaxStartSpans, &l.Start.Spans), bounded(l.Gaps, "gaps", maxStartGaps, &l.Start.Gaps),
		bounded(l.Guests, "guests", maxStartGuests, &l.Start.Guests), bounded(l.Missing, "missing", maxStartMissing, &l.Start.Missing),
		bounded(l.Claims, "claims", maxStartClaims, &l.Start.Claims), bounded(l.Containers, "containers", maxStartContainers, &l.Start.Containers),
	)
}

// bounded decodes a list that is not longer than an honest one.
func bounded[T any](text json.RawMessage, name string, most int, into *[]T) error {
	if len(text) == 0 {
		return nil
	}
	return eachOf(text, name, func(decoder *json.Decoder) error {
		if len(*into) == most {
			return fmt.Errorf("more than %d %s in one start", most, name)
		}
		*into = append(*into, *new(T))
		return decoder.Decode(&(*into)[len(*into)-1])
	})
}
