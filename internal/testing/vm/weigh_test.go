package vm

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/doctor"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/overhead"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// controllers lists the controllers delegated by the guest's root.
var controllers = []string{"cpu", "io", "memory", "pids"}

// All checks that need a machine share one boot, because the guest is ten times slower.
// None has a time limit, because the time depends on other work on the CPUs.
func TestOldKernelWithCgroupV2Only(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the machine has x86-64 CPUs, and runs this machine's programs")
	}
	need.VM(t)
	t.Parallel()
	dir := t.TempDir()
	goes(t, "build", "-trimpath", "-tags", "no_tls_fallback,grpcnotrace", "-ldflags", "-s -w", "-o", dir, "github.com/tare-bench/tare/cmd/tare")
	goes(t, "test", "-c", "-vet=off", "-trimpath", "-tags", "no_tls_fallback,grpcnotrace", "-ldflags", "-s -w", "-o", dir+"/",
		"github.com/tare-bench/tare/internal/node/tracer", "github.com/tare-bench/tare/internal/instrument/bpf/run/datapath")
	out, err := Run(t.Context(), Guest{
		Programs: []string{"runc", "crun"},
		Files: map[string]string{"/bin/tare": filepath.Join(dir, "tare"),
			"/bin/tracer": filepath.Join(dir, "tracer.test"), "/bin/datapath": filepath.Join(dir, "datapath.test")},
		Commands: []Command{
			{"groups", []string{"cat", "/sys/fs/cgroup/cgroup.subtree_control", "/proc/self/cgroup"}},
			{"words", []string{"printf", "%s|", "it's", "a  b", "$HOME", "*"}},
			{"fails", []string{"sh", "-c", "echo why >&2; exit 3"}},
			{"doctor", []string{"tare", "doctor", "--format", "json"}},
			{"lifecycle", []string{"tare", "lifecycle", "runc", "crun", "-n", "2", "--rounds", "1", "--warmup", "0", "--timeout", "15m",
				"-o", "/out/lifecycle.jsonl.zst"}},
			{"overhead", overheadArgs},
			{"tracer", []string{"/bin/tracer", "-test.v", "-test.run", "TestCloseLeavesNothing|TestSignalIsInTheStatus/as_this_kernel_is"}},
			// Test only the loops that this kernel supports, and skip timing tests.
			{"datapath", []string{"/bin/datapath", "-test.v", "-test.skip", "TimePerRun|LoopRunsTheRequestedRounds/walked"}},
			{"left", []string{"sh", "-c", `find /sys/fs/cgroup -mindepth 1 -name 'tare-*'
				find /run/tare /var/lib/tare -mindepth 1 -maxdepth 1 -type d
				while read -r what where rest; do case $where in *tare*) echo "$where"; esac; done </proc/mounts
				ls /sys/fs/cgroup/guest/cgroup.procs`}},
		},
	})
	must.OK(t, err)
	t.Logf("the machine ran for %v", out.Ran.Round(time.Second))
	for name, code := range out.Exits {
		want := map[string]int{"fails": 3}[name]
		check.That(t, code == want, "%s, want %d", out.Output(name), want)
	}
	t.Run("cgroups, arguments and exit codes are passed", func(t *testing.T) { theMachine(t, out) })
	t.Run("doctor reports cgroup v2", func(t *testing.T) { doctored(t, out) })
	t.Run("lifecycle measures runc and crun", func(t *testing.T) { lived(t, out) })
	t.Run("the ledgers of runc and crun balance", func(t *testing.T) { closed(t, out) })
	// The verifier of this kernel understands less compiled code and checks callbacks
	// differently (before Linux 6.7), and its structs differ.
	t.Run("tracer programs work", func(t *testing.T) { passed(t, out, "tracer", 3) })
	t.Run("datapath programs work", func(t *testing.T) { passed(t, out, "datapath", 18) })
	t.Run("nothing is left behind", func(t *testing.T) {
		check.Equal(t, "left behind, in front of the guest's own cgroup", string(out.Files["left.stdout"]), "/sys/fs/cgroup/guest/cgroup.procs\n")
	})
}

// goes runs the go command on this tree. It builds for a machine without shared
// libraries.
func goes(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	must.That(t, err == nil, "go %s: %v\n%s", strings.Join(args, " "), err, out)
}

// passed checks that at least n tests of a package passed and that none was skipped.
func passed(t *testing.T, out *Outcome, name string, least int) {
	said := string(out.Files[name+".stdout"])
	check.That(t, strings.Count(said, "--- PASS: Test") >= least && !strings.Contains(said, "--- SKIP"), "%v", out.Output(name))
}

func theMachine(t *testing.T, out *Outcome) {
	groups, own, _ := strings.Cut(string(out.Files["groups.stdout"]), "\n")
	got := strings.Fields(groups)
	check.That(t, slices.Equal(got, controllers) && own == "0::/guest\n", "controllers %q, own cgroup %q", got, own)
	check.Equal(t, "words", string(out.Files["words.stdout"]), "it's|a  b|$HOME|*|")
	if got := string(out.Files["fails.stderr"]); got != "why\n" || !strings.Contains(out.Console, "guest: fails exited with 3") {
		t.Errorf("stderr of a failed command: %q, console:\n%s", got, out.Console)
	}
}

func doctored(t *testing.T, out *Outcome) {
	doctorFinds(t, out, map[string][]string{"kernel": {"cgroups"}, "runtime": {"host", "floor", "runc", "crun"}})
}

// doctorFinds checks that doctor reports the named checks in each area as ok or not
// tried, and cgroups as v2. The area "" matches any.
func doctorFinds(t *testing.T, out *Outcome, areas map[string][]string) {
	t.Helper()
	var answer struct{ Checks []doctor.Check }
	err := json.Unmarshal(out.Files["doctor.stdout"], &answer)
	must.That(t, err == nil, "%v in\n%s", err, out.Output("doctor"))
	for area, names := range areas {
		for _, name := range names {
			i := slices.IndexFunc(answer.Checks, func(c doctor.Check) bool { return (area == "" || c.Area == area) && c.Name == name })
			switch {
			case i < 0:
				t.Errorf("doctor does not report %s", name)
			case answer.Checks[i].Status != doctor.OK && answer.Checks[i].Status != doctor.NotTried:
				t.Errorf("%+v", answer.Checks[i])
			case name == "cgroups" && answer.Checks[i].Version != "v2":
				t.Errorf("cgroups are %q", answer.Checks[i].Version)
			}
		}
	}
}

func lived(t *testing.T, out *Outcome) {
	rec := recorded(t, out, "lifecycle")
	l := must.Get(lifecycle.Judge(rec))(t)
	// Two targets with five operations on two lanes.
	must.That(t, l.Failed == 0 && l.Total == 2*5*2,
		"%d of %d operations failed\n%s", l.Failed, l.Total, out.Output("lifecycle"))
	rows := l.All.Parts("op")
	check.Equal(t, "rows", len(rows), len(subject.ContainerOps))
	for i, row := range rows {
		check.Equal(t, "row", row.Get("op"), string(subject.ContainerOps[i]))
		for j, cell := range row.Parts("target") {
			check.That(t, cell.Get("target") == []string{"runc", "crun"}[j] && cell[0].N == 1 && cell[0].Value >= 1e6 && cell[0].Value <= 900e9, "%+v", cell[0])
		}
	}
}

// recorded reads a record written by a command. It must be complete and from cgroup v2.
func recorded(t *testing.T, out *Outcome, name string) *record.Record {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".jsonl.zst")
	must.OK(t, os.WriteFile(path, out.Files[filepath.Base(path)], 0o600))
	rec, err := record.Load(path)
	must.That(t, err == nil, "%v\n%s", err, out.Output(name))
	env := rec.Header.Environment
	for _, c := range controllers {
		check.That(t, slices.Contains(env.Controllers, c), "no controller %s in the record: %v", c, env.Controllers)
	}
	check.That(t, env.Cgroup == "v2" && rec.End != nil && rec.ProblemCount == 0 && !rec.Truncated,
		"cgroup %q, end %+v, %d problems, truncated %v", env.Cgroup, rec.End, rec.ProblemCount, rec.Truncated)
	return rec
}

// Maximum residual of the ledger on an otherwise idle node.
const (
	residualShare = 0.02    // of the node's change
	residualBytes = 4 << 20 // minimum bound
)

// overheadArgs measure a load of known size, in one round because the emulation is slow.
// The settle time covers the start of the load and its allocation.
var overheadArgs = []string{"tare", "overhead", "runc", "crun", "--rounds", "1", "--sandboxes", "1", "--hold", "500ms",
	"--interval", "250ms", "--settle", "16s", "--timeout", "15m", "--phases", "idle,hold 16MiB", "-o", "/out/overhead.jsonl.zst"}

func closed(t *testing.T, out *Outcome) {
	rec := recorded(t, out, "overhead")
	for i := range rec.Readings {
		read(t, &rec.Readings[i])
	}
	o := must.Get(overhead.Judge(rec))(t)
	must.That(t, o.Failed == 0 && o.Total == 2*2 && len(o.Tables) == 2,
		"%d of %d phases failed, in %d tables\n%s", o.Failed, o.Total, len(o.Tables), out.Output("overhead"))
	for _, table := range o.Tables {
		must.That(t, len(table.Cells) == 2, "%s at %d: %d targets\n%s", table.Phase, table.Sandboxes, len(table.Cells), out.Output("overhead"))
		for i, c := range table.Cells {
			check.That(t, c.Target == []string{"runc", "crun"}[i] && c.Rounds == 1,
				"%s at %d: %s in %d rounds", table.Phase, table.Sandboxes, c.Target, c.Rounds)
			balanced(t, table, c)
		}
	}
	if t.Failed() {
		t.Log(out.Output("overhead"))
	}
}

// read checks what only cgroup v2 provides: a single hierarchy, and kernel memory by
// kind.
func read(t *testing.T, r *record.Reading) {
	t.Helper()
	what := func() string { return r.Target + " " + r.Phase + " " + string(r.Moment) }
	check.That(t, r.Failure == nil && len(r.Left) == 0 && r.Problems.Broken == 0 && r.Problems.Denied == 0 && r.Problems.Backwards == 0,
		"%s: failure %+v, left %v, problems %+v", what(), r.Failure, r.Left, r.Problems)
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
		// A stack is charged to the forking process, which may be outside.
		check.That(t, m.Usage > 0 && m.Anon > 0 && m.Slab > 0 && m.PageTables > 0 && m.Kernel >= m.Slab+m.Stacks+m.PageTables && m.Kernel < m.Usage,
			"%s: %s: %+v", what(), g.Path, *m)
		for _, c := range controllers {
			check.That(t, slices.Contains(g.Controllers, c), "%s: %s without %s: %v", what(), g.Path, c, g.Controllers)
		}
	}
	if inside := r.Moment == record.MomentBegin || r.Moment == record.MomentEnd; inside && pods != r.Sandboxes {
		t.Errorf("%s: %d groups of %d sandboxes", what(), pods, r.Sandboxes)
	}
	for _, p := range r.Processes {
		for _, m := range p.Groups {
			check.That(t, len(m.Paths) == 1 && m.Paths[""] != "", "%s: %s is in %v", what(), p.Name, m.Paths)
		}
	}
}

func balanced(t *testing.T, table overhead.Table, c overhead.Cell) {
	t.Helper()
	l := &c.Ledger
	if most := max(residualBytes, int64(residualShare*float64(l.Node))); l.Residual > most || l.Residual < -most {
		t.Errorf("%s at %d of %s: node change %d, others %d, sum of roles %d, residual %d", table.Phase, table.Sandboxes, c.Target, l.Node, l.Others, l.Sum, l.Residual)
	}
	rows := map[record.Role]ledger.Row{}
	for _, row := range l.Rows {
		rows[row.Role] = row
	}
	w := rows[record.RoleWorkload]
	check.That(t, w.Processes >= table.Sandboxes && w.Memory.Anon > 0, "%s at %d of %s: workload %+v", table.Phase, table.Sandboxes, c.Target, w)
	k := rows[record.RoleKernel]
	check.That(t, k.Memory.Kernel > 0, "%s at %d of %s: kernel %+v", table.Phase, table.Sandboxes, c.Target, k)
	if table.Phase != "idle" {
		holds(t, c)
	}
	check.That(t, l.Complete, "%s at %d of %s: incomplete: %+v", table.Phase, table.Sandboxes, c.Target, l.Problems)
}

// holds checks that the 16 MiB requested from a workload are measured.
func holds(t *testing.T, c overhead.Cell) {
	t.Helper()
	expected, measured := c.All.Of("load", "of", "expected").Value, c.All.Of("load", "of", "measured").Value
	check.That(t, expected == 16<<20 && measured >= 0.99*expected && measured <= 1.01*expected+1<<20,
		"%s: requested %.0f bytes, measured %.0f", c.Target, expected, measured)
}
