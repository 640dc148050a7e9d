package record

import "fmt"

// TypeDensity is a type of line in a record of "density" only.
const TypeDensity Type = "density"

// Reasons why a visit of density added no more sandboxes.
const (
	EndAsked       = "asked"       // the requested end other than a resource was reached
	EndResource    = "resource"    // the next sandboxes were expected to exceed a resource
	EndTripped     = "tripped"     // a resource fell below its floor
	EndOthers      = "others"      // memory use grew without a start
	EndFailure     = "failure"     // a sandbox did not start, or its workload ended
	EndMost        = "most"        // the largest allowed number was reached
	EndBudget      = "budget"      // the time budget was spent
	EndInterrupted = "interrupted" // the run was interrupted
	EndTrial       = "trial"       // a trial is over
)

// Density is one visit of a target: how many sandboxes ran at once, why it added no more,
// and how the machine recovered after their removal.
type Density struct {
	Type      Type     `json:"type"`
	Round     int      `json:"round" is:"round"`
	Order     int      `json:"order"`
	Target    string   `json:"target" is:"needed,safe"`
	Trial     bool     `json:"trial,omitempty"`                    // a few sandboxes before the rounds, to estimate how many fit
	Sandboxes int      `json:"sandboxes" is:"max=10000"`           // the most at once
	Fit       int      `json:"fit,omitempty" is:"processes"`       // in a trial: the estimate
	Why       string   `json:"why" is:"needed,label,safe"`         // EndAsked, EndResource, …
	Resource  string   `json:"resource,omitempty" is:"label,safe"` // the limiting resource: a name among Rooms
	Detail    string   `json:"detail,omitempty" is:"path,kind=text"`
	Failure   *Failure `json:"failure,omitempty"`
	Rooms     []Room   `json:"rooms" is:"max=16"`                // the guarded resources
	Removed   int64    `json:"removed,omitempty" is:"span"`      // ns to end and remove all sandboxes
	Back      int64    `json:"back,omitempty" is:"span,unknown"` // ns from the begin of the removal until memory had recovered; -1: not within the time limit
	Within    int64    `json:"within,omitempty" is:"bytes"`      // the deviation from before that counts as recovered
	Remaining int64    `json:"remaining,omitempty" is:"any"`     // bytes above the usage before at the last look, without other processes
}

// Room is the remainder of one resource of the node: bytes, tasks or inodes.
type Room struct {
	Name   string `json:"name" is:"id,needed,label,safe"` // "memory", "pids", "pids of tare's cgroup", "disk", "inodes"; "disk of docker/runc" and "inodes of docker/runc" for an engine's storage
	Total  int64  `json:"total"`
	Before int64  `json:"before"` // left before the first sandbox
	Least  int64  `json:"least" is:"any"`
	Floor  int64  `json:"floor"` // the amount that must be left
	Spare  int64  `json:"spare"` // the reserve above the floor
	Each   int64  `json:"each"`  // the largest assumed cost of one more sandbox
}

// Check implements Checker.
func (d *Density) Check() error {
	if d.Why == EndFailure && d.Failure == nil {
		return fmt.Errorf("why is %q without a failure", d.Why)
	}
	return nil
}
