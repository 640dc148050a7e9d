package record

import "fmt"

// TypeDensity is the line that a record of "density" holds besides those that all records
// have, batches and readings.
const TypeDensity Type = "density"

// Why a visit of density added no more sandboxes.
const (
	EndAsked       = "asked"       // the end that was asked for was reached, but for a resource
	EndResource    = "resource"    // the next sandboxes were expected to take what has to be left
	EndTripped     = "tripped"     // what has to be left was touched, and no more was begun at once
	EndOthers      = "others"      // memory was taken though nothing was started
	EndFailure     = "failure"     // a sandbox did not start, or its workload ended by itself
	EndMost        = "most"        // as many were there as may be at most
	EndBudget      = "budget"      // the time was spent
	EndInterrupted = "interrupted" // the run was told to stop
	EndTrial       = "trial"       // a trial is over
)

// Density is how far one visit of a target went: how many sandboxes were there at once,
// why there were no more, and how the machine came back once they were removed.
type Density struct {
	Type      Type     `json:"type"`
	Round     int      `json:"round" is:"round"`
	Order     int      `json:"order"`
	Target    string   `json:"target" is:"needed,safe"`
	Trial     bool     `json:"trial,omitempty"`                    // a few sandboxes before the rounds, from which it is told how far it will go
	Sandboxes int      `json:"sandboxes" is:"max=10000"`           // the most that were there at once
	Fit       int      `json:"fit,omitempty" is:"processes"`       // of a trial: how many are expected
	Why       string   `json:"why" is:"needed,label,safe"`         // EndAsked, EndResource, …
	Resource  string   `json:"resource,omitempty" is:"label,safe"` // that bounds it: a name among Rooms
	Detail    string   `json:"detail,omitempty" is:"path,kind=text"`
	Failure   *Failure `json:"failure,omitempty"`
	Rooms     []Room   `json:"rooms" is:"max=16"`                // what was guarded
	Removed   int64    `json:"removed,omitempty" is:"span"`      // ns that ending and removing all of them took
	Back      int64    `json:"back,omitempty" is:"span,unknown"` // ns from the beginning of that until memory was back; -1: not in the time that was given
	Within    int64    `json:"within,omitempty" is:"bytes"`      // of what was used before counts as back
	Remaining int64    `json:"remaining,omitempty" is:"any"`     // bytes that were used more than before when it was last looked, others' change taken off
}

// Room is how much there is of one resource of the node: bytes, tasks, or inodes.
type Room struct {
	Name   string `json:"name" is:"id,needed,label,safe"` // "memory", "pids", "pids of tare's cgroup", "disk", "inodes", "disk of docker/runc", "inodes of docker/runc": of what its engine stores
	Total  int64  `json:"total"`
	Before int64  `json:"before"` // left before the first sandbox
	Least  int64  `json:"least" is:"any"`
	Floor  int64  `json:"floor"` // what has to be left
	Spare  int64  `json:"spare"` // what was kept above it, for what could not be foreseen
	Each   int64  `json:"each"`  // the most that one more sandbox was taken to cost
}

// Check says whether the visit can have happened.
func (d *Density) Check() error {
	if d.Why == EndFailure && d.Failure == nil {
		return fmt.Errorf("it ended by a failure, and there is none")
	}
	return nil
}
