package cli

import (
	"debug/elf"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tare-bench/tare/internal/image/imagetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// twoTares are files that pass for tare, one for each architecture.
func twoTares(t *testing.T, dir string) {
	t.Helper()
	for arch, machine := range map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64} {
		must.OK(t, os.WriteFile(filepath.Join(dir, "tare-"+arch), imagetest.Binary(machine, imagetest.Info(arch)), 0o755))
	}
}

func TestAnImageIsMadeOfGivenProgramsAndWhatItIsWithoutIsSaid(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	twoTares(t, dir)
	both := " --binary linux/amd64=tare-amd64 --binary linux/arm64=tare-arm64"
	own := " --binary linux/" + runtime.GOARCH + "=tare-" + runtime.GOARCH
	for _, c := range []struct {
		args, epoch string
		code        int
		says        string
	}{
		{"image -o a.oci" + both, "", ExitDone, "index        sha256:"},
		{"image -o a.tar" + both, "", ExitDone, "linux/arm64  sha256:"},
		{"image -o a.oci" + both, "", ExitUsage, "a.oci exists and is not overwritten"},
		{"image -o a.tar" + both, "", ExitUsage, "a.tar exists and is not overwritten"},
		{"image -o one.tar --name a.example/b" + own, "1", ExitDone, "for " + runtime.GOARCH + " alone"},
		{"image -o no.tar" + both, "yesterday", ExitUsage, "SOURCE_DATE_EPOCH"},
		{"image -o no.tar", "", ExitUsage, "or give another by --binary linux/" + runtime.GOARCH},
		{"image", "", ExitUsage, "-o FOLDER"},
		{"image -o no.tar --probe --push", "", ExitUsage, "--probe goes with -o FILE.tar"},
		{"image --push", "", ExitUsage, "--name"},
		{"image -o no.tar --binary linux/arm64=tare-amd64", "", ExitUsage, "by its ELF header this is for linux/amd64"},
		{"image -o no.tar --binary linux/arm64", "", ExitUsage, "write linux/amd64=FILE"},
		{"image -o no.tar --binary windows/amd64=tare-amd64", "", ExitUsage, "write linux/amd64=FILE"},
		{"image -o no.tar --binary linux/arm64=/nowhere", "", ExitUsage, "/nowhere"},
		{"image -o no/no.tar" + both, "", ExitUsage, "no/no.tar"},
		{"image -o no/no" + both, "", ExitUsage, "no/no"},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", c.epoch)
		ends(t, c.code, c.says, words(c.args)...)
	}
	if left, _ := filepath.Glob("no*"); len(left) > 0 {
		t.Errorf("left by what failed: %q", left)
	}
}
