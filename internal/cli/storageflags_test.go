package cli

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/storage"
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

// planned is the plan of a command line.
func planned(t *testing.T, args ...string) storage.Options {
	t.Helper()
	p := storage.Defaults()
	must.OK(t, asked(t, &p, args...))
	return p
}

func TestBothCachesAreAsked(t *testing.T) {
	for _, cache := range []string{"both", "direct,buffered"} {
		if p := planned(t, "--cache", cache); !slices.Equal(p.Cache, []string{"direct", "buffered"}) {
			t.Errorf("%s: %q", cache, p.Cache)
		}
	}
}

func TestSysbenchRunsForTenSecondsUnlessALimitIsGiven(t *testing.T) {
	for _, c := range []struct {
		args []string
		want time.Duration
	}{
		{[]string{"--tool", "sysbench"}, 10 * time.Second},
		{[]string{"--tool", "sysbench", "--runtime-limit", "60s"}, 0},
		{[]string{"--tool", "fio", "--jobs", "read"}, 0},
		{[]string{"--tool", "dd"}, 0},
	} {
		for _, j := range planned(t, c.args...).Jobs {
			if j.Runtime != c.want {
				t.Errorf("%v: %s runs %v, want %v", c.args, j.Name, j.Runtime, c.want)
			}
		}
	}
}

func TestDDTakesTheOneThreadThatItHas(t *testing.T) {
	for _, args := range [][]string{{"--tool", "dd"}, {"--tool", "dd", "--numjobs", "1"}} {
		if p := planned(t, args...); len(p.Jobs) != 2 {
			t.Errorf("%v: %+v", args, p.Jobs)
		}
	}
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
