package vm

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// What the books may leave unexplained, on a node that does nothing else.
const (
	residualShare = 0.02    // of what the node changed by
	residualBytes = 4 << 20 // or this
)

// overheadArgs are one round, since the emulation makes it a long one, with a
// load of a known size. To settle is what it has to start the load and to fill it.
var overheadArgs = []string{"tare", "overhead", "runc", "crun", "--rounds", "1", "--sandboxes", "1", "--hold", "500ms",
	"--interval", "250ms", "--settle", "16s", "--timeout", "15m", "--phases", "idle,hold 16MiB", "-o", "/out/overhead.jsonl.zst"}

func closed(t *testing.T, out *Outcome) {
	rec := recorded(t, out, "overhead")
	for i := range rec.Readings {
		read(t, &rec.Readings[i])
	}
	o, err := overhead.Judge(rec)
	must.OK(t, err)
	if o.Failed != 0 || o.Total != 2*2 || len(o.Tables) != 2 {
		t.Fatalf("%d of %d phases failed, in %d tables\n%s", o.Failed, o.Total, len(o.Tables), out.Output("overhead"))
	}
	for _, table := range o.Tables {
		if len(table.Cells) != 2 {
			t.Fatalf("%s at %d: %d targets\n%s", table.Phase, table.Sandboxes, len(table.Cells), out.Output("overhead"))
		}
		for i, c := range table.Cells {
			if c.Target != []string{"runc", "crun"}[i] || c.Rounds != 1 {
				t.Errorf("%s at %d: %s in %d rounds", table.Phase, table.Sandboxes, c.Target, c.Rounds)
			}
			balanced(t, table, c)
		}
	}
	if t.Failed() {
		t.Log(out.Output("overhead"))
	}
}

// read checks what only cgroup v2 tells: one hierarchy, and kernel memory by
// its kinds.
func read(t *testing.T, r *record.Reading) {
	t.Helper()
	what := func() string { return r.Target + " " + r.Phase + " " + string(r.Moment) }
	if r.Failure != nil || len(r.Left) > 0 || r.Problems.Broken > 0 || r.Problems.Denied > 0 || r.Problems.Backwards > 0 {
		t.Errorf("%s: failure %+v, left %v, problems %+v", what(), r.Failure, r.Left, r.Problems)
	}
	pods := 0
	for _, g := range r.Groups {
		if g.Charge != record.ChargePod || g.Nested {
			continue
		}
		pods++
		m := g.Memory
		if m == nil || g.CPU == nil {
			t.Errorf("%s: %s has no memory or CPU: %+v", what(), g.Path, g)
			continue
		}
		// A stack is charged to whoever forks, which may be outside.
		if m.Usage <= 0 || m.Anon <= 0 || m.Slab <= 0 || m.PageTables <= 0 || m.Kernel < m.Slab+m.Stacks+m.PageTables || m.Kernel >= m.Usage {
			t.Errorf("%s: %s: %+v", what(), g.Path, *m)
		}
		for _, c := range controllers {
			if !slices.Contains(g.Controllers, c) {
				t.Errorf("%s: %s without %s: %v", what(), g.Path, c, g.Controllers)
			}
		}
	}
	if inside := r.Moment == record.MomentBegin || r.Moment == record.MomentEnd; inside && pods != r.Sandboxes {
		t.Errorf("%s: %d groups of %d sandboxes", what(), pods, r.Sandboxes)
	}
	for _, p := range r.Processes {
		for _, m := range p.Groups {
			if len(m.Paths) != 1 || m.Paths[""] == "" {
				t.Errorf("%s: %s is in %v", what(), p.Name, m.Paths)
			}
		}
	}
}

func balanced(t *testing.T, table overhead.Table, c overhead.Cell) {
	t.Helper()
	l := &c.Ledger
	if most := max(residualBytes, int64(residualShare*float64(l.Node))); l.Residual > most || l.Residual < -most {
		t.Errorf("%s at %d of %s: the node changed by %d, others by %d, the roles sum up to %d: residual %d", table.Phase, table.Sandboxes, c.Target, l.Node, l.Others, l.Sum, l.Residual)
	}
	rows := map[record.Role]ledger.Row{}
	for _, row := range l.Rows {
		rows[row.Role] = row
	}
	if w := rows[record.RoleWorkload]; w.Processes < table.Sandboxes || w.Memory.Anon <= 0 {
		t.Errorf("%s at %d of %s: workload %+v", table.Phase, table.Sandboxes, c.Target, w)
	}
	if k := rows[record.RoleKernel]; k.Memory.Kernel <= 0 {
		t.Errorf("%s at %d of %s: kernel %+v", table.Phase, table.Sandboxes, c.Target, k)
	}
	if table.Phase != "idle" && (c.Expected != 16<<20 || c.Measured < 0.99*c.Expected || c.Measured > 1.01*c.Expected+1<<20) {
		t.Errorf("%s was told to hold %.0f bytes, and %.0f were found", c.Target, c.Expected, c.Measured)
	}
	if !l.Complete {
		t.Errorf("%s at %d of %s: incomplete: %+v", table.Phase, table.Sandboxes, c.Target, l.Problems)
	}
}
