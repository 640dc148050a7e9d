package record

import (
	"errors"
	"fmt"
	"time"
)

// TypeBatch is a type of line in records of "lifecycle" and others.
const TypeBatch Type = "batch"

// MaxLanes is the largest number of lanes in a batch.
const MaxLanes = 10_000

// DroppedNode means that the page cache, dentries and inodes of the whole node were dropped
// before the timed operation, except pages that the kernel keeps, such as mapped ones.
const DroppedNode = "node"

// Phase distinguishes measured batches from warm-up.
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
	Lost     int      `json:"lost,omitempty"`                  // lanes not released because an earlier operation failed
	Dropped  string   `json:"dropped,omitempty" is:"one=node"` // page cache dropped before the release, see [DroppedNode]; "" none
	OwnCPU   int64    `json:"own_cpu,omitempty"`               // ns of CPU time that tare and its lanes used in the batch
	Roles    []Usage  `json:"roles,omitempty" is:"max=64"`     // usage of the target's processes by role

	// For a batch imported from another tool's output. It has durations only: Released and
	// Start are 1.
	Source   string   `json:"source,omitempty" is:"place"` // file and line, or another place in it
	Unproven bool     `json:"unproven,omitempty"`          // the format cannot express failures, so they are unknown
	Summary  *Summary `json:"summary,omitempty"`           // figures of several operations together; then there are no samples
}

// Summary is a tool's figures of several operations without single times. Missing figures
// are 0.
type Summary struct {
	Count   int64   `json:"count" is:"min=1"`
	Failed  int64   `json:"failed,omitempty"`
	Mean    int64   `json:"mean,omitempty" is:"span"`       // ns, of one operation
	Trimmed int64   `json:"trimmed,omitempty" is:"span"`    // ns, without the shortest and the longest
	Seconds float64 `json:"seconds,omitempty" is:"seconds"` // of the whole run, with any number of operations at once
}

// Sample is one timed operation. Times are ns of CLOCK_MONOTONIC, or 0 if missing.
type Sample struct {
	Lane     int      `json:"lane" is:"id"`      // from 0
	Start    int64    `json:"start"`             // the call was about to be made
	Spawned  int64    `json:"spawned,omitempty"` // the command had been executed
	Returned int64    `json:"returned,omitempty"`
	Running  int64    `json:"running,omitempty"`
	First    int64    `json:"first,omitempty"`
	Seen     int64    `json:"seen,omitempty"`
	Exited   int64    `json:"exited,omitempty"`
	Guest    int64    `json:"guest,omitempty"`    // time by the guest's clock, which is never compared with the host's
	UserCPU  int64    `json:"user_cpu,omitempty"` // ns, of the command and the children it waited for
	SysCPU   int64    `json:"sys_cpu,omitempty"`
	MaxRSS   int64    `json:"max_rss,omitempty"` // bytes, the largest of the command and those children
	Failure  *Failure `json:"failure,omitempty"`

	// For a workload polled for readiness from outside. Unready is the begin of the last
	// failed poll, 0 if the first poll succeeded: the workload became ready between Unready
	// and Ready. Request is the duration of the successful request, 0 without requests.
	Polls   int64 `json:"polls,omitempty" is:"max=1000000000"` // including the last one
	Unready int64 `json:"unready,omitempty"`
	Request int64 `json:"request,omitempty" is:"span"`

	// For a pod in a cluster: when its API server reported the event, and for a pod on this
	// machine also the time by the node's engine, see [Stamp].
	Scheduled   int64 `json:"scheduled,omitempty"`
	Sandbox     int64 `json:"sandbox,omitempty"`
	Ready       int64 `json:"ready,omitempty"` // also for a polled workload, see Polls
	Gone        int64 `json:"gone,omitempty"`
	NodeSandbox int64 `json:"node_sandbox,omitempty"`
	NodeStarted int64 `json:"node_started,omitempty"`
	// Told are the times in the pod's object by the names of its conditions: ns since 1970 by
	// clocks of other machines, most in whole seconds. They are never compared with stamps,
	// nor with each other if they come from several clocks.
	Told map[string]int64 `json:"told,omitempty" is:"max=16,keys=name,safekeys"`
}

// Time returns a stamp of the sample. ok is false if it is missing.
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

// Latency returns the time from the start to a stamp. A failed sample has no latency.
func (s *Sample) Latency(stamp Stamp) (d time.Duration, ok bool) {
	t, ok := s.Time(stamp)
	if !ok || s.Failure != nil {
		return 0, false
	}
	return time.Duration(t - s.Start), true
}

// Resolution returns the uncertainty of Ready: the workload became ready at most that long
// before it. ok is false if the workload was not polled, or was ready at the first poll.
func (s *Sample) Resolution() (d time.Duration, ok bool) {
	if s.Polls == 0 || s.Unready == 0 || s.Ready == 0 {
		return 0, false
	}
	return time.Duration(s.Ready - s.Unready), true
}

// checkReady checks the figures of polls.
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

// Usage is the usage of the processes of one role in a batch. Memory is PSS, which counts
// shared pages once. Before and after are read while no lane is released. Peak is the
// largest of those and of the readings in between.
type Usage struct {
	Role      Role  `json:"role" is:"id,needed,name"`
	Before    int   `json:"before" is:"processes"`             // processes before the batch
	After     int   `json:"after" is:"processes"`              // processes after it
	Ended     int   `json:"ended,omitempty" is:"max=8388608"`  // processes that ended during it: CPU lacks theirs
	CPU       int64 `json:"cpu" is:"cpu"`                      // ns, from before to after, of the processes after it
	PSSBefore int64 `json:"pss_before" is:"bytes"`             // bytes
	PSSPeak   int64 `json:"pss_peak" is:"bytes"`               // bytes
	PSSAfter  int64 `json:"pss_after" is:"bytes"`              // bytes
	Unread    int   `json:"unread,omitempty" is:"max=8388608"` // unreadable processes: the figures lack them
}

// Check implements Checker. One impossible time makes the clock of the whole batch
// untrustworthy.
func (b *Batch) Check() error {
	switch s := b.Summary; {
	case s != nil && (b.Source == "" || len(b.Samples) > 0):
		return errors.New("only an imported batch without samples can have a summary")
	case s != nil && (s.Failed > s.Count || s.Mean == 0 && s.Seconds == 0):
		return fmt.Errorf("a summary of %d operations, %d failed, without a time", s.Count, s.Failed)
	case b.Unproven && b.Source == "":
		return errors.New("only an imported batch can be unproven")
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

// checkTimes checks the order of the sample's times after the release of its batch. It
// requires only orders that hold for every target: returned and running, for example, come
// in either order.
func (s *Sample) checkTimes(released int64) error {
	switch {
	case s.Start == 0 && s.Failure == nil:
		return errors.New("no start, and no failure that would explain it")
	case released == 0 && s.Failure == nil:
		return errors.New("its batch has no release, and no failure that would explain it")
	case s.Start != 0 && s.Start < released:
		return fmt.Errorf("start %d is before the batch's release %d", s.Start, released)
	}
	// A lane that failed before its start has no start. Its other stamps are after the
	// release.
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
	// The stamps of the workload have a fixed order.
	switch {
	case s.First != 0 && s.Seen != 0 && s.Seen < s.First:
		return fmt.Errorf("seen %d is before first %d: output cannot come before the first instruction", s.Seen, s.First)
	case s.First != 0 && s.Exited != 0 && s.Exited < s.First:
		return fmt.Errorf("exited %d is before first %d: the workload cannot end before it begins", s.Exited, s.First)
	}
	return nil
}

// Check implements Checker. Unknown roles are allowed.
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
