package run

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/record"
)

// Perform runs a storage plan.
func Perform(ctx context.Context, p *storage.Options, weigh perform.Weigh) error {
	var o Options
	return weigh(ctx, &perform.Measure{
		Metered: true,
		Check: func() error {
			volumes, jobs, err := p.Resolved()
			if err == nil && p.Missing != terms.MissingSkip {
				err = checkVolumes(volumes)
			}
			if err == nil {
				err = checkJobs(p, jobs)
			}
			if err == nil {
				err = o.carryTools(ctx, p)
			}
			return err
		},
		Run: func(s *perform.Session) (*record.Record, instrument.Judgement, error) {
			o.Plan, o.Options, o.Targets, o.Meter = *p, s.Options, s.Targets, s.Meter
			if err := o.onHost(s); err != nil {
				return nil, nil, err
			}
			return perform.Outcome(Run(ctx, o))
		},
	})
}

// onHost prepares this machine for the run.
func (o *Options) onHost(s *perform.Session) error {
	dir, _, err := s.Dirs("-host")
	if err == nil {
		err = probe.Install(dir)
	}
	o.Run = func(ctx context.Context, args []string) (subject.Executed, error) {
		args = slices.Clone(args)
		if args[0] == probe.Name {
			args[0] = dir + probe.Name
		}
		return child.Run(ctx, child.Command{Args: args, Env: lane.Environment(nil)})
	}
	o.Prepare = func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error) {
		dir, err := volumeDir(s, v)
		if err != nil {
			return nil, err
		}
		return volume.Prepare(ctx, v, volume.Asked{RunID: s.RunID, Dir: dir, Bytes: bytes, Destroys: o.Plan.Destroys})
	}
	return err
}

// volumeDir creates a volume's folder, on the user's disk if a source is given.
func volumeDir(s *perform.Session, v storage.Volume) (string, error) {
	if v.Kind == record.VolumeBind && v.Source != "" {
		return s.FolderBelow(v.Source)
	}
	dir, _, err := s.Dirs("-volume-" + v.Kind)
	return dir, err
}

// checkJobs rejects jobs that no tool can run. A plan may contain the options of a job
// file.
func checkJobs(p *storage.Options, jobs []storage.Job) error {
	for _, j := range jobs {
		at := tool.Place{Program: "/" + j.Tool, Dir: subject.VolumePath, Limit: p.RuntimeLimit, In: probe.InArgs}
		_, err := tool.Files(j, at)
		if err == nil {
			_, err = tool.Command(j, at)
		}
		if err != nil {
			return fmt.Errorf("--jobs: %w", err)
		}
	}
	return nil
}

// checkVolumes rejects devices that cannot be overwritten and missing folders, which are
// most likely typos. Both are checked again before they are used.
func checkVolumes(volumes []storage.Volume) error {
	for _, v := range volumes {
		switch {
		case v.Kind == record.VolumeDevice:
			if err := volume.Free(v.Source); err != nil {
				return perform.Missing(fmt.Errorf("--volume %s: %w\n%s", v.Name, err, volume.Advice(err)))
			}
		case v.Kind == record.VolumeBind && v.Source != "":
			if info, err := os.Stat(v.Source); err != nil {
				return perform.Missing(fmt.Errorf("--volume %s: %w; name an existing folder", v.Name, err))
			} else if !info.IsDir() {
				return perform.Missing(fmt.Errorf("--volume %s: not a folder; name a folder on the disk to measure", v.Name))
			}
		}
	}
	return nil
}

// carryTools finds the tools that the jobs need. It also uses fio, if available, to measure
// the device's limit.
func (o *Options) carryTools(ctx context.Context, p *storage.Options) error {
	o.Programs = map[string]string{}
	for _, j := range p.Jobs {
		name := j.Tool
		if o.Programs[name] != "" {
			continue
		}
		program, err := FindTool(ctx, name)
		if err != nil {
			return perform.Missing(err)
		}
		if o.Files, err = hosttools.Together(o.Files, program.Files); err != nil {
			return fmt.Errorf("copy %s into sandboxes: %w", name, err)
		}
		o.Programs[name] = program.Path
	}
	if o.Fio = o.Programs[storage.ToolFio]; o.Fio == "" && p.Ceiling > 0 {
		if fio, err := hosttools.Fio(ctx); err == nil {
			o.Fio = fio.Path
		}
	}
	return nil
}

// FindTool finds one of the programs that generate storage load.
func FindTool(ctx context.Context, name string) (*hosttools.Program, error) {
	if name == storage.ToolFio {
		return hosttools.Fio(ctx)
	}
	return hosttools.Find(ctx, name)
}
