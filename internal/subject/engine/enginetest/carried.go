package enginetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/probe"
)

// Carried is the program inside, which tests run where there is no shell.
func Carried(t *testing.T) probe.File {
	t.Helper()
	program := filepath.Join(t.TempDir(), "inside")
	build := exec.Command("go", "build", "-o", program, "github.com/tare-bench/tare/internal/subject/engine/enginetest/inside")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return probe.File{Path: "/opt/tools/inside", Source: program, Mode: 0o755}
}
