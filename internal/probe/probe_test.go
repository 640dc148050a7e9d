package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheEmbeddedProgramsAreWhatTheirSourcesGive rebuilds the probe and the
// lane and compares them byte by byte.
func TestTheEmbeddedProgramsAreWhatTheirSourcesGive(t *testing.T) {
	for _, c := range []struct{ arch, cc, install string }{
		{"amd64", "x86_64-linux-gnu-gcc-12", "apt-get install gcc-12"},
		{"arm64", "aarch64-linux-gnu-gcc-12", "apt-get install gcc-12-aarch64-linux-gnu"},
	} {
		t.Run(c.arch, func(t *testing.T) {
			if _, err := exec.LookPath(c.cc); err != nil {
				t.Skipf("%s is not installed: %s", c.cc, c.install)
			}
			cmd := exec.Command("../../scripts/build-probe", "--check")
			cmd.Env = append(os.Environ(), "ARCHES="+c.arch)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

func TestAProbeReportsAndLeavesWhenAsked(t *testing.T) {
	dir := t.TempDir()
	if err := Install(dir); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(dir, Name), "--exit", "token").Output()
	if err != nil || !strings.HasPrefix(string(out), "tare-probe/1 token ") || !strings.HasSuffix(string(out), "\n") {
		t.Errorf("%q %v", out, err)
	}
	if err := exec.Command(filepath.Join(dir, Name), strings.Repeat("x", 200)).Run(); err == nil {
		t.Error("a token of 200 characters was taken")
	}
}
