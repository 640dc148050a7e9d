package record

import (
	"errors"
	"fmt"
	"strings"
)

// How long the texts of a reading can be.
const (
	maxLabel  = 256  // of a phase, a source, a name of a series
	maxPath   = 4096 // PATH_MAX
	maxRule   = 1024
	maxThread = 64 // of a thread's name: the kernel cuts at 15, for some of its own at 63
	maxExtras = 100
	maxSpin   = 1 << 16 // CPUs
)

// Validate says whether the reading can be true.
func (r *Reading) Validate() error {
	switch {
	case r.Target == "":
		return errors.New("a reading without a target")
	case r.Sandboxes > MaxLanes:
		return fmt.Errorf("sandboxes %d: a reading has at most %d", r.Sandboxes, MaxLanes)
	case r.Took > int64(longestSpan):
		return fmt.Errorf("took %d ns, which is more than a year", r.Took)
	case len(r.Left) > 0 && r.Moment != MomentAfter:
		return fmt.Errorf("cgroups were left at the moment %q: only %q can tell", r.Moment, MomentAfter)
	case r.Failure != nil && r.Failure.Kind == "":
		return errors.New("a failure without a kind")
	case r.Host.Total == 0 && r.Failure == nil:
		return errors.New("host.total is 0, and no failure that would explain it")
	}
	if err := notNegative(amount{"time", r.Time}, amount{"took", r.Took}, amount{"round", int64(r.Round)},
		amount{"order", int64(r.Order)}, amount{"sandboxes", int64(r.Sandboxes)}); err != nil {
		return err
	}
	if err := validateMoment(r.Moment, r.Phase); err != nil {
		return err
	}
	if err := r.Work.validate(); err != nil {
		return fmt.Errorf("work: %w", err)
	}
	if err := r.Host.validate(); err != nil {
		return fmt.Errorf("host: %w", err)
	}
	if err := validateGroups(r.Groups); err != nil {
		return err
	}
	if err := validateProcesses(r.Processes); err != nil {
		return err
	}
	for i := range r.Engine {
		if err := r.Engine[i].validate(); err != nil {
			return fmt.Errorf("engine: %w", err)
		}
	}
	return r.Problems.validate()
}

func validateMoment(m Moment, phase string) error {
	switch m {
	case MomentBefore, MomentAfter:
	case MomentBegin, MomentEnd:
		if phase == "" {
			return fmt.Errorf("the %s of a phase without a name", m)
		}
	default:
		return fmt.Errorf("moment %.40q: a reading is of %s, %s, %s or %s", m, MomentBefore, MomentBegin, MomentEnd, MomentAfter)
	}
	return notLonger("phase", phase, maxLabel)
}

func (w *Work) validate() error {
	switch {
	case w == nil:
		return nil
	case w.Spin < 0 || w.Spin > maxSpin:
		return fmt.Errorf("spin is %g and has to be from 0 to %d CPUs", w.Spin, maxSpin)
	case w.Spun < 0 || w.Spun > maxSpin:
		return fmt.Errorf("spun is %g and has to be from 0 to %d CPUs", w.Spun, maxSpin)
	case w.Ended != 0 && w.Ended < w.Begun:
		return fmt.Errorf("ended %d is before begun %d", w.Ended, w.Begun)
	}
	if err := notNegative(amount{"begun", w.Begun}, amount{"cpu", w.CPU}); err != nil {
		return err
	}
	return bytesOf(amount{"hold", w.Hold})
}

func (h *Host) validate() error {
	if err := bytesOf(amount{"total", h.Total}, amount{"free", h.Free}, amount{"listed", h.Listed},
		amount{"available", h.Available}, amount{"buffers", h.Buffers}, amount{"cached", h.Cached},
		amount{"swap_cached", h.SwapCached}, amount{"shmem", h.Shmem}, amount{"anon", h.Anon}, amount{"slab", h.Slab},
		amount{"stacks", h.Stacks}, amount{"page_tables", h.PageTables}, amount{"percpu", h.Percpu}, amount{"huge", h.Huge}, amount{"huge_free", h.HugeFree},
		amount{"swap_used", h.SwapUsed}, amount{"others", h.Others}); err != nil {
		return err
	}
	if err := notNegative(amount{"busy", h.Busy}, amount{"steal", h.Steal}, amount{"io_wait", h.IOWait},
		amount{"psi_cpu", h.PSICPU}, amount{"psi_memory", h.PSIMemory}, amount{"psi_io", h.PSIIO},
		amount{"read_bytes", h.ReadBytes}, amount{"write_bytes", h.WriteBytes},
		amount{"others_count", int64(h.OthersCount)}); err != nil {
		return err
	}
	switch {
	case h.Load1 < 0:
		return fmt.Errorf("load1 is %g and cannot be negative", h.Load1)
	case h.Listed > h.Free:
		return fmt.Errorf("listed %d is above free %d, which it is part of", h.Listed, h.Free)
	case h.OthersCount > maxProcesses:
		return fmt.Errorf("others_count is %d: more than %d cannot be", h.OthersCount, maxProcesses)
	}
	return nil
}

func validateGroups(groups []Group) error {
	seen := make(map[string]bool, len(groups))
	for i := range groups {
		g := &groups[i]
		if seen[g.Path] {
			return fmt.Errorf("group %.200q is there twice", g.Path)
		}
		seen[g.Path] = true
		if err := g.validate(); err != nil {
			return fmt.Errorf("group %.200q: %w", g.Path, err)
		}
	}
	return nil
}

func (g *Group) validate() error {
	switch {
	case !strings.HasPrefix(g.Path, "/"):
		return errors.New("a path begins at the root of its hierarchy, with /")
	case g.Charge == "":
		return errors.New("a group without a charge")
	case len(g.Controllers) > maxExtras:
		return fmt.Errorf("%d controllers: at most %d are read", len(g.Controllers), maxExtras)
	}
	for _, text := range []struct {
		name, value string
		most        int
	}{{"path", g.Path, maxPath}, {"charge", string(g.Charge), maxRoleName}} {
		if err := notLonger(text.name, text.value, text.most); err != nil {
			return err
		}
	}
	if err := validateLane(g.Lane, -1); err != nil {
		return err
	}
	if g.CPU != nil {
		if err := notNegative(amount{"cpu", *g.CPU}); err != nil {
			return err
		}
	}
	if err := notNegative(amount{"throttled", g.Throttled}, amount{"read_bytes", g.ReadBytes},
		amount{"write_bytes", g.WriteBytes}, amount{"pids", g.Pids}); err != nil {
		return err
	}
	return g.Memory.validate()
}

func (m *GroupMemory) validate() error {
	if m == nil {
		return nil
	}
	return bytesOf(amount{"usage", m.Usage}, amount{"peak", m.Peak}, amount{"limit", m.Limit}, amount{"anon", m.Anon},
		amount{"file", m.File}, amount{"mapped", m.Mapped}, amount{"shmem", m.Shmem}, amount{"kernel", m.Kernel},
		amount{"slab", m.Slab}, amount{"stacks", m.Stacks}, amount{"page_tables", m.PageTables}, amount{"percpu", m.Percpu},
		amount{"sock", m.Sock}, amount{"swap", m.Swap}, amount{"inactive_file", m.InactiveFile})
}

func validateProcesses(processes []Process) error {
	type identity struct {
		pid   int
		start uint64
	}
	seen := make(map[identity]bool, len(processes))
	for i := range processes {
		p := &processes[i]
		id := identity{p.Pid, p.Start}
		if seen[id] {
			return fmt.Errorf("process %d is there twice", p.Pid)
		}
		seen[id] = true
		if err := p.validate(); err != nil {
			return fmt.Errorf("process %d: %w", p.Pid, err)
		}
	}
	return nil
}

func (p *Process) validate() error {
	switch {
	case p.Pid < 1 || p.Pid > maxProcesses:
		return fmt.Errorf("a pid is from 1 to %d", maxProcesses)
	case p.PPid > maxProcesses:
		return fmt.Errorf("ppid is %d: more than %d cannot be", p.PPid, maxProcesses)
	case p.Threads > maxProcesses:
		return fmt.Errorf("threads is %d: more than %d cannot be", p.Threads, maxProcesses)
	case p.Role == "":
		return errors.New("no role")
	}
	for _, text := range []struct {
		name, value string
		most        int
	}{{"role", string(p.Role), maxRoleName}, {"rule", p.Rule, maxRule}, {"name", p.Name, maxThread}} {
		if err := notLonger(text.name, text.value, text.most); err != nil {
			return err
		}
	}
	if err := validateLane(p.Lane, -1); err != nil {
		return err
	}
	if err := notNegative(amount{"ppid", int64(p.PPid)}, amount{"threads", int64(p.Threads)},
		amount{"cpu", p.CPU}, amount{"vcpu", p.VCPU}); err != nil {
		return err
	}
	if err := bytesOf(amount{"rss", p.RSS}, amount{"pss_anon", p.PSSAnon}, amount{"pss_file", p.PSSFile},
		amount{"pss_shmem", p.PSSShmem}, amount{"swap", p.Swap}, amount{"huge", p.Huge},
		amount{"page_tables", p.PageTables}); err != nil {
		return err
	}
	for i := range p.Groups {
		if err := p.Groups[i].validate(); err != nil {
			return fmt.Errorf("groups: %w", err)
		}
	}
	return nil
}

func (m *Membership) validate() error {
	switch {
	case len(m.Paths) > maxExtras:
		return fmt.Errorf("%d controllers: at most %d are read", len(m.Paths), maxExtras)
	case len(m.Threads) > maxProcesses:
		return fmt.Errorf("%d threads: at most %d are read", len(m.Threads), maxProcesses)
	case len(m.Names) > 0 && len(m.Names) != len(m.Threads):
		return fmt.Errorf("%d names of %d threads", len(m.Names), len(m.Threads))
	}
	for controller, path := range m.Paths {
		if err := notLonger("a controller", controller, maxRoleName); err != nil {
			return err
		}
		if err := notLonger("a path", path, maxPath); err != nil {
			return err
		}
	}
	for _, thread := range m.Threads {
		if thread < 1 || thread > maxProcesses {
			return fmt.Errorf("thread %d: a thread's id is from 1 to %d", thread, maxProcesses)
		}
	}
	for _, name := range m.Names {
		if err := notLonger("a thread's name", name, maxThread); err != nil {
			return err
		}
	}
	return nil
}

// validate lets -1 stand for what was not reported.
func (s *Statistic) validate() error {
	if err := validateLane(s.Lane, 0); err != nil {
		return err
	}
	switch {
	case s.Memory < -1 || s.Memory > maxPSS:
		return fmt.Errorf("memory is %d and has to be an amount, or -1 where it was not reported", s.Memory)
	case s.CPU < -1:
		return fmt.Errorf("cpu is %d and has to be a time, or -1 where it was not reported", s.CPU)
	case s.Source == "":
		return errors.New("a statistic without a source")
	}
	return notLonger("source", s.Source, maxLabel)
}

func (p *Problems) validate() error {
	if len(p.Examples) > maxExtras {
		return fmt.Errorf("problems: %d examples: at most %d are read", len(p.Examples), maxExtras)
	}
	if err := notNegative(amount{"gone", int64(p.Gone)}, amount{"reused", int64(p.Reused)}, amount{"denied", int64(p.Denied)},
		amount{"backwards", int64(p.Backwards)}, amount{"broken", int64(p.Broken)}); err != nil {
		return fmt.Errorf("problems: %w", err)
	}
	return nil
}

// Validate says whether the series can be true. Counters may go back: a cgroup
// that was made anew begins at 0.
func (s *Series) Validate() error {
	switch {
	case s.Target == "":
		return errors.New("a series without a target")
	case s.Phase == "":
		return errors.New("a series without a phase")
	case s.Interval < 1 || s.Interval > int64(longestSpan):
		return fmt.Errorf("interval %d ns: it is from 1 ns to a year", s.Interval)
	case s.Sandboxes > MaxLanes:
		return fmt.Errorf("sandboxes %d: a series has at most %d", s.Sandboxes, MaxLanes)
	}
	if err := notNegative(amount{"round", int64(s.Round)}, amount{"sandboxes", int64(s.Sandboxes)},
		amount{"missed", int64(s.Missed)}, amount{"own_cpu", s.OwnCPU}); err != nil {
		return err
	}
	if err := notLonger("phase", s.Phase, maxLabel); err != nil {
		return err
	}
	for i, t := range s.Times {
		switch {
		case t < 0:
			return fmt.Errorf("time %d of tick %d cannot be negative", t, i)
		case i > 0 && t <= s.Times[i-1]:
			return fmt.Errorf("tick %d at %d is not after the one before it at %d", i, t, s.Times[i-1])
		}
	}
	for name, values := range s.Values {
		if err := s.validateValues(name, values); err != nil {
			return err
		}
	}
	return s.Problems.validate()
}

func (s *Series) validateValues(name string, values []int64) error {
	if len(values) != len(s.Times) {
		return fmt.Errorf("series %.40q has %d values at %d times", name, len(values), len(s.Times))
	}
	if err := notLonger("the name of a series", name, maxLabel); err != nil {
		return err
	}
	memory := false
	switch name {
	case SeriesPodMemory, SeriesOverheadMemory, SeriesNodeUsed, SeriesNodeAvailable, SeriesNodeCache:
		memory = true
	}
	for i, v := range values {
		switch {
		case v < -1:
			return fmt.Errorf("series %.40q is %d at tick %d and cannot be negative; -1 is for what was not read", name, v, i)
		case memory && v > maxPSS:
			return fmt.Errorf("series %.40q is %d at tick %d: more than %d cannot be", name, v, i, int64(maxPSS))
		}
	}
	return nil
}

func validateLane(lane, least int) error {
	if lane < least || lane >= MaxLanes {
		return fmt.Errorf("lane is %d and has to be from %d to %d", lane, least, MaxLanes-1)
	}
	return nil
}

// bytesOf says whether the amounts can be of memory.
func bytesOf(amounts ...amount) error {
	for _, a := range amounts {
		if err := notNegative(a); err != nil {
			return err
		}
		if a.value > maxPSS {
			return fmt.Errorf("%s is %d: more than %d cannot be", a.name, a.value, int64(maxPSS))
		}
	}
	return nil
}

// notLonger keeps the text itself out of the reason.
func notLonger(name, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%s is %d bytes long: at most %d are read", name, len(text), most)
	}
	return nil
}
