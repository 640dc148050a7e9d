// Package enginetest contains the common tests of engines.
package enginetest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject/hosttools"
	"github.com/tare-bench/tare/internal/testing/must"
)

// chatty is a script that writes 1.6 MB.
const chatty = "s=0123456789; for i in 1 2 3 4 5 6 7 8 9 10 11; do s=$s$s; done; i=0; while [ $i -lt 80 ]; do echo $s; i=$((i+1)); done"

// Shell returns the files that make the host's sh and sleep run in a container as /bin/sh
// and /bin/sleep.
func Shell(t *testing.T) (all []probe.File) {
	t.Helper()
	for _, program := range []string{"/bin/sh", "/bin/sleep"} {
		path := must.Get(filepath.EvalSymlinks(program))(t)
		files := must.Get(hosttools.Files(t.Context(), path))(t)
		files[0].Path = program
		for _, f := range files {
			if !slices.Contains(all, f) { // both need the C library
				all = append(all, f)
			}
		}
	}
	return all
}
