package record

import (
	"errors"
	"fmt"
	"time"
)

// MaxLanes is the most lanes a batch of a record can have.
const MaxLanes = 10_000

// longestSpan is further apart than two stamps of one operation can be. Beyond
// it they come from two clocks, such as the wall clock or a guest's.
const longestSpan = 366 * 24 * time.Hour

// shareLimit is 1 and a little: the two readings a share is made of are not
// taken at the same instant as the clock it is divided by.
const shareLimit = 1.05

// Validate says whether the header can open a record.
func (h *Header) Validate() error {
	if h.Schema < 1 {
		return fmt.Errorf("schema %d: schemas begin at 1", h.Schema)
	}
	return notNegative(amount{"environment.cpus", int64(h.Environment.CPUs)},
		amount{"environment.memory", h.Environment.Memory},
		amount{"environment.swap", h.Environment.Swap})
}

// Validate says whether the target can be told from others.
func (t *Target) Validate() error {
	if t.Name == "" {
		return errors.New("a target without a name")
	}
	return nil
}

// Validate says whether the batch can have happened. One sample with an
// impossible time is enough to distrust the clock of all of them.
func (b *Batch) Validate() error {
	switch {
	case b.Target == "":
		return errors.New("a batch without a target")
	case b.Op == "":
		return errors.New("a batch without an operation")
	case b.Phase != PhaseWarmup && b.Phase != PhaseMeasure:
		return fmt.Errorf("phase %q: a batch is of phase %s or %s", b.Phase, PhaseWarmup, PhaseMeasure)
	case b.Lanes < 1 || b.Lanes > MaxLanes:
		return fmt.Errorf("lanes %d: a batch has 1 to %d", b.Lanes, MaxLanes)
	case b.Lost > b.Lanes-len(b.Samples):
		return fmt.Errorf("%d samples and %d lost lanes in a batch of %d", len(b.Samples), b.Lost, b.Lanes)
	}
	if err := notNegative(amount{"round", int64(b.Round)}, amount{"order", int64(b.Order)},
		amount{"released", b.Released}, amount{"lost", int64(b.Lost)}, amount{"own_cpu", b.OwnCPU}); err != nil {
		return err
	}
	if err := validateRoles(b.Roles); err != nil {
		return err
	}
	seen := make(map[int]bool, len(b.Samples))
	for i := range b.Samples {
		s := &b.Samples[i]
		if s.Lane < 0 || s.Lane >= b.Lanes {
			return fmt.Errorf("lane %d in a batch of %d", s.Lane, b.Lanes)
		}
		if seen[s.Lane] {
			return fmt.Errorf("lane %d is there twice", s.Lane)
		}
		seen[s.Lane] = true
		if err := s.validate(b.Released); err != nil {
			return fmt.Errorf("lane %d: %w", s.Lane, err)
		}
	}
	return nil
}

// validate says whether the sample's times can be true, given when its batch
// was released. Only orders that hold for every target are required: who
// notices first that a command returned and that its container runs, differs.
func (s *Sample) validate(released int64) error {
	if err := notNegative(amount{"start", s.Start}, amount{"guest", s.Guest}, amount{"user_cpu", s.UserCPU},
		amount{"sys_cpu", s.SysCPU}, amount{"max_rss", s.MaxRSS}); err != nil {
		return err
	}
	if s.Failure != nil && s.Failure.Kind == "" {
		return errors.New("a failure without a kind")
	}
	if s.Start == 0 && s.Failure == nil {
		return errors.New("no start, and no failure that would explain it")
	}
	if released == 0 && s.Failure == nil {
		return errors.New("its batch has no release, and no failure that would explain it")
	}
	if s.Start != 0 && s.Start < released {
		return fmt.Errorf("start %d is before the batch's release %d", s.Start, released)
	}
	// A lane that failed before its start has none; its release then is the
	// earliest its other stamps can be.
	begin := max(s.Start, released)
	for _, stamp := range []amount{{"spawned", s.Spawned}, {"returned", s.Returned}, {"running", s.Running},
		{"first", s.First}, {"seen", s.Seen}, {"exited", s.Exited}} {
		switch {
		case stamp.value == 0: // not taken
		case stamp.value < begin:
			return fmt.Errorf("%s %d is before the start %d", stamp.name, stamp.value, begin)
		case stamp.value-begin > int64(longestSpan):
			return fmt.Errorf("%s %d is more than a year after the start %d: it is of another clock", stamp.name, stamp.value, begin)
		}
	}
	return s.validateWorkload()
}

// validateWorkload says whether the workload's own stamps come in the one
// order they can have.
func (s *Sample) validateWorkload() error {
	switch {
	case s.First == 0:
		return nil
	case s.Seen != 0 && s.Seen < s.First:
		return fmt.Errorf("seen %d is before first %d: output cannot come before the first instruction", s.Seen, s.First)
	case s.Exited != 0 && s.Exited < s.First:
		return fmt.Errorf("exited %d is before first %d: the workload cannot end before it begins", s.Exited, s.First)
	}
	return nil
}

// Validate says whether the finding says something.
func (f *Finding) Validate() error {
	if f.Code == "" {
		return errors.New("a finding without a code")
	}
	return notNegative(amount{"lanes", int64(f.Lanes)})
}

// Validate says whether the reading can be true.
func (n *Node) Validate() error {
	if err := notNegative(amount{"time", n.Time}, amount{"round", int64(n.Round)}, amount{"lanes", int64(n.Lanes)}); err != nil {
		return err
	}
	if n.Load1 < 0 {
		return fmt.Errorf("load1 is %g and cannot be negative", n.Load1)
	}
	for _, share := range []struct {
		name  string
		value float64
	}{{"busy", n.Busy}, {"steal", n.Steal}, {"psi_cpu", n.PSICPU}, {"psi_memory", n.PSIMemory}, {"psi_io", n.PSIIO}} {
		if share.value < 0 || share.value > shareLimit {
			return fmt.Errorf("%s is %g and has to be from 0 to 1", share.name, share.value)
		}
	}
	return nil
}

// Validate says whether the end mark can be true.
func (e *End) Validate() error {
	if e.Status == "" {
		return errors.New("an end mark without a status")
	}
	return notNegative(amount{"batches", int64(e.Batches)}, amount{"failures", int64(e.Failures)},
		amount{"elapsed", e.Elapsed})
}

// amount is a value with its name in the record.
type amount struct {
	name  string
	value int64
}

func notNegative(amounts ...amount) error {
	for _, a := range amounts {
		if a.value < 0 {
			return fmt.Errorf("%s is %d and cannot be negative", a.name, a.value)
		}
	}
	return nil
}
