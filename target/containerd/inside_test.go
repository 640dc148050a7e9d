package containerd

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/probe"
)

// carried is the program of testdata/inside, to be carried into containers.
func carried(t *testing.T) probe.File {
	t.Helper()
	program := filepath.Join(t.TempDir(), "inside")
	build := exec.Command("go", "build", "-o", program, "./testdata/inside")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return probe.File{Path: "/opt/tools/inside", Source: program, Mode: 0o755}
}
