package cli

import (
	"context"
	"slices"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/record"
)

// weighStorage runs a storage plan.
func weighStorage(ctx context.Context, s *app, p storage.Options, out outputFlags) error {
	var options storagerun.Options
	return weigh(ctx, s, &out, weighing{
		experiment: storage.Name, engines: p.Engines, metered: true, ahead: p.Ahead,
		targets: func() (targets []subject.Target, skipped []record.Finding, err error) {
			volumes, jobs, err := p.Resolved()
			if err == nil && p.Missing != terms.MissingSkip {
				err = checkVolumes(volumes)
			}
			if err == nil {
				err = checkJobs(&p, jobs)
			}
			if err != nil {
				return nil, nil, err
			}
			if err := carryTools(ctx, &p, &options); err != nil {
				return nil, nil, err
			}
			return choose(ctx, s, selection{Whom: &p.Whom}, out.quiet)
		},
		run: func(o *session) (*record.Record, instrument.Judgement, error) {
			options.Plan, options.Options, options.Targets, options.Meter = p, o.options, o.targets, o.meter
			return outcome(o.storage(ctx, &options))
		},
	})
}

// storage prepares this machine for the run and runs it.
func (o *session) storage(ctx context.Context, options *storagerun.Options) (*record.Record, *storage.Judgement, error) {
	dir, _, err := o.run.Dirs("-host")
	if err == nil {
		err = probe.Install(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	options.Run = func(ctx context.Context, args []string) (subject.Executed, error) {
		args = slices.Clone(args)
		if args[0] == probe.Name {
			args[0] = dir + probe.Name
		}
		return child.Run(ctx, child.Command{Args: args, Env: lane.Environment(nil)})
	}
	options.Prepare = func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error) {
		dir, err := o.volumeDir(v)
		if err != nil {
			return nil, err
		}
		return volume.Prepare(ctx, v, volume.Asked{RunID: o.run.ID, Dir: dir, Bytes: bytes, Destroys: options.Plan.Destroys})
	}
	return storagerun.Run(ctx, *options)
}

// volumeDir creates a volume's folder, on the user's disk if a source is given.
func (o *session) volumeDir(v storage.Volume) (string, error) {
	if v.Kind == record.VolumeBind && v.Source != "" {
		return o.run.Elsewhere(v.Source)
	}
	dir, _, err := o.run.Dirs("-volume-" + v.Kind)
	return dir, err
}
