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
	both := "--binary linux/amd64=tare-amd64 --binary linux/arm64=tare-arm64"
	t.Setenv("SOURCE_DATE_EPOCH", "")
	commands(t, "image", nil, "BOTH", both, "GOARCH", runtime.GOARCH)
	t.Setenv("SOURCE_DATE_EPOCH", "1")
	own := "--binary linux/" + runtime.GOARCH + "=tare-" + runtime.GOARCH
	ends(t, ExitDone, "for "+runtime.GOARCH+" alone", words("image -o one.tar --name a.example/b "+own)...)
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	refuses(t, words("image -o no.tar "+both), "SOURCE_DATE_EPOCH")
	if left, _ := filepath.Glob("no*"); len(left) > 0 {
		t.Errorf("left by what failed: %q", left)
	}
}
