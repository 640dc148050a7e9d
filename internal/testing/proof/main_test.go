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
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/untouched"
	"github.com/tare-bench/tare/record"
)

// tareEnv makes this test binary the tare command.
const tareEnv = "TARE_PROOF_COMMAND"

func TestMain(m *testing.M) {
	if code, handled := load.Main(os.Args[1:]); handled { // a load's client or server
		os.Exit(code)
	}
	if os.Getenv(memfdEnv) != "" {
		holdMemfd()
	}
	if os.Getenv(tareEnv) != "" {
		os.Exit(cli.Execute(context.Background(), os.Args[1:], cli.Streams{Out: os.Stdout, Err: os.Stderr}))
	}
	engines.Main(m)
}

const mib = 1 << 20

// place is the parent of the run folders of a test.
type place struct {
	t    *testing.T
	dir  string
	runs int
	lock sync.Mutex
	ids  []string
}

// ran stores a run's id.
func (p *place) ran(id string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.ids = append(p.ids, id)
}

// folders creates a place. At the end of the test it checks that nothing of the runs is
// left.
func folders(t *testing.T) *place {
	t.Helper()
	need.Runtime(t, "runc")
	need.Runtime(t, "crun")
	p := &place{t: t, dir: t.TempDir()}
	for name, folder := range map[string]string{"TARE_STATE_DIR": "state", "TARE_DATA_DIR": "data"} {
		t.Setenv(name, filepath.Join(p.dir, folder))
	}
	untouched.Check(t, p.dir, func() []string { return p.ids })
	return p
}

// tare runs a command in this process, which must succeed, and judges the records that it
// writes: one, or several for a plan.
func tare[J any](p *place, judge func(*record.Record) (J, error), args ...string) (recs []*record.Record, judged []J, text string) {
	p.t.Helper()
	p.runs++
	name := filepath.Join(p.dir, fmt.Sprintf("r%d", p.runs))
	at := slices.Index(args, "--")
	if at < 0 {
		at = len(args)
	}
	code, text, said := invoke(p.t, slices.Insert(slices.Clone(args), at, "-q", "-o", name+".jsonl")...)
	p.t.Log(text)
	if code != cli.ExitDone {
		p.t.Fatalf("exit %d\n%s", code, said)
	}
	paths, _ := filepath.Glob(name + "*.jsonl")
	slices.Sort(paths)
	if len(paths) == 0 {
		p.t.Fatal("no records")
	}
	for _, path := range paths {
		rec, j := stored(p, path, judge)
		recs, judged = append(recs, rec), append(judged, j)
	}
	return recs, judged, text
}

// invoke runs a tare command in this process.
func invoke(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = cli.Execute(t.Context(), args, cli.Streams{Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

// stored reads and judges the record of a run.
func stored[J any](p *place, path string, judge func(*record.Record) (J, error)) (*record.Record, J) {
	p.t.Helper()
	lines, err := all.Instruments.Lines()
	must.OK(p.t, err)
	rec, err := lines.Load(path)
	must.OK(p.t, err)
	p.ran(rec.Header.RunID)
	j, err := judge(rec)
	must.OK(p.t, err)
	return rec, j
}

// runsc returns gVisor's runtime as a target, or nothing if its tier does not run.
func runsc() []string {
	if path := engines.Runsc(); path != "" {
		return []string{"runsc=" + path}
	}
	return nil
}

// onPath puts programs first on the PATH of a test under the given names.
func onPath(t *testing.T, programs map[string]string) {
	t.Helper()
	bin := t.TempDir()
	for name, path := range programs {
		must.OK(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
}
