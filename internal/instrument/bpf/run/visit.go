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
	// statistics says that the kernel's are on.
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
	// The order is fresh for each point: what comes second finds ports in
	// TIME_WAIT that what came first has left.
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

// prepare gives programs their weight and services, and makes the clients' cgroups.
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

// side is a load with the kernel's statistics, between a look at the idle node and
// one at the cooling one, or a load without them.
func (v *visit) side(ctx context.Context, statistics bool) (err error) {
	v.statistics = statistics
	if statistics {
		release, already, err := v.options.Meter.Statistics()
		if err != nil {
			return v.failed(ctx, record.PhaseLoad, fmt.Errorf("switch the kernel's statistics of BPF programs on: %w", err))
		}
		defer func() { err = errors.Join(err, release()) }()
		if already {
			if err := v.note(finding.StatisticsOn, "the kernel's statistics of BPF programs were on already, for somebody else: rounds in which they stayed on show nothing of their price",
				"end bpftop and its like, or sysctl -w kernel.bpf_stats_enabled=0, if nobody needs them"); err != nil {
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

// note is a finding that is told once.
func (v *visit) note(code, message, advice string) error {
	if v.told[code] {
		return nil
	}
	v.told[code] = true
	return v.Finding(record.Finding{Code: code, Level: "warning", Message: message, Advice: advice})
}

// still looks at the node without a load.
func (v *visit) still(ctx context.Context, phase string) error {
	v.Tell(pointName(&v.at), phase, "")
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

// load loads, with clients that were there before.
func (v *visit) load(ctx context.Context, statistics bool) error {
	v.Tell(pointName(&v.at), record.PhaseLoad, "")
	address, host := v.address()
	clients, err := v.options.Start(ctx, load.ClientOptions{
		URL: address, Host: host, Connections: v.at.Connections, QPS: v.at.QPS, KeepAlive: v.at.KeepAlive, ResolveEach: v.options.Plan.ResolveEach, Duration: v.options.Plan.Duration,
		Instances: max(v.at.Instances, 1), Groups: v.groups.Folders(), Timeout: v.options.Plan.Timeout,
	})
	if err != nil {
		return v.failed(ctx, record.PhaseLoad, err)
	}
	defer func() { _ = clients.Close() }() // what they did is known by then
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

// address is who is asked: whom the plan names, or a server of tare's own; of tare's
// own programs a service that leads there, by the name that the server has.
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
		return address, "" // the clients refuse it in words
	}
	if v.server == nil {
		host = u.Host
	}
	u.Host = v.path.Service(max(v.at.Services, 1) - 1).String()
	return u.String(), host
}

// moment is what is read at both edges of a phase.
type moment struct {
	at       int64
	counters []bpfstat.Counters
	group    record.GroupCPU
	node     int64
	cpus     int
	server   int64
	own      int64
}

// look reads counters where statistics are off, too: then they should stand still.
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

// between is what happened since a moment.
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
	if err := v.changes(&p); err != nil {
		return p, err
	}
	return p, nil
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

// runs are those of programs that were there from begin to end.
func (v *visit) runs(p *record.Point, begin, end []bpfstat.Counters) {
	for _, b := range begin {
		i := slices.IndexFunc(end, func(e bpfstat.Counters) bool { return e.ID == b.ID })
		if i < 0 || end[i].Count < b.Count || end[i].Time < b.Time || end[i].Misses < b.Misses {
			p.Problems = append(p.Problems, fmt.Sprintf("program %d %s went meanwhile", b.ID, v.names[b.ID]))
			v.ids = slices.DeleteFunc(v.ids, func(id uint32) bool { return id == b.ID })
			continue
		}
		e := end[i]
		p.Runs = append(p.Runs, record.ProgramRun{ID: b.ID, Name: v.names[b.ID], Count: int64(e.Count - b.Count), Time: int64(e.Time - b.Time), Misses: int64(e.Misses - b.Misses)})
	}
}

// counted says of a phase without statistics whether runs were counted all the same.
// If so they stay in it, so that it is not taken for one without; if not there are
// none.
func counted(p *record.Point) {
	if !slices.ContainsFunc(p.Runs, func(r record.ProgramRun) bool { return r.Count > 0 || r.Time > 0 }) {
		p.Runs = []record.ProgramRun{}
		return
	}
	p.Problems = append(p.Problems, "statistics were on for somebody else meanwhile")
}

// changes looks for programs that were chosen and were not there before, and for
// those that are not any more. Their counters alone do not tell: the meter holds a
// descriptor of each program until it lists them again.
func (v *visit) changes(p *record.Point) error {
	if v.path != nil {
		return nil // its programs are known
	}
	l, err := v.options.Meter.List(v.filter)
	if err != nil {
		return err
	}
	v.ids = slices.DeleteFunc(v.ids, func(id uint32) bool {
		if slices.ContainsFunc(l.Programs, func(x record.Program) bool { return x.ID == id }) {
			return false
		}
		how := "is there, and is not one of those that were chosen any more"
		if slices.ContainsFunc(l.Went, func(c bpfstat.Counters) bool { return c.ID == id }) {
			how = "went meanwhile: its runs count up to then"
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
		p.Problems = append(p.Problems, fmt.Sprintf("program %d %s came meanwhile: its runs count from the next phase on", l.Programs[i].ID, l.Programs[i].Name))
		delete(v.names, l.Programs[i].ID) // its number may have been another's
		if err := v.program(l.Programs[i]); err != nil {
			return err
		}
	}
	return nil
}

// memory is what programs and maps occupy, each map once.
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

// during reads the memory in the middle of a load that begins now. What it returns waits
// for that, and gives nothing where the load ended before.
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

// withInner is the memory of a map and of the maps that lie in it; -1: not known.
func withInner(m record.ProgramMap) int64 {
	if m.Memory < 0 || m.InnerMemory < 0 {
		return -1
	}
	return m.Memory + m.InnerMemory
}

// name is what the programs were chosen by.
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

// failed records a phase that gives no figures. One that was interrupted gives
// nothing at all.
func (v *visit) failed(ctx context.Context, phase string, why error) error {
	if ctx.Err() != nil {
		return nil
	}
	now := machine.Now()
	p := v.blank(phase, v.statistics, now, now)
	p.Failure = &record.Failure{Kind: record.FailError, Detail: why.Error()}
	return v.Line(p)
}

// blank is a phase of the point of which nothing is known yet.
func (v *visit) blank(phase string, statistics bool, begun, ended int64) record.Point {
	asked := v.at
	asked.Statistics = statistics
	return record.Point{Round: v.Number, Order: v.Order, Case: v.options.Plan.Case, Datapath: v.name(), Phase: phase, Asked: asked, Begun: begun, Ended: ended,
		ClientCPU: -1, ServerCPU: -1, NodeCPU: -1, Runs: []record.ProgramRun{}}
}
