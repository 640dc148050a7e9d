// Package run measures the cost of BPF programs while connections are made: CPU time
// per core and node, whether a workload's CPU limit covers it, and the memory of maps.
//
// The package defines one visit of a point; core/run does the rounds and visits every
// point (connections, program weight, services) once per round. A visit measures the
// node idle, under load and cooling down. It repeats the load without the kernel's
// statistics, in random order, to measure the overhead of the statistics. The programs
// are chosen by a filter, or are tare's own; see package datapath.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Options holds the plan of a run and its dependencies.
type Options struct {
	run.Options
	Plan  bpf.Options
	Meter Meter
	// Place creates a cgroup v2 directory to attach programs to. remove removes it.
	Place func() (path string, remove func() error, err error)
	// Attach attaches tare's own programs.
	Attach func(datapath.Options) (Datapath, error)
	// Serve starts tare's own server. Start starts clients, which wait for Run.
	Serve func(ctx context.Context) (Server, error)
	Start func(ctx context.Context, o load.ClientOptions) (Clients, error)
	// Limit creates cgroups below place for the clients, which share a limit in CPUs
	// (0: none).
	Limit func(place string, cpus float64, instances int) (Groups, error)
	// Node returns the total busy time (ns) of all CPUs, and their number.
	Node func() (busy int64, cpus int, err error)
	// Own returns the CPU time (ns) of tare itself.
	Own func() int64
}

// Meter reads programs; see [bpfstat.Meter].
type Meter interface {
	Statistics() (release func() error, already bool, err error)
	List(bpfstat.Filter) (*bpfstat.Listing, error)
	Counters(ids []uint32, into []bpfstat.Counters) ([]bpfstat.Counters, error)
	Describe(*bpfstat.Listing) error
}

// Datapath is the set of tare's own programs; see [datapath.Datapath].
type Datapath interface {
	Service(i int) netip.AddrPort
	IDs() []uint32
	SetHeavy(rounds int64) error
	SetServices(n int) error
	Close() error
}

// Server is the target of the clients.
type Server interface {
	Addr() netip.AddrPort
	URL() string
	CPU() int64
	Close() error
}

// Clients generate the load. Run starts all of them at once and waits until they
// finish.
type Clients interface {
	Run(ctx context.Context) (load.Result, error)
	Close() error
}

// Groups are the cgroups of the clients.
type Groups interface {
	Folders() [][]string // per client
	Read() (record.GroupCPU, error)
	Close() error
}

// Run executes the plan and returns its record and judgement; see [run.Finish].
func Run(ctx context.Context, o Options) (*record.Record, *bpf.Judgement, error) {
	o.Plan.Seed = run.Seed(o.Plan.Seed)
	r, err := run.Begin[run.Session](o.Options, bpf.Name, o.Plan, []subject.Target(nil))
	s := &schedule{Run: r, options: o, points: points(&o.Plan), names: map[uint32]string{}}
	why := ""
	if err == nil {
		why, err = s.all(ctx)
	}
	if err != nil && ctx.Err() == nil && len(r.Record.Points) > 0 { // without points the run is judged as failed
		err = errors.Join(err, r.Finding(record.Finding{Code: finding.NotWeighed, Level: "error",
			Message: fmt.Sprintf("the run ended by an error after %d points: %s", s.done, err), Advice: "points that were not reached are in no figure"}))
	}
	return run.Finish(ctx, r, why, err, bpf.Judge)
}

type turn = run.Turn[run.Session]

type schedule struct {
	*run.Run[run.Session]
	options Options
	points  []record.Asked
	path    Datapath // nil if programs were chosen
	server  Server   // nil if the server is external
	place   string   // cgroup v2 directory of the clients
	filter  bpfstat.Filter
	ids     []uint32 // known program ids
	names   map[uint32]string
	done    int // points
	// alreadyOn reports that another process had enabled the kernel's statistics.
	alreadyOn bool
}

// all sets up what the points share and runs the rounds.
func (r *schedule) all(ctx context.Context) (why string, err error) {
	p := &r.options.Plan
	if err := r.ready(ctx); err != nil {
		return "", err
	}
	return r.Perform(ctx, run.Rounds[run.Session]{
		Rounds: p.Rounds, Budget: p.Budget, Fewer: " or points", Visit: r.visit,
		Turns: func(at run.Round) []turn {
			turns := make([]turn, len(r.points))
			for i := range turns {
				turns[i] = turn{Round: at, Part: i}
			}
			return run.Shuffled(p.Seed, uint64(at.Number), turns)
		},
	})
}

// points returns the points of the plan, in order. A quota plan gets one more point for
// comparison: the heaviest load without a limit.
func points(p *bpf.Options) []record.Asked {
	var all []record.Asked
	for _, services := range p.Services {
		for _, heavy := range p.Heavy {
			for _, connections := range p.Connections {
				if p.Datapath == "" {
					services = 0 // the number of services in the maps is unknown
				}
				all = append(all, record.Asked{URL: p.URL, Connections: connections, QPS: p.QPS, KeepAlive: p.KeepAlive, Seconds: p.Duration.Seconds(),
					CPUs: p.CPUs, Instances: p.Instances, Heavy: heavy, Services: services})
			}
		}
	}
	if p.Case == record.CaseQuota && p.CPUs > 0 {
		heaviest := slices.MaxFunc(all, func(a, b record.Asked) int { return cmp.Compare(a.Heavy, b.Heavy) })
		heaviest.CPUs = 0
		all = append(all, heaviest)
	}
	return all
}

// ready starts the server, attaches or finds the programs, and records them.
func (r *schedule) ready(ctx context.Context) error {
	p := &r.options.Plan
	place, remove, err := r.options.Place()
	if err != nil {
		return fmt.Errorf("make a cgroup: %w", err)
	}
	r.place = place
	r.OnClose(remove)
	if p.URL == "" {
		if r.server, err = r.options.Serve(ctx); err != nil {
			return fmt.Errorf("start a server: %w", err)
		}
		r.OnClose(r.server.Close)
	}
	r.filter = Filter(&p.Choice)
	switch {
	case p.Datapath == bpf.DatapathReference:
		err = r.attach(ctx)
	case len(p.Cgroups) > 0:
		r.place, err = standing(p.Cgroups)
	}
	if err != nil {
		return err
	}
	l, err := r.options.Meter.List(r.filter)
	if err != nil {
		return err
	}
	if len(l.Programs) == 0 {
		return errors.New("no program is loaded that was chosen; tare bpf list shows all, --datapath reference brings its own")
	}
	if err := r.options.Meter.Describe(l); err != nil {
		return err
	}
	for i := range l.Programs {
		if err := r.program(l.Programs[i]); err != nil {
			return err
		}
	}
	for _, a := range l.Loose {
		r.Record.Maps = append(r.Record.Maps, a)
		if err := r.Line(a); err != nil {
			return err
		}
	}
	return nil
}

// Filter returns the filter for a choice of programs.
func Filter(c *bpf.Choice) bpfstat.Filter {
	f := bpfstat.Filter{Kmesh: c.Kmesh, Names: c.Names, Pins: c.Pins, Cgroups: c.Cgroups}
	for _, owner := range c.Owners {
		f.Owners = append(f.Owners, string(owner))
	}
	for _, id := range c.IDs {
		f.IDs = append(f.IDs, uint32(id))
	}
	return f
}

func (r *schedule) attach(ctx context.Context) error {
	p := &r.options.Plan
	backend, err := r.backend(ctx)
	if err != nil {
		return err
	}
	d, err := r.options.Attach(datapath.Options{Cgroup: r.place, Most: max(1, slices.Max(p.Services)), Grow: p.Case == record.CaseMemory, Backend: backend})
	if err != nil {
		return fmt.Errorf("attach the reference datapath: %w", err)
	}
	r.path = d
	r.OnClose(d.Close)
	r.filter = bpfstat.Filter{IDs: d.IDs()}
	return nil
}

// backend returns the address that the services of tare's own programs forward to:
// tare's own server, or the server in the plan.
func (r *schedule) backend(ctx context.Context) (netip.AddrPort, error) {
	if r.server != nil {
		return r.server.Addr(), nil
	}
	at, err := load.Find(ctx, r.options.Plan.URL)
	if err != nil {
		return at, fmt.Errorf("find where the services lead: %w", err)
	}
	if !at.Addr().Is4() || at.Addr().IsUnspecified() {
		return at, fmt.Errorf("the services of the reference datapath lead to IPv4 addresses, and the URL's host is at %v: name a host that has one, or choose programs that are loaded", at.Addr())
	}
	return at, nil
}

// program records a program the first time it is seen.
func (r *schedule) program(x record.Program) error {
	if _, known := r.names[x.ID]; known {
		return nil
	}
	r.names[x.ID], r.ids = cmp.Or(x.Full, x.Name), append(r.ids, x.ID)
	return r.Line(x)
}

func pointName(a *record.Asked) string {
	name := fmt.Sprintf("%d connections", a.Connections)
	if a.Heavy > 0 {
		name += fmt.Sprintf(", weight %d", a.Heavy)
	}
	if a.Services > 1 {
		name += fmt.Sprintf(", %d services", a.Services)
	}
	if a.CPUs > 0 {
		name += fmt.Sprintf(", limit %g", a.CPUs)
	}
	return name
}
