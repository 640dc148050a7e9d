package record

import (
	"errors"
	"fmt"
	"time"
)

// TypeBatch is the line that a record of "lifecycle" holds besides those that all
// records have.
const TypeBatch Type = "batch"

// MaxLanes is the most lanes a batch of a record can have.
const MaxLanes = 10_000

// DroppedNode says that the page cache, dentries and inodes of the whole node were dropped
// before something was timed: all that the kernel gives up, so not what is mapped.
const DroppedNode = "node"

// Phase tells measured batches from those that are not counted.
type Phase string

// The phases of a run.
const (
	PhaseWarmup  Phase = "warmup"
	PhaseMeasure Phase = "measure"
)

// Batch is one release of N lanes of one operation on one target.
type Batch struct {
	Type     Type     `json:"type"`
	Phase    Phase    `json:"phase" is:"needed,one=warmup|measure"`
	Round    int      `json:"round" is:"round"` // from 0; warm-up rounds count on their own
	Order    int      `json:"order"`            // this target's place in the round's random order
	Target   string   `json:"target" is:"needed,safe"`
	Op       string   `json:"op" is:"needed,safe"`
	Lanes    int      `json:"lanes" is:"min=1,max=10000"`      // N as planned
	Released int64    `json:"released"`                        // ns, taken just before the release
	Samples  []Sample `json:"samples" is:"max=10000"`          // one per lane that was released
	Lost     int      `json:"lost,omitempty"`                  // lanes not released because an earlier operation of theirs failed
	Dropped  string   `json:"dropped,omitempty" is:"one=node"` // page cache that was dropped before the release, see [DroppedNode]; "" none
	OwnCPU   int64    `json:"own_cpu,omitempty"`               // ns of CPU that tare and its lanes used in the batch
	Roles    []Usage  `json:"roles,omitempty" is:"max=64"`     // what the target's own processes used, by role

	// Of a batch that was imported from what another tool told. It knows durations
	// only: Released and Start are 1.
	Source   string   `json:"source,omitempty" is:"place"` // file and line, or place in it
	Unproven bool     `json:"unproven,omitempty"`          // whether operations failed cannot be known: the format has no word for it
	Summary  *Summary `json:"summary,omitempty"`           // what the tool told of several operations together; then there are no samples
}

// Summary is what a tool told of several operations of which it keeps no single time.
// What it does not tell is 0.
type Summary struct {
	Count   int64   `json:"count" is:"min=1"`
	Failed  int64   `json:"failed,omitempty"`
	Mean    int64   `json:"mean,omitempty" is:"span"`       // ns, of one operation
	Trimmed int64   `json:"trimmed,omitempty" is:"span"`    // ns, without the shortest and the longest
	Seconds float64 `json:"seconds,omitempty" is:"seconds"` // of the whole run, in which any number were under way at once
}

// Sample is one timed operation. Times are ns of CLOCK_MONOTONIC, zero where
// the operation has no such stamp.
type Sample struct {
	Lane     int      `json:"lane" is:"id"`      // from 0
	Start    int64    `json:"start"`             // the call was about to be made
	Spawned  int64    `json:"spawned,omitempty"` // the command's own exec had happened
	Returned int64    `json:"returned,omitempty"`
	Running  int64    `json:"running,omitempty"`
	First    int64    `json:"first,omitempty"`
	Seen     int64    `json:"seen,omitempty"`
	Exited   int64    `json:"exited,omitempty"`
	Guest    int64    `json:"guest,omitempty"`    // the workload's own clock where it is not the host's; never subtracted from ours
	UserCPU  int64    `json:"user_cpu,omitempty"` // ns, of the command and the children it waited for
	SysCPU   int64    `json:"sys_cpu,omitempty"`
	MaxRSS   int64    `json:"max_rss,omitempty"` // bytes, the largest of the command and those children
	Failure  *Failure `json:"failure,omitempty"`

	// Of a workload that was asked from outside whether it is ready: how often, the last
	// included; when the last that was not ready was asked, 0 where the first already
	// was, so that it was ready between the two; and how long the request took that had
	// the good answer, 0 where there are no requests.
	Polls   int64 `json:"polls,omitempty" is:"max=1000000000"`
	Unready int64 `json:"unready,omitempty"`
	Request int64 `json:"request,omitempty" is:"span"`

	// Of a pod in a cluster: when its API server told of it, and of one on this machine
	// also when its node's engine says that it happened, see [Stamp].
	Scheduled   int64 `json:"scheduled,omitempty"`
	Sandbox     int64 `json:"sandbox,omitempty"`
	Ready       int64 `json:"ready,omitempty"` // also of a workload that was asked, see Polls
	Gone        int64 `json:"gone,omitempty"`
	NodeSandbox int64 `json:"node_sandbox,omitempty"`
	NodeStarted int64 `json:"node_started,omitempty"`
	// Told are the times that the pod itself bears, by its conditions' names: ns since
	// 1970 by the clocks of others, most of them of whole seconds. They are never
	// subtracted from stamps, nor, where they are of several clocks, from one another.
	Told map[string]int64 `json:"told,omitempty" is:"max=16,keys=name,safekeys"`
}

// Time returns a stamp of the sample, ok false when it was not taken.
func (s *Sample) Time(stamp Stamp) (ns int64, ok bool) {
	switch stamp {
	case StampReturned:
		ns = s.Returned
	case StampRunning:
		ns = s.Running
	case StampFirst:
		ns = s.First
	case StampSeen:
		ns = s.Seen
	case StampExited:
		ns = s.Exited
	case StampScheduled:
		ns = s.Scheduled
	case StampSandbox:
		ns = s.Sandbox
	case StampReady:
		ns = s.Ready
	case StampGone:
		ns = s.Gone
	case StampNodeSandbox:
		ns = s.NodeSandbox
	case StampNodeStarted:
		ns = s.NodeStarted
	}
	return ns, ns != 0
}

// Latency returns the time from the sample's start to a stamp. A failed
// sample has no latency.
func (s *Sample) Latency(stamp Stamp) (d time.Duration, ok bool) {
	t, ok := s.Time(stamp)
	if !ok || s.Failure != nil {
		return 0, false
	}
	return time.Duration(t - s.Start), true
}

// Resolution is how exactly it is known when a workload was ready that was asked from
// outside: it was so no longer before its stamp. ok is false where it was not asked, or
// was ready when it was asked first: then its stamp is the latest it can have been.
func (s *Sample) Resolution() (d time.Duration, ok bool) {
	if s.Polls == 0 || s.Unready == 0 || s.Ready == 0 {
		return 0, false
	}
	return time.Duration(s.Ready - s.Unready), true
}

// checkReady says whether what the polls told can be true.
func (s *Sample) checkReady(begin int64) error {
	switch {
	case s.Polls == 0 && (s.Unready != 0 || s.Request != 0):
		return errors.New("unready or a request without polls")
	case s.Unready != 0 && s.Unready < begin:
		return fmt.Errorf("unready %d is before the batch's release %d", s.Unready, begin)
	case s.Ready != 0 && s.Unready > s.Ready:
		return fmt.Errorf("unready %d is after ready %d", s.Unready, s.Ready)
	case s.Polls > 0 && s.Ready != 0 && s.Ready < s.First:
		return fmt.Errorf("ready %d is before first %d: a workload cannot be ready before it begins", s.Ready, s.First)
	}
	return nil
}

// Usage is what the processes of one role used in a batch. Memory is PSS, so
// that pages which processes share are counted once; before and after are read
// while nothing is released, and peak is the largest of them and of what was
// read in between.
type Usage struct {
	Role      Role  `json:"role" is:"id,needed,name"`
	Before    int   `json:"before" is:"processes"`             // processes before the batch
	After     int   `json:"after" is:"processes"`              // processes after it
	Ended     int   `json:"ended,omitempty" is:"max=8388608"`  // of those before it, that are gone after it: CPU lacks theirs
	CPU       int64 `json:"cpu" is:"cpu"`                      // ns, from before to after, of those that are there after it
	PSSBefore int64 `json:"pss_before" is:"bytes"`             // bytes
	PSSPeak   int64 `json:"pss_peak" is:"bytes"`               // bytes
	PSSAfter  int64 `json:"pss_after" is:"bytes"`              // bytes
	Unread    int   `json:"unread,omitempty" is:"max=8388608"` // processes that could not be read: the figures lack them
}

// Check says whether the batch can have happened. One sample with an impossible
// time is enough to distrust the clock of all of them.
func (b *Batch) Check() error {
	switch s := b.Summary; {
	case s != nil && (b.Source == "" || len(b.Samples) > 0):
		return errors.New("a summary is of an imported batch, which has no samples then")
	case s != nil && (s.Failed > s.Count || s.Mean == 0 && s.Seconds == 0):
		return fmt.Errorf("a summary of %d operations, %d failed, without a time", s.Count, s.Failed)
	case b.Unproven && b.Source == "":
		return errors.New("unproven is of an imported batch")
	}
	if b.Lost > b.Lanes-len(b.Samples) {
		return fmt.Errorf("%d samples and %d lost lanes in a batch of %d", len(b.Samples), b.Lost, b.Lanes)
	}
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Lane >= b.Lanes {
			return fmt.Errorf("lane %d in a batch of %d", s.Lane, b.Lanes)
		}
		if err := s.checkTimes(b.Released); err != nil {
			return fmt.Errorf("lane %d: %w", s.Lane, err)
		}
	}
	return nil
}

// checkTimes says whether the sample's times can be true, given when its batch
// was released. Only orders that hold for every target are required: who
// notices first that a command returned and that its container runs, differs.
func (s *Sample) checkTimes(released int64) error {
	switch {
	case s.Start == 0 && s.Failure == nil:
		return errors.New("no start, and no failure that would explain it")
	case released == 0 && s.Failure == nil:
		return errors.New("its batch has no release, and no failure that would explain it")
	case s.Start != 0 && s.Start < released:
		return fmt.Errorf("start %d is before the batch's release %d", s.Start, released)
	}
	// A lane that failed before its start has none; its release then is the
	// earliest its other stamps can be.
	begin := max(s.Start, released)
	if s.Spawned != 0 {
		if err := after("spawned", "the start", begin, s.Spawned); err != nil {
			return err
		}
	}
	for _, stamp := range Stamps {
		if at, taken := s.Time(stamp); taken {
			if err := after(string(stamp), "the start", begin, at); err != nil {
				return err
			}
		}
	}
	if err := s.checkReady(released); err != nil {
		return err
	}
	// The workload's own stamps come in one order only.
	switch {
	case s.First != 0 && s.Seen != 0 && s.Seen < s.First:
		return fmt.Errorf("seen %d is before first %d: output cannot come before the first instruction", s.Seen, s.First)
	case s.First != 0 && s.Exited != 0 && s.Exited < s.First:
		return fmt.Errorf("exited %d is before first %d: the workload cannot end before it begins", s.Exited, s.First)
	}
	return nil
}

// Check says whether what a role used can be true. Roles that this version does
// not know are as good as those it does.
func (u *Usage) Check() error {
	switch least := max(u.PSSBefore, u.PSSAfter); {
	case u.PSSPeak < least:
		return fmt.Errorf("pss_peak %d is below %d, which it had before or after", u.PSSPeak, least)
	case u.Ended > u.Before:
		return fmt.Errorf("%d ended of %d processes before", u.Ended, u.Before)
	case u.Before == 0 && u.PSSBefore > 0:
		return fmt.Errorf("pss_before is %d without a process before", u.PSSBefore)
	case u.After == 0 && (u.PSSAfter > 0 || u.CPU > 0):
		return fmt.Errorf("pss_after is %d and cpu %d without a process after", u.PSSAfter, u.CPU)
	}
	return nil
}
