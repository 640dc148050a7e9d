package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// asked lays a command line over options.
func asked(t *testing.T, o option.Options, args ...string) error {
	t.Helper()
	set := option.Of(o)
	flags := pflag.NewFlagSet("asked", pflag.ContinueOnError)
	set.AddFlags(flags)
	must.OK(t, flags.Parse(args))
	return set.Finish(t.Context())
}

func TestFlagsDecideWhatIsMeasured(t *testing.T) {
	golden.Lines(t, filepath.Join(testdata, "measured.txt"), func(t *testing.T, line string) (any, error) {
		verb, flags, _ := strings.Cut(line, " ")
		switch verb {
		case "lifecycle":
			l := lifecycle.Defaults()
			err := asked(t, &l, words(flags)...)
			return l.Targets, err
		case "bpf":
			b := bpf.DefaultsOfMemory()
			err := asked(t, &b, words(flags)...)
			return fmt.Sprint("services ", b.Services), err
		}
		s := storage.Defaults()
		err := asked(t, &s, words(flags)...)
		said := fmt.Sprint(s.Cache)
		for _, j := range s.Jobs {
			said += fmt.Sprintf(", %s for %v", j.Name, j.Runtime)
		}
		return said, err
	})
}

func TestARecordOfStorageStandsBesideNothing(t *testing.T) {
	kept := filepath.Join(place(t), "notes.txt")
	must.Write(t, kept, keptNotes)
	ends(t, ExitDone, "", "import", kept, "-o", "kept.jsonl")
	for flag, value := range map[string]string{"--against": "published/isulad-2020", "--subject": "kata"} {
		refuses(t, []string{"report", "kept.jsonl", flag, value}, flag+": ")
	}
}

func TestAnEmptyImportSpeaksOfNoResults(t *testing.T) {
	broken := filepath.Join(place(t), "notes.txt")
	must.Write(t, broken, "99999999999999999999999 bytes (42 GB) copied, 376.446 s, 111 MB/s\n")
	code, _, stderr := tare(t, "import", broken)
	if code != ExitUsage || !strings.Contains(stderr, "no result") || !strings.Contains(stderr, "notes.txt:1") || strings.Contains(stderr, "taken for writing") || strings.Contains(stderr, "imported:") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
