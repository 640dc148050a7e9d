package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// visit is one point in one round.
type visit struct {
	*schedule
	turn
	at     record.Asked
	groups Groups
	// statistics reports whether the kernel's statistics are on.
	statistics bool
}

func (r *schedule) visit(ctx context.Context, t turn) error {
	v := &visit{schedule: r, turn: t, at: r.points[t.Part]}
	err := v.do(ctx)
	if err == nil {
		r.done++
	}
	return err
}

func (v *visit) do(ctx context.Context) error {
	if err := v.prepare(); err != nil {
		return v.failed(ctx, record.PhaseLoad, err)
	}
	// The order is random for each point, because the first load leaves ports in
	// TIME_WAIT for the second.
	sides := []bool{true, false}
	if rand.New(rand.NewPCG(v.options.Plan.Seed, uint64(v.Number)<<32|uint64(v.Order))).IntN(2) == 0 {
		slices.Reverse(sides)
	}
	var errs []error
	for _, statistics := range sides {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, v.side(ctx, statistics))
	}
	if v.groups != nil {
		if err := v.groups.Close(); err != nil {
			errs = append(errs, fmt.Errorf("remove the clients' cgroups: %w", err))
		}
	}
	return errors.Join(errs...)
}

// prepare sets the weight and services of the programs and creates the clients'
// cgroups.
func (v *visit) prepare() error {
	if v.path != nil {
		if err := v.path.SetServices(max(v.at.Services, 1)); err != nil {
			return err
		}
		if err := v.path.SetHeavy(v.at.Heavy); err != nil {
			return err
		}
	}
	var err error
	if v.groups, err = v.options.Limit(v.place, v.at.CPUs, max(v.at.Instances, 1)); err != nil {
		return fmt.Errorf("make cgroups for the clients: %w", err)
	}
	return nil
}

// side runs one load. If statistics are on, it also measures the idle node before and
// the cooling node after the load.
func (v *visit) side(ctx context.Context, statistics bool) (err error) {
	v.statistics = statistics
	if statistics {
		release, already, err := v.options.Meter.Statistics()
		if err != nil {
			return v.failed(ctx, record.PhaseLoad, fmt.Errorf("switch the kernel's statistics of BPF programs on: %w", err))
		}
		defer func() { err = errors.Join(err, release()) }()
		if already && !v.alreadyOn {
			v.alreadyOn = true
			if err := v.Finding(record.Finding{Code: finding.StatisticsOn, Level: finding.Warning,
				Message: "the kernel's statistics of BPF programs were already enabled by another process: rounds in which they stayed on do not show their overhead",
				Advice:  "stop bpftop and similar tools, or run sysctl -w kernel.bpf_stats_enabled=0, if they are not needed"}); err != nil {
				return err
			}
		}
		if err := v.still(ctx, record.PhaseIdle); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	if err := v.load(ctx, statistics); err != nil || !statistics || ctx.Err() != nil {
		return err
	}
	return v.still(ctx, record.PhaseCool)
}

// still measures the node without a load.
func (v *visit) still(ctx context.Context, phase string) error {
	v.Step(pointName(&v.at), phase, "")
	begin, err := v.look()
	if err != nil {
		return v.failed(ctx, phase, err)
	}
	if machine.Sleep(ctx, v.options.Plan.Idle) != nil {
		return nil
	}
	p, err := v.between(begin, phase, true)
	if err == nil && v.options.Plan.Case == record.CaseMemory {
		p.Memory, err = v.memory()
	}
	if err != nil {
		return v.failed(ctx, phase, err)
	}
	return v.Line(p)
}

// load runs the load with clients started in advance.
func (v *visit) load(ctx context.Context, statistics bool) error {
	v.Step(pointName(&v.at), record.PhaseLoad, "")
	address, host := v.address()
	clients, err := v.options.Start(ctx, load.ClientOptions{
		URL: address, Host: host, Connections: v.at.Connections, QPS: v.at.QPS, KeepAlive: v.at.KeepAlive, ResolveEach: v.options.Plan.ResolveEach, Duration: v.options.Plan.Duration,
		Instances: max(v.at.Instances, 1), Groups: v.groups.Folders(), Timeout: v.options.Plan.Timeout,
	})
	if err != nil {
		return v.failed(ctx, record.PhaseLoad, err)
	}
	defer func() { _ = clients.Close() }() // the result is known by then
	begin, err := v.look()
	if err != nil {
		return v.failed(ctx, record.PhaseLoad, err)
	}
	memory := func() ([]record.ProgramMem, error) { return nil, nil }
	if v.options.Plan.Case == record.CaseMemory && statistics {
		memory = v.during()
	}
	result, err := clients.Run(ctx)
	occupied, unread := memory()
	if err = errors.Join(err, unread); err != nil {
		return v.failed(ctx, record.PhaseLoad, err)
	}
	p, err := v.between(begin, record.PhaseLoad, statistics)
	p.Memory = occupied
	if err != nil {
		return v.failed(ctx, record.PhaseLoad, err)
	}
	p.Sent, p.ClientCPU = &result.Sent, result.CPU
	return v.Line(p)
}

// address returns the URL to load: the plan's URL or tare's own server. For tare's own
// programs it is the address of a service that forwards there; host is then the
// server's host name.
func (v *visit) address() (address, host string) {
	address = v.options.Plan.URL
	if v.server != nil {
		address = v.server.URL()
	}
	if v.path == nil {
		return address, ""
	}
	u, err := url.Parse(address)
	if err != nil {
		return address, "" // the clients report the error
	}
	if v.server == nil {
		host = u.Host
	}
	u.Host = v.path.Service(max(v.at.Services, 1) - 1).String()
	return u.String(), host
}

// moment holds the counters at the start or end of a phase.
type moment struct {
	at       int64
	counters []bpfstat.Counters
	group    record.GroupCPU
	node     int64
	cpus     int
	server   int64
	own      int64
}

// look reads the counters. It also reads them without statistics, to check that they do
// not change.
func (v *visit) look() (m moment, err error) {
	if m.counters, err = v.options.Meter.Counters(v.ids, nil); err != nil {
		return m, err
	}
	if v.at.CPUs > 0 {
		if m.group, err = v.groups.Read(); err != nil {
			return m, fmt.Errorf("read the clients' cgroups: %w", err)
		}
	}
	if m.node, m.cpus, err = v.options.Node(); err != nil {
		return m, err
	}
	m.server = -1
	if v.server != nil {
		m.server = v.server.CPU()
	}
	m.own, m.at = v.options.Own(), machine.Now()
	return m, nil
}

// between returns the point of the phase since begin.
func (v *visit) between(begin moment, phase string, statistics bool) (record.Point, error) {
	end, err := v.look()
	p := v.blank(phase, statistics, begin.at, end.at)
	p.NodeCPU, p.CPUs, p.Own = end.node-begin.node, end.cpus, max(end.own-begin.own, 0)
	if err != nil {
		return p, err
	}
	if begin.server >= 0 && end.server >= begin.server {
		p.ServerCPU = end.server - begin.server
	}
	if v.at.CPUs > 0 {
		g := since(begin.group, end.group)
		p.Group = &g
	}
	v.runs(&p, begin.counters, end.counters)
	if !statistics {
		counted(&p)
	}
	err = v.changes(&p)
	return p, err
}

func since(a, b record.GroupCPU) record.GroupCPU {
	b.Usage, b.Periods, b.Throttled, b.Held = b.Usage-a.Usage, b.Periods-a.Periods, b.Throttled-a.Throttled, b.Held-a.Held
	if a.Ticks >= 0 && b.Ticks >= a.Ticks {
		b.Ticks -= a.Ticks
	} else {
		b.Ticks = -1
	}
	return b
}

// runs adds the runs of programs present at both begin and end.
func (v *visit) runs(p *record.Point, begin, end []bpfstat.Counters) {
	for _, b := range begin {
		i := slices.IndexFunc(end, func(e bpfstat.Counters) bool { return e.ID == b.ID })
		if i < 0 || end[i].Count < b.Count || end[i].Time < b.Time || end[i].Misses < b.Misses {
			p.Problems = append(p.Problems, fmt.Sprintf("program %d %s was unloaded", b.ID, v.names[b.ID]))
			v.ids = slices.DeleteFunc(v.ids, func(id uint32) bool { return id == b.ID })
			continue
		}
		e := end[i]
		p.Runs = append(p.Runs, record.ProgramRun{ID: b.ID, Name: v.names[b.ID], Count: int64(e.Count - b.Count), Time: int64(e.Time - b.Time), Misses: int64(e.Misses - b.Misses)})
	}
}

// counted handles a phase without statistics. Runs counted nevertheless are kept, so
// that the phase does not pass as one without statistics.
func counted(p *record.Point) {
	if !slices.ContainsFunc(p.Runs, func(r record.ProgramRun) bool { return r.Count > 0 || r.Time > 0 }) {
		p.Runs = []record.ProgramRun{}
		return
	}
	p.Problems = append(p.Problems, "statistics were on for another process")
}

// changes reports selected programs that appeared or disappeared. Counters cannot show
// this: the meter keeps a descriptor of each program until it lists them again.
func (v *visit) changes(p *record.Point) error {
	if v.path != nil {
		return nil // tare's own programs do not change
	}
	l, err := v.options.Meter.List(v.filter)
	if err != nil {
		return err
	}
	v.ids = slices.DeleteFunc(v.ids, func(id uint32) bool {
		if slices.ContainsFunc(l.Programs, func(x record.Program) bool { return x.ID == id }) {
			return false
		}
		how := "no longer matches the selection"
		if slices.ContainsFunc(l.Went, func(c bpfstat.Counters) bool { return c.ID == id }) {
			how = "was unloaded: its runs count until then"
		}
		p.Problems = append(p.Problems, fmt.Sprintf("program %d %s %s", id, v.names[id], how))
		return true
	})
	described := false
	for i := range l.Programs {
		if slices.Contains(v.ids, l.Programs[i].ID) {
			continue
		}
		if !described {
			if err := v.options.Meter.Describe(l); err != nil {
				return err
			}
			described = true
		}
		p.Problems = append(p.Problems, fmt.Sprintf("program %d %s was loaded: its runs count from the next phase on", l.Programs[i].ID, l.Programs[i].Name))
		delete(v.names, l.Programs[i].ID) // the id may be reused
		if err := v.program(l.Programs[i]); err != nil {
			return err
		}
	}
	return nil
}

// memory returns the memory of programs and maps, each map once.
func (v *visit) memory() (all []record.ProgramMem, err error) {
	l, err := v.options.Meter.List(v.filter)
	if err == nil {
		err = v.options.Meter.Describe(l)
	}
	if err != nil {
		return nil, err
	}
	seen := map[uint32]bool{}
	add := func(m record.ProgramMap) {
		if !seen[m.ID] {
			seen[m.ID] = true
			all = append(all, record.ProgramMem{ID: m.ID, Map: true, Name: m.Name, Memory: withInner(m)})
		}
	}
	for _, x := range l.Programs {
		all = append(all, record.ProgramMem{ID: x.ID, Name: cmp.Or(x.Full, x.Name), Memory: x.Memory})
		for _, m := range x.Maps {
			add(m)
		}
	}
	for _, m := range l.Loose {
		add(m.Map)
	}
	return all, nil
}

// during reads the memory in the middle of a load that starts now. The returned
// function waits for the result, which is empty if the load ended earlier.
func (v *visit) during() func() ([]record.ProgramMem, error) {
	over, read := make(chan bool), make(chan bool)
	var all []record.ProgramMem
	var err error
	go func() {
		defer close(read)
		select {
		case <-over:
		case <-time.After(v.options.Plan.Duration / 2):
			all, err = v.memory()
		}
	}()
	return func() ([]record.ProgramMem, error) {
		close(over)
		<-read
		return all, err
	}
}

// withInner returns the memory of a map with its inner maps; -1: unknown.
func withInner(m record.ProgramMap) int64 {
	if m.Memory < 0 || m.InnerMemory < 0 {
		return -1
	}
	return m.Memory + m.InnerMemory
}

// name returns how the programs were selected.
func (v *visit) name() string {
	p := &v.options.Plan
	switch {
	case v.path != nil:
		return "reference"
	case p.Kmesh:
		return "kmesh"
	case len(p.Names) > 0:
		return "name " + p.Names[0]
	case len(p.Pins) > 0:
		return "pin " + p.Pins[0]
	case len(p.Cgroups) > 0:
		return "cgroup " + p.Cgroups[0]
	case len(p.Owners) > 0:
		return "owner " + string(p.Owners[0])
	}
	return fmt.Sprintf("id %d", p.IDs[0])
}

// failed records a phase without figures. It records nothing if the run was
// interrupted.
func (v *visit) failed(ctx context.Context, phase string, why error) error {
	if ctx.Err() != nil {
		return nil
	}
	now := machine.Now()
	p := v.blank(phase, v.statistics, now, now)
	p.Failure = &record.Failure{Kind: record.FailError, Detail: why.Error()}
	return v.Line(p)
}

// blank returns a phase of the point without figures.
func (v *visit) blank(phase string, statistics bool, begun, ended int64) record.Point {
	asked := v.at
	asked.Statistics = statistics
	return record.Point{Round: v.Number, Order: v.Order, Case: v.options.Plan.Case, Datapath: v.name(), Phase: phase, Asked: asked, Begun: begun, Ended: ended,
		ClientCPU: -1, ServerCPU: -1, NodeCPU: -1, Runs: []record.ProgramRun{}}
}
