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
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// controllers are those that the guest's root hands down.
var controllers = []string{"cpu", "io", "memory", "pids"}

// All that wants a machine is done in one boot, since what takes a second elsewhere
// takes ten in there. Nothing in it is bounded by time: how long it takes is up to
// whoever shares the CPUs.
func TestTareWeighsWhereThereIsOnlyCgroupV2AndAnOlderKernel(t *testing.T) {
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
			{"tracer", []string{"/bin/tracer", "-test.v", "-test.run", "TestCloseLeavesNothing|TestASignalIsInTheStatus/as_this_kernel_is"}},
			// Of loops only the one that this kernel is given, and nothing that is timed.
			{"datapath", []string{"/bin/datapath", "-test.v", "-test.skip", "TimePerRun|ExactlyItsRounds/walked|KernelWithoutBpfLoop"}},
			{"left", []string{"sh", "-c", `find /sys/fs/cgroup -mindepth 1 -name 'tare-*'
				find /run/tare /var/lib/tare -mindepth 1 -maxdepth 1 -type d
				while read -r what where rest; do case $where in *tare*) echo "$where"; esac; done </proc/mounts
				ls /sys/fs/cgroup/guest/cgroup.procs`}},
		},
	})
	must.OK(t, err)
	t.Logf("the machine ran for %v", out.Ran.Round(time.Second))
	for name, code := range out.Exits {
		if want := map[string]int{"fails": 3}[name]; code != want {
			t.Errorf("%s, want %d", out.Output(name), want)
		}
	}
	t.Run("the machine has the groups, the words and the ends of commands", func(t *testing.T) { theMachine(t, out) })
	t.Run("doctor says so", func(t *testing.T) { doctored(t, out) })
	t.Run("lifecycle weighs runc and crun", func(t *testing.T) { lived(t, out) })
	t.Run("overhead closes the books of runc and crun", func(t *testing.T) { closed(t, out) })
	// Its verifier knows less of what a compiler makes, and looks at functions that are
	// called back in another way (before Linux 6.7); its structs are others.
	t.Run("it takes the programs of the tracer and tells the same", func(t *testing.T) { passed(t, out, "tracer", 3) })
	t.Run("it takes the programs of the datapath and does the same", func(t *testing.T) { passed(t, out, "datapath", 18) })
	t.Run("nothing is left", func(t *testing.T) {
		if got := string(out.Files["left.stdout"]); got != "/sys/fs/cgroup/guest/cgroup.procs\n" {
			t.Errorf("left behind, before the guest's own group:\n%s", got)
		}
	})
}

// goes runs the go command on this tree. What it makes is for a machine that has no
// libraries.
func goes(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// passed checks that tests of a package did, at least so many, and that none of them
// looked away.
func passed(t *testing.T, out *Outcome, name string, least int) {
	said := string(out.Files[name+".stdout"])
	if strings.Count(said, "--- PASS: Test") < least || strings.Contains(said, "--- SKIP") {
		t.Error(out.Output(name))
	}
}

func theMachine(t *testing.T, out *Outcome) {
	groups, own, _ := strings.Cut(string(out.Files["groups.stdout"]), "\n")
	if got := strings.Fields(groups); !slices.Equal(got, controllers) || own != "0::/guest\n" {
		t.Errorf("controllers %q, and its group is %q", got, own)
	}
	if got := string(out.Files["words.stdout"]); got != "it's|a  b|$HOME|*|" {
		t.Errorf("words: %q", got)
	}
	if got := string(out.Files["fails.stderr"]); got != "why\n" || !strings.Contains(out.Console, "guest: fails exited with 3") {
		t.Errorf("a failure: %q, and the console is\n%s", got, out.Console)
	}
}

func doctored(t *testing.T, out *Outcome) {
	var answer struct{ Checks []doctor.Check }
	if err := json.Unmarshal(out.Files["doctor.stdout"], &answer); err != nil {
		t.Fatalf("%v in\n%s", err, out.Output("doctor"))
	}
	for area, names := range map[string][]string{"kernel": {"cgroups"}, "runtime": {"host", "floor", "runc", "crun"}} {
		for _, name := range names {
			i := slices.IndexFunc(answer.Checks, func(c doctor.Check) bool { return c.Area == area && c.Name == name })
			switch {
			case i < 0:
				t.Errorf("it says nothing of %s", name)
			case answer.Checks[i].Status != doctor.OK:
				t.Errorf("%+v", answer.Checks[i])
			case name == "cgroups" && answer.Checks[i].Version != "v2":
				t.Errorf("cgroups are %q", answer.Checks[i].Version)
			}
		}
	}
}

func lived(t *testing.T, out *Outcome) {
	rec := recorded(t, out, "lifecycle")
	l, err := lifecycle.Judge(rec)
	must.OK(t, err)
	// Two targets, five operations on two lanes.
	if l.Failed != 0 || l.Total != 2*5*2 || len(l.Tables) != 1 {
		t.Fatalf("%d of %d operations failed, in %d tables\n%s", l.Failed, l.Total, len(l.Tables), out.Output("lifecycle"))
	}
	for i, row := range l.Tables[0].Rows {
		if row.Op != subject.ContainerOps[i] || len(row.Cells) != 2 {
			t.Errorf("row %d is %s of %d targets", i, row.Op, len(row.Cells))
		}
		for j, c := range row.Cells {
			if c.Target != []string{"runc", "crun"}[j] || c.Time.Estimate.N != 1 || c.Time.Estimate.Value < 1e6 || c.Time.Estimate.Value > 900e9 {
				t.Errorf("%s of %s: %+v", row.Op, c.Target, c.Time)
			}
		}
	}
	if n := len(l.Tables[0].Rows); n != len(subject.ContainerOps) {
		t.Errorf("%d rows", n)
	}
}

// recorded reads a record that a command left, which has to be whole and made
// on cgroup v2.
func recorded(t *testing.T, out *Outcome, name string) *record.Record {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".jsonl.zst")
	must.OK(t, os.WriteFile(path, out.Files[filepath.Base(path)], 0o600))
	rec, err := record.Load(path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.Output(name))
	}
	env := rec.Header.Environment
	for _, c := range controllers {
		if !slices.Contains(env.Controllers, c) {
			t.Errorf("the record's machine has no %s: %v", c, env.Controllers)
		}
	}
	if env.Cgroup != "v2" || rec.End == nil || rec.ProblemCount > 0 || rec.Truncated {
		t.Errorf("cgroup %q, end %+v, %d problems, truncated %v", env.Cgroup, rec.End, rec.ProblemCount, rec.Truncated)
	}
	return rec
}
