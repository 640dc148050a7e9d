package app

import (
	"errors"
	"fmt"

	"github.com/tare-bench/tare/record"
)

// TypeWindow is the type of the additional line in records of app.
const TypeWindow record.Type = "window"

// Window is a load on the workload of one target in one round. It has the client's
// results and the state of the node during the load. Times are ns of CLOCK_MONOTONIC.
type Window struct {
	Type      record.Type `json:"type"`
	Round     int         `json:"round" is:"round"` // from 0
	Order     int         `json:"order"`            // position in the round's random order
	Target    string      `json:"target" is:"needed,label,safe"`
	Neighbour string      `json:"neighbour,omitempty" is:"label,kind=neighbour"` // load in a second sandbox; "" for none
	URL       string      `json:"url,omitempty" is:"path"`                       // as requested
	// Start is the time when the start of the workload began, and Ready is the time of
	// the first good answer. Unready is the send time of the last unanswered request
	// before Ready, or 0 if there was none. The workload became ready between Unready and
	// Ready.
	Start   int64 `json:"start,omitempty"`
	Unready int64 `json:"unready,omitempty"`
	Ready   int64 `json:"ready,omitempty" is:"zero,after=start"`
	First   int64 `json:"first,omitempty" is:"span"` // duration of the first answered request
	// Begun and Ended delimit the window, without the warm-up.
	Begun     int64            `json:"begun,omitempty"`
	Ended     int64            `json:"ended,omitempty" is:"zero,after=begun"`
	Sent      *record.Sent     `json:"sent,omitempty"`                // the client's results
	ClientCPU int64            `json:"client_cpu,omitempty" is:"cpu"` // CPU time of the client, ns
	CPUPartly bool             `json:"cpu_partly,omitempty"`          // the usage of some role is unknown and not in Seen
	BesideCPU *int64           `json:"beside_cpu,omitempty" is:"cpu"` // CPU time of the neighbour's sandbox, ns; nil: unknown
	Seen      *record.Observed `json:"seen,omitempty"`                // state of the node; CPU by role is of the workload's sandbox and its target
	// Own is the pressure of the workload's cgroups, and `Beside` that of the neighbour's
	// cgroups. If one is unknown, Unpressed or UnpressedBeside has the reason.
	Own             *Pressure       `json:"own,omitempty"`
	Beside          *Pressure       `json:"beside,omitempty"`
	Unpressed       string          `json:"unpressed,omitempty" is:"label"`
	UnpressedBeside string          `json:"unpressed_beside,omitempty" is:"label"`
	Failure         *record.Failure `json:"failure,omitempty"` // why the window has no figures
}

// Pressure is the share of time in which some task of a cgroup waited (PSI).
type Pressure struct {
	CPU    float64 `json:"cpu" is:"pressure"`
	Memory float64 `json:"memory" is:"pressure"`
	IO     float64 `json:"io" is:"pressure"`
}

// Check returns an error if the window is inconsistent.
func (w *Window) Check() error {
	switch {
	case w.Failure == nil && (w.Sent == nil || w.Seen == nil):
		return errors.New("a window without figures and without a reason why there are none")
	case w.Unready > 0 && w.Ready > 0 && w.Ready < w.Unready:
		return fmt.Errorf("it was ready at %d, and not yet at %d", w.Ready, w.Unready)
	}
	return nil
}
