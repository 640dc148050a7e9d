package app

import (
	"errors"
	"fmt"

	"github.com/tare-bench/tare/record"
)

// TypeWindow is the line that a record of "app" holds besides those that all records
// have.
const TypeWindow record.Type = "window"

// Window is a load on the workload of one target in one round: what the client says of
// it, and what was seen of the node meanwhile. Times are ns of CLOCK_MONOTONIC.
type Window struct {
	Type      record.Type `json:"type"`
	Round     int         `json:"round" is:"round"` // from 0
	Order     int         `json:"order"`            // its place in the round's random order
	Target    string      `json:"target" is:"needed,label,safe"`
	Neighbour string      `json:"neighbour,omitempty" is:"label,kind=neighbour"` // what worked beside in a sandbox of its own; "" for nothing
	URL       string      `json:"url,omitempty" is:"path"`                       // as it was asked
	// Start is when the workload's start was begun, Ready when its first good answer had
	// come, and Unready when the last request was sent before that had none, 0 where
	// there was no such: the answer came between the two.
	Start   int64 `json:"start,omitempty"`
	Unready int64 `json:"unready,omitempty"`
	Ready   int64 `json:"ready,omitempty" is:"zero,after=start"`
	First   int64 `json:"first,omitempty" is:"span"` // of the first request alone, from when it was sent
	// Begun and Ended are those of the window, without the warm-up.
	Begun     int64            `json:"begun,omitempty"`
	Ended     int64            `json:"ended,omitempty" is:"zero,after=begun"`
	Sent      *record.Sent     `json:"sent,omitempty"`                // what the client says
	ClientCPU int64            `json:"client_cpu,omitempty" is:"cpu"` // ns that it used for that
	CPUPartly bool             `json:"cpu_partly,omitempty"`          // what some role with processes used is not known, and is not in Seen
	BesideCPU *int64           `json:"beside_cpu,omitempty" is:"cpu"` // ns that the neighbour's sandbox used meanwhile, all of it; nil: not known
	Seen      *record.Observed `json:"seen,omitempty"`                // of the node; CPU by role is that of the workload's own sandbox and its target
	// Own and Beside are what the cgroups of the workload and of the neighbour waited;
	// Unpressed and UnpressedBeside say why there is no such figure.
	Own             *Pressure       `json:"own,omitempty"`
	Beside          *Pressure       `json:"beside,omitempty"`
	Unpressed       string          `json:"unpressed,omitempty" is:"label"`
	UnpressedBeside string          `json:"unpressed_beside,omitempty" is:"label"`
	Failure         *record.Failure `json:"failure,omitempty"` // why it gives no figures
}

// Pressure is for which share of a time some task of a cgroup waited (PSI).
type Pressure struct {
	CPU    float64 `json:"cpu" is:"pressure"`
	Memory float64 `json:"memory" is:"pressure"`
	IO     float64 `json:"io" is:"pressure"`
}

// Check says whether the window can have been.
func (w *Window) Check() error {
	switch {
	case w.Failure == nil && (w.Sent == nil || w.Seen == nil):
		return errors.New("a window without figures and without a reason why there are none")
	case w.Unready > 0 && w.Ready > 0 && w.Ready < w.Unready:
		return fmt.Errorf("it was ready at %d, and not yet at %d", w.Ready, w.Unready)
	}
	return nil
}
