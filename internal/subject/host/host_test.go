package host

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
)

// The child process has workloads and a tmpfs with a file. The test kills it.
func TestCleanRemovesWorkloadsAndTmpfsOfAKilledRun(t *testing.T) {
	if dir := os.Getenv("TARE_TEST_HOST"); dir != "" {
		must.OK(t, holdTmpfs(rootsIn(dir)))
	}
	need.Root(t)
	dir, id := t.TempDir(), ""
	untouched.Check(t, dir, func() []string { return []string{id} })
	child := exec.Command(os.Args[0], "-test.run=^TestCleanRemovesWorkloadsAndTmpfsOfAKilledRun$")
	child.Env = append(os.Environ(), "TARE_TEST_HOST="+dir)
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	must.OK(t, err)
	said := ""
	for s := bufio.NewScanner(out); id == "" && s.Scan(); said += s.Text() + "\n" {
		if rest, ok := strings.CutPrefix(s.Text(), "holds "); ok {
			id = rest
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait() // the error is expected
	must.That(t, id != "", "the child has no tmpfs:\n%s", said)

	left, live, err := workspace.Leftovers(rootsIn(dir))
	must.That(t, err == nil && len(left) == 1 && left[0].RunID == id && len(live) == 0,
		"leftovers %+v, live %v, %v; want the run %s", left, live, err, id)
	if len(left[0].Mounts) != 2 || len(left[0].Processes) != 2 { // two lanes
		t.Errorf("mounts %v, workloads %v: want two of each", left[0].Mounts, left[0].Processes)
	}
	must.OK(t, left[0].Remove(false))
	points, err := mounts.Below(dir)
	check.That(t, err == nil && len(points) == 0, "still mounted: %v, %v", points, err)
	left, _, err = workspace.Leftovers(rootsIn(dir))
	check.That(t, err == nil && len(left) == 0, "remaining leftovers: %+v, %v", left, err)
}

func rootsIn(dir string) workspace.Roots {
	return workspace.Roots{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state")}
}

// holdTmpfs opens the host with a tmpfs for each of two lanes and writes to one of them. It
// then prints the run ID and waits to be killed.
func holdTmpfs(roots workspace.Roots) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	run, err := workspace.New(roots)
	if err != nil {
		return err
	}
	data, state, err := run.Dirs(Name)
	if err != nil {
		return err
	}
	s, err := New().Open(ctx, subject.Env{RunID: run.ID, Dir: data, StateDir: state, Lanes: 2, Timeout: time.Minute, Workload: subject.Workload{Tmpfs: 1 << 20}})
	if err != nil {
		return err
	}
	batch, err := s.Prepare(ctx, subject.Run, []int{0, 1})
	if err != nil {
		return err
	}
	if _, _, err := batch.Start(ctx); err != nil {
		return err
	}
	e, err := s.(subject.Executor).Exec(ctx, 0, probe.FillArgs(4096, subject.VolumePath+"/file"))
	if err == nil {
		_, err = probe.ParseFilled(e.Output)
	}
	if err != nil {
		return err
	}
	fmt.Println("holds " + run.ID)
	<-ctx.Done()
	return fmt.Errorf("the child was not killed: %w", ctx.Err())
}

func TestContainerPathsAreReplacedByHostPaths(t *testing.T) {
	with := &session{env: subject.Env{Dir: "/run/x"}, places: engine.Places{All: engine.Place{Device: engine.Device{Node: "/dev/loop7"}}}}
	without := &session{env: subject.Env{Dir: "/run/x"}}
	for _, c := range []struct {
		s         *session
		arg, want string
	}{
		{with, "/data", "/run/x/volume/1"},
		{with, "/data/a b", "/run/x/volume/1/a b"},
		{with, "--directory=/data", "--directory=/run/x/volume/1"},
		{with, "of=/data/file", "of=/run/x/volume/1/file"},
		{with, "--filename=/data/a:/data/b", "--filename=/run/x/volume/1/a:/run/x/volume/1/b"},
		{with, "of=/data/a:b", "of=/run/x/volume/1/a:b"},
		{with, "/dev/tare", "/dev/loop7"},
		{with, "--filename=/dev/tare", "--filename=/dev/loop7"},
		{with, "if=/dev/tare", "if=/dev/loop7"},
		{with, "/dev/tare/x", "/dev/tare/x"},
		{with, "/dev/tare2", "/dev/tare2"},
		{with, "/database", "/database"},
		{with, "server:/data", "server:/data"},
		{with, "--name=a=/data", "--name=a=/data"},
		{with, "echo /data", "echo /data"},
		{without, "of=/dev/tare", "of=/dev/tare"},
	} {
		check.Equal(t, c.arg, c.s.onHost(1, []string{"/probe", c.arg}), []string{"/run/x/probe", c.want})
	}
}
