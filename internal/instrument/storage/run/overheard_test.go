package run_test

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/storage"
	storagerun "github.com/tare-bench/tare/internal/instrument/storage/run"
	"github.com/tare-bench/tare/internal/instrument/storage/run/volume"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/subject/host"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// overheard is a target that records commands and their output.
type overheard struct {
	subject.Target
	calls []call
}

type call struct {
	line string
	said subject.Executed
}

func (o *overheard) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	s, err := o.Target.Open(ctx, env)
	if err != nil {
		return nil, err
	}
	return &session{s, s.(subject.Sandboxed), o}, nil
}

type session struct {
	subject.Session
	subject.Sandboxed
	of *overheard
}

func (s *session) Exec(ctx context.Context, lane0 int, args []string) (subject.Executed, error) {
	e, err := s.Session.(subject.Executor).Exec(ctx, lane0, args)
	s.of.calls = append(s.of.calls, call{lane.Quote(args), e})
	return e, err
}

// weigh runs one round of jobs on the host and in runc, without the page cache. It
// returns the cells of the stored record, each with the output of its tool. If anything
// is left on the machine, the test fails.
func weigh(t *testing.T, name string, jobs []storage.Job, volumes ...string) []heard {
	t.Helper()
	need.Root(t)
	runtime := must.Get(oci.New(t.Context(), "runc", ""))(t)
	targets := []*overheard{{Target: host.New()}, {Target: runtime}}
	p := storage.Defaults()
	for i := range jobs {
		jobs[i].Tool = name
	}
	// Drop only the files, because other processes use the caches of the machine.
	p.Jobs, p.Volumes, p.Rounds, p.Ceiling, p.Drop = jobs, volumes, 1, 0, storage.DropFiles
	p.Settle = 100 * time.Millisecond
	rec := performed(t, name, p, targets)
	var out []heard
	for _, c := range rec.Cells {
		h := heard{name: c.Target + ", " + c.Job + " on " + c.Volume, cell: c}
		must.That(t, c.Failure == nil && c.Reported != nil, "%s: no figures: %+v", h.name, c.Failure)
		of := targets[slices.IndexFunc(targets, func(o *overheard) bool { return o.Info().Name == c.Target })]
		i := slices.IndexFunc(of.calls, func(x call) bool { return x.line == c.Command || x.said.Command == c.Command })
		must.That(t, i >= 0, "%s: %s did not run", h.name, c.Command)
		h.said, of.calls = of.calls[i].said, of.calls[i+1:]
		out = append(out, h)
	}
	return out
}

// performed returns the stored record of a plan.
func performed(t *testing.T, name string, p storage.Options, targets []*overheard) *record.Record {
	t.Helper()
	program, err := hosttools.Find(t.Context(), name)
	if name == storage.ToolFio {
		program, err = hosttools.Fio(t.Context())
	}
	must.OK(t, err)
	dir := t.TempDir()
	var ids []string
	untouched.Check(t, dir, func() []string { return ids })
	own := must.Get(workspace.New(workspace.Roots{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state")}))(t)
	ids = append(ids, own.ID)
	meter := must.Get(snapshot.New())(t)
	defer meter.Close()
	stored := filepath.Join(dir, "r.jsonl")
	w := must.Get(record.Create(stored))(t)
	probes := t.TempDir()
	must.OK(t, probe.Install(probes))
	o := storagerun.Options{
		Options: run.Options{RunID: own.ID, Dirs: own.Dirs, Write: w.Write},
		Plan:    p, Meter: meter, Files: program.Files, Programs: map[string]string{name: program.Path},
		Run: func(ctx context.Context, args []string) (subject.Executed, error) {
			args = slices.Clone(args)
			args[0] = probes + args[0]
			return child.Run(ctx, child.Command{Args: args, Env: lane.Environment(nil)})
		},
		Prepare: func(ctx context.Context, v storage.Volume, bytes int64) (*volume.Volume, error) {
			dir, _, err := own.Dirs("-volume-" + v.Kind)
			if err != nil {
				return nil, err
			}
			return volume.Prepare(ctx, v, volume.Asked{RunID: own.ID, Dir: dir, Bytes: bytes})
		},
	}
	for _, x := range targets {
		o.Targets = append(o.Targets, x)
	}
	_, _, err = storagerun.Run(t.Context(), o)
	left := files(filepath.Join(dir, "data"))
	must.OK(t, errors.Join(err, w.Close(), own.Close()))
	check.That(t, len(left) == 0, "the jobs left %v", left)
	return must.Get(record.Load(stored))(t)
}

// files returns the files below a run's folder except its own mark.
func files(root string) []string {
	var all []string
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && d.Name() != ".tare-run" {
			all = append(all, path)
		}
		return nil
	})
	return all
}
