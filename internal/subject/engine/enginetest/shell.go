// Package enginetest holds what the tests of engines share.
package enginetest

import (
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject/hosttools"
)

// Shell are the files that make the host's sh run in a container as /bin/sh.
func Shell(t *testing.T) []probe.File {
	t.Helper()
	sh, err := filepath.EvalSymlinks("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	files, err := hosttools.Files(t.Context(), sh)
	if err != nil {
		t.Fatal(err)
	}
	files[0].Path = "/bin/sh"
	return files
}
