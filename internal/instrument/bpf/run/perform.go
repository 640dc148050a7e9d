package run

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/bpf/run/datapath"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/record"
)

// Perform runs a bpf plan.
func Perform(ctx context.Context, p *bpf.Options, weigh perform.Weigh) error {
	var meter *bpfstat.Meter
	defer func() {
		if meter != nil {
			_ = meter.Close() // nothing was written
		}
	}()
	return weigh(ctx, &perform.Measure{
		Check: func() (err error) {
			if err = enoughFor(ctx, p); err == nil {
				meter, err = bpfstat.Open()
			}
			return err
		},
		Run: func(s *perform.Session) (*record.Record, instrument.Judgement, error) {
			return perform.Outcome(Run(ctx, Options{
				Plan: *p, Options: s.Options, Meter: meter, Node: nodeCPU, Own: procs.OwnCPU,
				Place:  func() (string, func() error, error) { return datapath.Place(s.RunID) },
				Attach: func(d datapath.Options) (Datapath, error) { return datapath.Attach(d) },
				Serve:  func(ctx context.Context) (Server, error) { return load.Serve(ctx) },
				Start:  func(ctx context.Context, c load.ClientOptions) (Clients, error) { return load.Start(ctx, c) },
				Limit: func(place string, cpus float64, instances int) (Groups, error) {
					return MakeGroups(s.RunID, place, cpus, instances)
				},
			}))
		},
	})
}

// enoughFor checks that this machine can generate the load of the plan. If the server runs
// here, it counts the server's needs too.
func enoughFor(ctx context.Context, p *bpf.Options) error {
	local := true
	if p.URL != "" {
		at, err := load.Find(ctx, p.URL) // a host that cannot be resolved fails the run; the record has the reason
		local = err == nil && here(at.Addr())
	}
	for _, n := range p.Connections {
		need := load.Need{Connections: n, KeepAlive: p.KeepAlive, Instances: p.Instances, Local: local}
		if err := need.Check(); err != nil {
			return fmt.Errorf("--connections: %w", err)
		}
	}
	return nil
}

// here reports whether addr belongs to this machine.
func here(at netip.Addr) bool {
	own, err := net.InterfaceAddrs()
	return at.IsLoopback() || at.IsUnspecified() || err == nil && slices.ContainsFunc(own, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == at.WithZone("")
	})
}

// nodeCPU returns the busy time of all CPUs and their number.
func nodeCPU() (busy int64, cpus int, err error) {
	c, err := nodestat.ReadCPU(machine.Root(""))
	if err != nil {
		return 0, 0, err
	}
	const tick = 10_000_000 // ns of USER_HZ
	cpus, err = machine.Root("").Online()
	return int64(c.Busy) * tick, cpus, err
}
