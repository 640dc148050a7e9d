package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/untouched"
	"github.com/tare-bench/tare/internal/workspace"
)

// TestAfterARebootNoContainerIsSaidToRun makes the folder of a run that was killed on
// an engine which does not answer.
func TestAfterARebootNoContainerIsSaidToRun(t *testing.T) {
	untouched.Alone(t)
	now, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		boot   string // what the mark says behind the run's id
		reboot bool
	}{
		"in another boot":               {"boot 00000000-0000-4000-8000-000000000000\n", true},
		"in this boot":                  {"boot " + string(now), false},
		"by a version that did not say": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := place(t)
			const id = "rebooted"
			own := filepath.Join(workspace.DefaultRoots().Data, id)
			if err := os.MkdirAll(own, 0o711); err != nil {
				t.Fatal(err)
			}
			left, err := json.Marshal([]made{{Name: "docker/runc", Engine: subject.Engine{Address: "unix://" + dir + "/gone/docker.sock"}}})
			if err != nil {
				t.Fatal(err)
			}
			for file, text := range map[string]string{".tare-run": "tare run " + id + "\n" + c.boot, madeFile: string(left)} {
				if err := os.WriteFile(filepath.Join(own, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, out, stderr := tare(t, "clean")
			if code != ExitUsage || strings.Contains(stderr, "the machine was started again since run "+id+": none of its containers runs any more") != c.reboot || !strings.Contains(stderr, "--forget") {
				t.Errorf("exit %d\n%s%s", code, out, stderr)
			}
			if code, out, stderr := tare(t, "clean", "--forget"); code != ExitDone || !strings.Contains(out, id+": removed") {
				t.Errorf("to be forgotten: exit %d\n%s%s", code, out, stderr)
			}
			if _, err := os.Stat(own); err == nil {
				t.Error("it is still kept in mind")
			}
		})
	}
}
