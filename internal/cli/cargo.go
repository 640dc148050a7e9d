package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// load prepares the requested workload and those of its neighbours, and describes them in
// the record's header.
func (o *session) load(ctx context.Context, w *setting.Workload, beside []setting.Workload) (err error) {
	if w != nil && w.Is() {
		if o.Workload.Cargo, o.Header.Workload, err = o.make(ctx, w, "-cargo"); err != nil {
			return err
		}
	}
	for i := range beside {
		c, told, err := o.make(ctx, &beside[i], fmt.Sprintf("-cargo-%d", i+1))
		if err != nil {
			return fmt.Errorf("--neighbour %s: taken as an image, since it starts with none of spin, hold and storage: %w", beside[i].Image, err)
		}
		o.Neighbours = append(o.Neighbours, subject.Workload{Cargo: c})
		o.Header.Neighbours = append(o.Header.Neighbours, *told)
	}
	return nil
}

// make prepares a workload in a folder of the run.
func (o *session) make(ctx context.Context, w *setting.Workload, name string) (*cargo.Cargo, *record.Workload, error) {
	dir, _, err := o.Dirs(name)
	if err != nil {
		return nil, nil, err
	}
	c, err := cargo.Make(ctx, *w, dir, lenders(o.Targets))
	if err != nil {
		return nil, nil, err
	}
	told := &record.Workload{
		Source: c.Source, Image: c.Image.Ref, Command: c.Args, Host: c.Host, User: fmt.Sprintf("%d:%d", c.UID, c.GID), Dir: c.Dir,
	}
	if w.Image != "" {
		told.Digest = c.Digest
	}
	if stop := (&subject.Workload{Cargo: c}).StopSignal(); stop != "TERM" {
		told.Stop = stop
	}
	for _, v := range w.Env {
		told.Env = append(told.Env, v.Name())
	}
	for _, m := range c.Mounts {
		told.Mounts = append(told.Mounts, string(m))
	}
	return c, told, nil
}

// lenders returns the engines of the targets that can export an image, each engine once.
func lenders(targets []subject.Target) (all []cargo.Lender) {
	seen := map[string]bool{}
	for _, t := range targets {
		engine, _, _ := strings.Cut(t.Info().Name, "/")
		if l, ok := t.(subject.ImageExporter); ok && !seen[engine] {
			seen[engine] = true
			all = append(all, cargo.Lender{Name: engine, Save: l.ExportImage})
		}
	}
	return all
}

// withoutValues removes the values of environment variables from a command line.
func withoutValues(args []string) []string {
	out := append([]string{}, args...)
	for i, arg := range out {
		variable, ahead := strings.CutPrefix(arg, "--env=")
		prefix := "--env="
		if !ahead && i > 0 && out[i-1] == "--env" {
			variable, ahead, prefix = arg, true, ""
		}
		if ahead {
			out[i] = prefix + setting.Variable(variable).Name()
		}
	}
	return out
}
