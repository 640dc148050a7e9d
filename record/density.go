package record

import "fmt"

// TypeDensity is the type of line that only records of "density" have.
const TypeDensity Type = "density"

// Reasons why a visit stopped adding sandboxes.
const (
	EndAsked       = "asked"       // a requested condition other than a resource was reached
	EndResource    = "resource"    // the next sandboxes would probably exceed a resource
	EndTripped     = "tripped"     // a resource fell below its floor
	EndOthers      = "others"      // memory usage grew without a new sandbox
	EndFailure     = "failure"     // a sandbox did not start, or its workload ended
	EndMost        = "most"        // the maximum number of sandboxes was reached
	EndBudget      = "budget"      // the time budget was spent
	EndInterrupted = "interrupted" // the run was interrupted
	EndTrial       = "trial"       // the trial is complete
)

// Density is one visit of a target. It has the number of concurrent sandboxes, the reason to stop,
// and the recovery of the machine after their removal.
type Density struct {
	Type      Type     `json:"type"`
	Round     int      `json:"round" is:"round"`
	Order     int      `json:"order"`
	Target    string   `json:"target" is:"needed,safe"`
	Trial     bool     `json:"trial,omitempty"`                    // a trial with a few sandboxes before the rounds, to estimate how many fit
	Sandboxes int      `json:"sandboxes" is:"max=10000"`           // maximum number of concurrent sandboxes
	Fit       int      `json:"fit,omitempty" is:"processes"`       // in a trial: estimated number of sandboxes that fit
	Why       string   `json:"why" is:"needed,label,safe"`         // EndAsked, EndResource, …
	Resource  string   `json:"resource,omitempty" is:"label,safe"` // name of the limiting resource, one of Rooms
	Detail    string   `json:"detail,omitempty" is:"path,kind=text"`
	Failure   *Failure `json:"failure,omitempty"`
	Rooms     []Room   `json:"rooms" is:"max=16"`                // guarded resources
	Removed   int64    `json:"removed,omitempty" is:"span"`      // time to stop and remove all sandboxes, ns
	Back      int64    `json:"back,omitempty" is:"span,unknown"` // time from the start of the removal until memory had recovered, ns; -1: not within the time limit
	Within    int64    `json:"within,omitempty" is:"bytes"`      // difference from the initial usage that counts as recovered
	Remaining int64    `json:"remaining,omitempty" is:"any"`     // bytes above the initial usage at the last check, without other processes
}

// Room is the available amount of one node resource, in bytes, tasks or inodes.
type Room struct {
	Name   string `json:"name" is:"id,needed,label,safe"` // "memory", "pids", "pids of tare's cgroup", "disk", "inodes"; "disk of docker/runc" and "inodes of docker/runc" for an engine's storage
	Total  int64  `json:"total"`
	Before int64  `json:"before"` // available before the first sandbox
	Least  int64  `json:"least" is:"any"`
	Floor  int64  `json:"floor"` // amount that must stay available
	Spare  int64  `json:"spare"` // reserve above the floor
	Each   int64  `json:"each"`  // largest assumed usage of one more sandbox
}

// Check implements Checker.
func (d *Density) Check() error {
	if d.Why == EndFailure && d.Failure == nil {
		return fmt.Errorf("why is %q without a failure", d.Why)
	}
	return nil
}
