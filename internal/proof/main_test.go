package proof

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/untouched"
	"github.com/tare-bench/tare/record"
)

// tareEnv makes of this test's binary the tare command.
const tareEnv = "TARE_PROOF_COMMAND"

func TestMain(m *testing.M) {
	if code, handled := load.Main(os.Args[1:]); handled { // a load's client or server
		os.Exit(code)
	}
	if os.Getenv(tareEnv) != "" {
		os.Exit(cli.Execute(context.Background(), os.Args[1:], cli.Streams{Out: os.Stdout, Err: os.Stderr}))
	}
	engines.Main(m)
}

const mib = 1 << 20

// place is where the runs of a test have their folders.
type place struct {
	t    *testing.T
	dir  string
	runs int
	lock sync.Mutex
	ids  []string
}

// ran notes a run's id.
func (p *place) ran(id string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.ids = append(p.ids, id)
}

// folders makes a place, and looks at the test's end whether anything of the runs is
// left.
func folders(t *testing.T) *place {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("run the tests as root: containers and BPF programs need it")
	}
	p := &place{t: t, dir: t.TempDir()}
	for name, folder := range map[string]string{"TARE_STATE_DIR": "state", "TARE_DATA_DIR": "data"} {
		t.Setenv(name, filepath.Join(p.dir, folder))
	}
	untouched.Check(t, p.dir, func() []string { return p.ids })
	return p
}

// tare runs a command that has to succeed, in this process, and judges the records
// that it writes: one, or of a plan several.
func tare[J any](p *place, judge func(*record.Record) (J, error), args ...string) (recs []*record.Record, judged []J, text string) {
	p.t.Helper()
	p.runs++
	name := filepath.Join(p.dir, fmt.Sprintf("r%d", p.runs))
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	var out, errs bytes.Buffer
	code := cli.Execute(p.t.Context(), slices.Insert(slices.Clone(args), at, "-q", "-o", name+".jsonl"), cli.Streams{Out: &out, Err: &errs})
	p.t.Logf("%s", &out)
	if code != cli.ExitDone {
		p.t.Fatalf("exit %d\n%s", code, &errs)
	}
	paths, _ := filepath.Glob(name + "*.jsonl")
	slices.Sort(paths)
	if len(paths) == 0 {
		p.t.Fatal("no records")
	}
	lines, err := all.Instruments.Lines()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, path := range paths {
		rec, err := lines.Load(path)
		if err != nil {
			p.t.Fatal(err)
		}
		j, err := judge(rec)
		if err != nil {
			p.t.Fatal(err)
		}
		recs, judged = append(recs, rec), append(judged, j)
		p.ran(rec.Header.RunID)
	}
	return recs, judged, out.String()
}
