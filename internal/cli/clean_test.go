package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
)

// The test starts a process with the name and arguments of a Kata shim. It outlives the
// killed run and recreates the folder of the run when it exits.
func TestCleanWaitsForAnUnfinishedStartAndRetries(t *testing.T) {
	untouched.Alone(t)
	dir := place(t)
	id := workspace.NewID()
	own := filepath.Join(workspace.DefaultRoots().Data, id)
	must.OK(t, os.MkdirAll(own, 0o711))
	must.Write(t, filepath.Join(own, ".tare-run"), "tare run "+id+"\n")
	in, w, err := os.Pipe()
	must.OK(t, err)
	shim := exec.Cmd{Path: "/bin/sh", Args: []string{"containerd-shim-kata-v2", "-c", "read x; mkdir -p " + own + "/late", "sh", "-id", "tare-" + id + "-0-1"}, Stdin: in, Dir: dir}
	must.OK(t, shim.Start())
	ended := make(chan error, 1)
	go func() { ended <- shim.Wait() }()
	file := must.Get(os.Create(filepath.Join(dir, "said")))(t)
	defer file.Close()
	cmd := exec.Command(program(t, dir), "clean")
	cmd.Stdout, cmd.Stderr = file, file
	must.OK(t, cmd.Start())
	await(t, "a word on what is waited for", func() bool {
		return strings.Contains(must.Read(t, file.Name()), "waiting for 1 processes of interrupted starts")
	})
	must.Get(os.Stat(own))(t) // the file contains the paths
	_ = w.Close()
	err = cmd.Wait()
	if text := must.Read(t, file.Name()); err != nil || !strings.Contains(text, id+": removed") || !strings.Contains(text, "a second look found nothing more") {
		t.Errorf("%v\n%s", err, text)
	}
	<-ended
	if _, err := os.Stat(own); err == nil {
		t.Error("its folder still exists")
	}
	ends(t, ExitDone, "nothing was left behind", "clean")
}

// An abandoned start leaves a sandbox's folder after the first check.
func TestLeftoversOfTheSecondCheckAreAnError(t *testing.T) {
	need.Root(t)
	untouched.Alone(t)
	l := workspace.Leftover{RunID: workspace.NewID()}
	must.OK(t, lookAgain(t.Context(), &l, terms.Engines{}))
	late := "/run/vc/vm/" + engine.Name(l.RunID, 0, 1)
	t.Cleanup(func() {
		_ = os.Remove(late)
		_, _ = os.Remove("/run/vc/vm"), os.Remove("/run/vc") // unless others have sandboxes
	})
	must.OK(t, os.MkdirAll(late, 0o755))
	check.Error(t, lookAgain(t.Context(), &l, terms.Engines{}), "run "+l.RunID+": a second check found new leftovers: folder "+late+"; run tare clean again")
	must.Get(os.Stat(late))(t) // a check removes nothing
}
