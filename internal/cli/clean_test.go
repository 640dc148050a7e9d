package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/internal/workspace"
)

// TestAfterARebootNoContainerIsSaidToRun makes the folder of a run that was killed on
// an engine which does not answer.
func TestAfterARebootNoContainerIsSaidToRun(t *testing.T) {
	untouched.Alone(t)
	now := must.Read(t, "/proc/sys/kernel/random/boot_id")
	for name, c := range map[string]struct {
		boot   string // what the mark says behind the run's id
		reboot bool
	}{
		"in another boot":               {"boot 00000000-0000-4000-8000-000000000000\n", true},
		"in this boot":                  {"boot " + now, false},
		"by a version that did not say": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			const id = "rebooted"
			own := filepath.Join(workspace.DefaultRoots().Data, id)
			must.OK(t, os.MkdirAll(own, 0o711))
			left := must.JSON(t, []made{{Name: "docker/runc", Engine: subject.Engine{Address: "unix://" + dir + "/gone/docker.sock"}}})
			for file, text := range map[string]string{".tare-run": "tare run " + id + "\n" + c.boot, madeFile: string(left)} {
				must.Write(t, filepath.Join(own, file), text)
			}
			_, stderr := ends(t, ExitUsage, "--forget", "clean")
			if strings.Contains(stderr, "the machine was started again since run "+id+": none of its containers runs any more") != c.reboot {
				t.Error(stderr)
			}
			ends(t, ExitDone, id+": removed", "clean", "--forget")
			if _, err := os.Stat(own); err == nil {
				t.Error("it is still kept in mind")
			}
		})
	}
}
