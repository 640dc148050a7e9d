package probe

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAProgramIsRunInAFolderWithItsArgumentsAndEnvironment(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must.OK(t, err)
	cmd := command(t, InArgs(dir, "/bin/sh", "-c", `echo "$(pwd -P) $0 $1 $OF_OURS"`, "first", "two words"))
	cmd.Env = append(os.Environ(), "OF_OURS=kept")
	out, err := cmd.Output()
	if want := dir + " first two words kept\n"; err != nil || string(out) != want {
		t.Errorf("%q, %v; want %q", out, err, want)
	}
}

func TestAProgramsExitStatusIsItsOwnAndAFailureToRunItIs127(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		exit int
		says string
	}{
		"its own":            {InArgs("/", "/bin/sh", "-c", "exit 7"), 7, ""},
		"a folder not there": {InArgs("/no/such/folder", "/bin/sh"), 127, "tare-probe: in: the folder: errno 2\n"},
		"a file as a folder": {InArgs("/proc/self/stat", "/bin/sh"), 127, "tare-probe: in: the folder: errno 20\n"},
		"a program missing":  {InArgs("/", "/no/such/program"), 127, "tare-probe: in: the program: errno 2\n"},
		"no program":         {InArgs("/"), 2, "tare-probe: in FOLDER PROGRAM ARGUMENT...\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command(t, tc.args)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != tc.exit || stderr.String() != tc.says {
				t.Errorf("%v, %q; want exit status %d and %q", err, stderr.String(), tc.exit, tc.says)
			}
		})
	}
}
