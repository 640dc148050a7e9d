// Package enginetest holds what the tests of engines share.
package enginetest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/probe"
)

// Shell are the files that make the host's sh run in a container as /bin/sh: the
// program, its libraries and their linker.
func Shell(t *testing.T) []probe.File {
	t.Helper()
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ldd", sh).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", sh, err)
	}
	files := []probe.File{{Path: "/bin/sh", Source: sh, Mode: 0o755}}
	for line := range strings.Lines(string(out)) {
		// "libc.so.6 => /lib/…/libc.so.6 (0x…)", "/lib64/ld-linux-x86-64.so.2 (0x…)"
		for _, word := range strings.Fields(line) {
			if filepath.IsAbs(word) {
				files = append(files, probe.File{Path: word, Source: word, Mode: 0o755})
			}
		}
	}
	return files
}
