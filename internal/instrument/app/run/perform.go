package run

import (
	"context"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
)

// Perform measures a service under load on every target.
func Perform(ctx context.Context, p *app.Options, weigh perform.Weigh) error {
	p.Serve(&p.Workload)
	var fio *hosttools.Program // nil if no neighbour needs it
	return weigh(ctx, &perform.Measure{
		Metered: true, Lanes: 2, Workload: &p.Workload, Neighbours: p.Images(), Named: []*string{&p.Baseline},
		Check: func() error {
			need := load.Need{Connections: p.Filled().Connections, KeepAlive: !p.Anew, Local: true}
			err := need.Check()
			if err == nil && slices.ContainsFunc(p.Neighbours, func(n string) bool { return strings.HasPrefix(strings.TrimSpace(n), "storage ") }) {
				fio, err = hosttools.Fio(ctx)
			}
			return err
		},
		Run: func(s *perform.Session) (_ *record.Record, _ instrument.Judgement, err error) {
			o := Options{Plan: *p, Options: s.Options, Targets: s.Targets, Meter: s.Meter, Workload: s.Workload,
				Pressure: func(pid int) (cpu, memory, io int64, err error) {
					return nodestat.GroupPressure(machine.Root(""), pid)
				}}
			var noise subject.Workload // for neighbours without an image
			if fio != nil {
				noise.Files, o.FioPath = fio.Files, fio.Path
				if noise.Volume, _, err = s.Dirs("-volume"); err != nil {
					return nil, nil, err
				}
			}
			images := s.Neighbours
			for _, text := range p.Neighbours {
				w := noise
				if n, err := app.ParseNeighbour(text); err == nil && n.Image != "" {
					w, images = images[0], images[1:]
				}
				o.Neighbours = append(o.Neighbours, w)
			}
			return perform.Outcome(Run(ctx, o))
		},
	})
}
