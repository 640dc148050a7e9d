package enginetest

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/floor"
	"github.com/tare-bench/tare/internal/subject/host"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
)

// Workspace returns the environment of a run whose folders are created below dir as by
// tare itself. Leftovers of the run on the machine fail the test.
func Workspace(t *testing.T, target string, lanes int) (env subject.Env, dir string) {
	t.Helper()
	dir = t.TempDir()
	run := must.Get(workspace.New(workspace.Roots{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state")}))(t)
	untouched.Check(t, dir, func() []string { return []string{run.ID} })
	t.Cleanup(func() { must.OK(t, run.Close()) })
	data, state, err := run.Dirs(target)
	must.OK(t, err)
	return subject.Env{RunID: run.ID, Dir: data, StateDir: state, Lanes: lanes, Timeout: 2 * time.Minute}, dir
}

// Local returns the targets that need no engine. A runtime that is not installed is
// skipped by name.
var Local = []struct {
	Name string
	New  func(ctx context.Context) (subject.Target, error)
}{
	{"host", func(context.Context) (subject.Target, error) { return host.New(), nil }},
	{"floor", func(context.Context) (subject.Target, error) { return floor.New() }},
	{"runc", func(ctx context.Context) (subject.Target, error) { return oci.New(ctx, "runc", "") }},
	{"crun", func(ctx context.Context) (subject.Target, error) { return oci.New(ctx, "crun", "") }},
	{"youki", func(ctx context.Context) (subject.Target, error) {
		return oci.New(ctx, "youki", engines.Youki())
	}},
	{"runsc", func(ctx context.Context) (subject.Target, error) { return oci.New(ctx, "runsc", engines.Runsc()) }},
}
