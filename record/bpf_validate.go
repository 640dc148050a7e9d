package record

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// How much a program or a point can have.
const (
	maxProgramMaps  = 4096
	maxProgramNames = 1024 // places, holders, pins
	maxPointRuns    = 16384
	maxMemories     = 65536
	maxProblemLines = 1024
	maxLoadCount    = 1 << 50
	maxReasons      = 64 // of failures of a load
)

var (
	pointCases  = []string{CaseLoad, CaseQuota, CaseMemory}
	pointPhases = []string{PhaseIdle, PhaseLoad, PhaseCool}
)

// Validate says whether the program can be true.
func (p *Program) Validate() error {
	if p.ID == 0 || p.Kind == "" {
		return errors.New("a program without an id or a kind")
	}
	if len(p.Maps) > maxProgramMaps {
		return fmt.Errorf("%d maps of one program: at most %d are read", len(p.Maps), maxProgramMaps)
	}
	if err := cmp.Or(memoryOf(p.Memory), allNotLonger(text{"kind", p.Kind, maxLabel}, text{"name", p.Name, maxLabel}, text{"full", p.Full, maxPath},
		text{"tag", p.Tag, maxLabel}, text{"owner", p.Owner, maxLabel})); err != nil {
		return err
	}
	for _, list := range [][]string{p.Attached, p.Holders, p.Pins} {
		if len(list) > maxProgramNames {
			return fmt.Errorf("%d names in one program: at most %d are read", len(list), maxProgramNames)
		}
		for _, s := range list {
			if err := notLonger("a name", s, maxPath); err != nil {
				return err
			}
		}
	}
	for _, m := range p.Maps {
		if err := cmp.Or(memoryOf(m.Memory), notNegative(amount{"entries", m.Entries}, amount{"shared", int64(m.Shared)}, amount{"inner", int64(m.Inner)}, amount{"inner_memory", m.InnerMemory}),
			allNotLonger(text{"kind", m.Kind, maxLabel}, text{"name", m.Name, maxLabel})); err != nil {
			return fmt.Errorf("map %d: %w", m.ID, err)
		}
	}
	return nil
}

func memoryOf(bytes int64) error {
	if bytes < -1 || bytes > maxPSS {
		return fmt.Errorf("memory is %d and has to be an amount, or -1 where it is not known", bytes)
	}
	return nil
}

// Validate says whether the point can be true.
func (p *Point) Validate() error {
	switch {
	case !slices.Contains(pointCases, p.Case):
		return fmt.Errorf("case %.40q: a point is of one of %v", p.Case, pointCases)
	case !slices.Contains(pointPhases, p.Phase):
		return fmt.Errorf("phase %.40q: a point has the phases %v", p.Phase, pointPhases)
	case p.Failure != nil && p.Failure.Kind == "":
		return errors.New("a failure without a kind")
	case len(p.Runs) > maxPointRuns || len(p.Memory) > maxMemories || len(p.Problems) > maxProblemLines:
		return errors.New("a point with more programs than a kernel has")
	case p.CPUs < 0 || p.CPUs > 1<<20:
		return fmt.Errorf("%d CPUs", p.CPUs)
	}
	for _, cpu := range []amount{{"client_cpu", p.ClientCPU}, {"server_cpu", p.ServerCPU}, {"node_cpu", p.NodeCPU}} {
		if cpu.value < -1 || cpu.value > maxCPU {
			return fmt.Errorf("%s is %d and has to be an amount, or -1 where it is not known", cpu.name, cpu.value)
		}
	}
	return cmp.Or(
		notNegative(amount{"round", int64(p.Round)}, amount{"order", int64(p.Order)}, amount{"begun", p.Begun}, amount{"own", p.Own}),
		after("ended", p.Begun, p.Ended), notLonger("datapath", p.Datapath, maxLabel),
		within("asked", p.Asked.validate()), within("sent", p.Sent.validate()), within("group", p.Group.validate()), p.validateLists())
}

func (a *Asked) validate() error {
	return cmp.Or(
		notNegative(amount{"connections", int64(a.Connections)}, amount{"instances", int64(a.Instances)}, amount{"heavy", a.Heavy}, amount{"services", int64(a.Services)}),
		figures(figure{"qps", a.QPS, maxRate}, figure{"seconds", a.Seconds, maxSeconds}, figure{"cpu_limit", a.CPUs, maxSpin}),
		notLonger("url", a.URL, maxPath))
}

func (s *Sent) validate() error {
	if s == nil {
		return nil
	}
	for _, n := range []amount{{"requests", s.Requests}, {"errors", s.Errors}, {"sockets", s.Sockets}, {"unsent", s.Unsent}} {
		if n.value < 0 || n.value > maxLoadCount {
			return fmt.Errorf("%s is %d", n.name, n.value)
		}
	}
	if s.Errors > s.Requests {
		return fmt.Errorf("%d errors of %d requests", s.Errors, s.Requests)
	}
	if len(s.Failures) > maxReasons {
		return fmt.Errorf("%d reasons of failure: at most %d are read", len(s.Failures), maxReasons)
	}
	for why, n := range s.Failures {
		if n < 0 || n > maxLoadCount {
			return fmt.Errorf("%d failures of a kind", n)
		}
		if err := notLonger("the reason of a failure", why, maxLabel); err != nil {
			return err
		}
	}
	l := Latency{Mean: s.Mean, P50: s.P50, P95: s.P90, P99: s.P99, P999: s.P999, Max: s.Max} // P90 stands where P95 would
	return cmp.Or(notNegative(amount{"lag", s.Lag}), figures(figure{"qps", s.QPS, maxRate}), l.validate())
}

func (g *GroupCPU) validate() error {
	switch {
	case g == nil:
		return nil
	case g.Version != 1 && g.Version != 2:
		return fmt.Errorf("cgroups of version %d", g.Version)
	case g.Usage < 0 || g.Usage > maxCPU || g.Ticks < -1 || g.Ticks > maxCPU || g.Held < 0 || g.Held > maxCPU:
		return errors.New("CPU time that cannot be")
	case g.Throttled > g.Periods:
		return fmt.Errorf("%d of %d periods were held back", g.Throttled, g.Periods)
	}
	return cmp.Or(notNegative(amount{"periods", g.Periods}, amount{"throttled", g.Throttled}), figures(figure{"limit", g.Limit, maxSpin}))
}

func (p *Point) validateLists() error {
	for _, r := range p.Runs {
		if r.Count < 0 || r.Count > maxLoadCount || r.Time < 0 || r.Time > maxCPU || r.Misses < 0 {
			return fmt.Errorf("program %d: %d runs in %d ns cannot be", r.ID, r.Count, r.Time)
		}
		if err := notLonger("the name of a program", r.Name, maxPath); err != nil {
			return err
		}
	}
	for _, m := range p.Memory {
		if err := cmp.Or(memoryOf(m.Memory), notNegative(amount{"used", m.Used}), notLonger("the name of a map", m.Name, maxPath)); err != nil {
			return err
		}
	}
	for _, s := range p.Problems {
		if err := notLonger("a problem", s, maxPath); err != nil {
			return err
		}
	}
	return nil
}
