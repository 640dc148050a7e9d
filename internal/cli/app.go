package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument"
	service "github.com/tare-bench/tare/internal/instrument/app"
	servicerun "github.com/tare-bench/tare/internal/instrument/app/run"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/nodestat"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
)

// weighApp measures a service under load on every target.
func weighApp(ctx context.Context, s *app, p service.Options, out outputFlags) error {
	p.Serve(&p.Workload)
	var noise subject.Workload // for neighbours without an image
	options := servicerun.Options{
		Plan: p,
		Pressure: func(pid int) (cpu, memory, io int64, err error) {
			return nodestat.GroupPressure(machine.Root(""), pid)
		},
	}
	return weigh(ctx, s, &out, weighing{
		experiment: service.Name, engines: p.Engines, metered: true, lanes: 2, ahead: p.Ahead, workload: &p.Workload, beside: p.Images(),
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			need := load.Need{Connections: p.Filled().Connections, KeepAlive: !p.Anew, Local: true}
			if err := need.Check(); err != nil {
				return nil, nil, err
			}
			if slices.ContainsFunc(p.Neighbours, func(n string) bool { return strings.HasPrefix(strings.TrimSpace(n), "storage ") }) {
				fio, err := hosttools.Fio(ctx)
				if err != nil {
					return nil, nil, err
				}
				noise.Files, options.FioPath = fio.Files, fio.Path
			}
			return choose(ctx, s, selection{Whom: &p.Whom, named: []*string{&options.Plan.Baseline}, workload: &p.Workload}, out.quiet)
		},
		run: func(o *session) (_ *record.Record, _ instrument.Judgement, err error) {
			options.Options, options.Targets, options.Meter = o.options, o.targets, o.meter
			options.Workload.Cargo = o.cargo
			if options.FioPath != "" {
				if noise.Volume, _, err = o.run.Dirs("-volume"); err != nil {
					return nil, nil, err
				}
			}
			images := o.beside
			for _, text := range p.Neighbours {
				w := noise
				if n, err := service.ParseNeighbour(text); err == nil && n.Image != "" {
					w, images = subject.Workload{Cargo: images[0]}, images[1:]
				}
				options.Beside = append(options.Beside, w)
			}
			return outcome(servicerun.Run(ctx, options))
		},
	})
}
