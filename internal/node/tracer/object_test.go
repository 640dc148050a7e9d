package tracer

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// TestTheEmbeddedProgramsAreWhatTheirSourcesGive compiles the BPF programs of the
// whole tree, and compares them and the Go beside them byte by byte.
func TestTheEmbeddedProgramsAreWhatTheirSourcesGive(t *testing.T) {
	t.Parallel()
	need.Tool(t, "clang-14")
	for dir, stem := range map[string]string{".": "watch", "../../instrument/bpf/run/datapath": "datapath"} {
		t.Run(stem, func(t *testing.T) {
			t.Parallel()
			into := t.TempDir()
			cmd := exec.Command("go", "generate", dir)
			cmd.Env = append(os.Environ(), "BPF_OUT="+into)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			for _, suffix := range []string{"_bpfel.o", "_bpfel.go"} {
				made, err := os.ReadFile(filepath.Join(into, stem+suffix))
				must.OK(t, err)
				if there, err := os.ReadFile(filepath.Join(dir, stem+suffix)); err != nil || !bytes.Equal(made, there) {
					t.Errorf("%s is not what its source gives (%v): run make bpf", filepath.Join(dir, stem+suffix), err)
				}
			}
		})
	}
}
