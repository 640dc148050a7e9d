package record

import (
	"errors"
	"fmt"
	"time"
)

// TypeBatch is a type of line in records of "lifecycle" and other instruments.
const TypeBatch Type = "batch"

// MaxLanes is the largest number of lanes in a batch.
const MaxLanes = 10_000

// DroppedNode means that the page cache, dentries and inodes of the whole node were dropped
// before the timed operation. The kernel keeps some pages, such as mapped ones.
const DroppedNode = "node"

// Phase distinguishes measured batches from warm-up.
type Phase string

// Phases of a run.
const (
	PhaseWarmup  Phase = "warmup"
	PhaseMeasure Phase = "measure"
)

// Batch is one simultaneous release of N lanes, for one operation on one target.
type Batch struct {
	Type     Type     `json:"type"`
	Phase    Phase    `json:"phase" is:"needed,one=warmup|measure"`
	Round    int      `json:"round" is:"round"` // starts at 0; warm-up rounds are counted separately
	Order    int      `json:"order"`            // position of the target in the round's random order
	Target   string   `json:"target" is:"needed,safe"`
	Op       string   `json:"op" is:"needed,safe"`
	Lanes    int      `json:"lanes" is:"min=1,max=10000"`      // planned number of lanes
	Released int64    `json:"released"`                        // ns, just before the release
	Samples  []Sample `json:"samples" is:"max=10000"`          // one per released lane
	Lost     int      `json:"lost,omitempty"`                  // lanes not released because an earlier operation failed
	Dropped  string   `json:"dropped,omitempty" is:"one=node"` // page cache dropped before the release, see [DroppedNode]; "" if not dropped
	OwnCPU   int64    `json:"own_cpu,omitempty"`               // CPU time of tare and its lanes in the batch, ns
	Roles    []Usage  `json:"roles,omitempty" is:"max=64"`     // usage of the target's processes by role

	// The following fields are for batches imported from another tool's output. These have only
	// durations: Released and Start are 1.
	Source   string   `json:"source,omitempty" is:"place"` // file and line, or another position in it
	Unproven bool     `json:"unproven,omitempty"`          // the format cannot express failures, so their number is unknown
	Summary  *Summary `json:"summary,omitempty"`           // combined figures of several operations; there are no samples then
}

// Summary contains a tool's figures for several operations without individual times. Missing
// figures are 0.
type Summary struct {
	Count   int64   `json:"count" is:"min=1"`
	Failed  int64   `json:"failed,omitempty"`
	Mean    int64   `json:"mean,omitempty" is:"span"`       // of one operation, ns
	Trimmed int64   `json:"trimmed,omitempty" is:"span"`    // mean without the shortest and the longest, ns
	Seconds float64 `json:"seconds,omitempty" is:"seconds"` // duration of the whole run, with any number of concurrent operations
}

// Sample is one timed operation. Times are ns of CLOCK_MONOTONIC, or 0 if missing.
type Sample struct {
	Lane     int      `json:"lane" is:"id"`      // starting at 0
	Start    int64    `json:"start"`             // just before the call
	Spawned  int64    `json:"spawned,omitempty"` // the command was executed
	Returned int64    `json:"returned,omitempty"`
	Running  int64    `json:"running,omitempty"`
	First    int64    `json:"first,omitempty"`
	Seen     int64    `json:"seen,omitempty"`
	Exited   int64    `json:"exited,omitempty"`
	Guest    int64    `json:"guest,omitempty"`    // time by the guest's clock; never compare it with host times
	UserCPU  int64    `json:"user_cpu,omitempty"` // CPU time of the command and the children it waited for, ns
	SysCPU   int64    `json:"sys_cpu,omitempty"`
	MaxRSS   int64    `json:"max_rss,omitempty"` // largest RSS of the command and these children, bytes
	Failure  *Failure `json:"failure,omitempty"`

	// The following fields are for a workload whose readiness is polled from outside. It became
	// ready between Unready and Ready. Unready is the start of the last failed poll, or 0 if
	// the first poll succeeded. Request is the duration of the successful request, or 0 if polls
	// are not requests.
	Polls   int64 `json:"polls,omitempty" is:"max=1000000000"` // number of polls, including the last one
	Unready int64 `json:"unready,omitempty"`
	Request int64 `json:"request,omitempty" is:"span"`

	// For a pod in a cluster: the times at which the API server reported the events. A pod on
	// this machine also has the times from the node's engine, see [Stamp].
	Scheduled   int64 `json:"scheduled,omitempty"`
	Sandbox     int64 `json:"sandbox,omitempty"`
	Ready       int64 `json:"ready,omitempty"` // also set for a polled workload, see Polls
	Gone        int64 `json:"gone,omitempty"`
	NodeSandbox int64 `json:"node_sandbox,omitempty"`
	NodeStarted int64 `json:"node_started,omitempty"`
	// Told contains the times in the pod object by condition, in ns since 1970. They are from
	// clocks of other machines, and most are in whole seconds. Never compare them with stamps.
	// If they come from several clocks, do not compare them with each other either.
	Told map[string]int64 `json:"told,omitempty" is:"max=16,keys=name,safekeys"`
}

// Time returns the time of a stamp. ok is false if it is missing.
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

// Latency returns the time from the start to a stamp. ok is false for a failed sample.
func (s *Sample) Latency(stamp Stamp) (d time.Duration, ok bool) {
	t, ok := s.Time(stamp)
	if !ok || s.Failure != nil {
		return 0, false
	}
	return time.Duration(t - s.Start), true
}

// Resolution returns the uncertainty of Ready: the workload became ready at most this long before
// Ready. ok is false if the workload was not polled, or was ready at the first poll.
func (s *Sample) Resolution() (d time.Duration, ok bool) {
	if s.Polls == 0 || s.Unready == 0 || s.Ready == 0 {
		return 0, false
	}
	return time.Duration(s.Ready - s.Unready), true
}

// checkReady checks the figures of the polls.
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

// Usage is the resource usage of one role's processes in a batch. Memory is PSS, which counts
// shared pages once. Before and after are read while no lane runs. Peak is the maximum of these
// and of all readings in between.
type Usage struct {
	Role      Role  `json:"role" is:"id,needed,name"`
	Before    int   `json:"before" is:"processes"`             // number of processes before the batch
	After     int   `json:"after" is:"processes"`              // number of processes after the batch
	Ended     int   `json:"ended,omitempty" is:"max=8388608"`  // number of processes that ended during the batch; CPU excludes them
	CPU       int64 `json:"cpu" is:"cpu"`                      // CPU time during the batch of the processes that exist after it, ns
	PSSBefore int64 `json:"pss_before" is:"bytes"`             // bytes
	PSSPeak   int64 `json:"pss_peak" is:"bytes"`               // bytes
	PSSAfter  int64 `json:"pss_after" is:"bytes"`              // bytes
	Unread    int   `json:"unread,omitempty" is:"max=8388608"` // number of unreadable processes, which the figures exclude
}

// Check implements Checker. A single impossible time makes the clock of the whole batch
// unreliable.
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

// checkTimes checks that the sample's times are after the release of its batch and in a possible
// order. Some orders differ between targets and are not checked: for example, returned may be
// before or after running.
func (s *Sample) checkTimes(released int64) error {
	switch {
	case s.Start == 0 && s.Failure == nil:
		return errors.New("no start, and no failure that would explain it")
	case released == 0 && s.Failure == nil:
		return errors.New("its batch has no release, and no failure that would explain it")
	case s.Start != 0 && s.Start < released:
		return fmt.Errorf("start %d is before the batch's release %d", s.Start, released)
	}
	// A lane that failed before its start has no start time. Its other stamps are after the
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
