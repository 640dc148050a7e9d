package vm

import (
	"context"
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
	"github.com/tare-bench/tare/record"
)

// controllers are those that the guest's root hands down.
var controllers = []string{"cpu", "io", "memory", "pids"}

// All of it in one boot, since what takes a second elsewhere takes ten in there.
func TestTareWeighsWhereThereIsOnlyCgroupV2(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the machine has x86-64 CPUs, and runs this machine's runc and crun")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Minute) // below go test's own limit
	defer cancel()
	out, err := Run(ctx, Guest{
		Programs: []string{"runc", "crun"},
		Files:    map[string]string{"/bin/tare": built(ctx, t)},
		Commands: []Command{
			{"groups", []string{"cat", "/sys/fs/cgroup/cgroup.subtree_control", "/proc/self/cgroup"}, 10 * time.Second},
			{"words", []string{"printf", "%s|", "it's", "a  b", "$HOME", "*"}, 10 * time.Second},
			{"fails", []string{"sh", "-c", "echo why >&2; exit 3"}, 10 * time.Second},
			{"endless", []string{"sleep", "1000"}, time.Second},
			{"doctor", []string{"tare", "doctor", "--format", "json"}, time.Minute},
			{"lifecycle", []string{"tare", "lifecycle", "runc", "crun", "-n", "3", "--rounds", "3", "-o", "/out/lifecycle.jsonl.zst"}, 4 * time.Minute},
			{"overhead", overheadArgs, 4 * time.Minute},
			{"left", []string{"sh", "-c", `find /sys/fs/cgroup -mindepth 1 -name 'tare-*'
				find /run/tare /var/lib/tare -mindepth 1 -maxdepth 1 -type d
				while read -r what where rest; do case $where in *tare*) echo "$where"; esac; done </proc/mounts
				ls /sys/fs/cgroup/guest/cgroup.procs`}, 10 * time.Second},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the machine ran for %v", out.Ran.Round(time.Second))
	for name, want := range map[string]int{"groups": 0, "words": 0, "fails": 3, "endless": 137, "doctor": 0, "lifecycle": 0, "overhead": 0, "left": 0} {
		if out.Exits[name] != want {
			t.Errorf("%s, want %d", out.Output(name), want)
		}
	}
	t.Run("the machine has the groups, the words and the ends of commands", func(t *testing.T) { theMachine(t, out) })
	t.Run("doctor says so", func(t *testing.T) { doctored(t, out) })
	t.Run("lifecycle weighs runc and crun", func(t *testing.T) { lived(t, out) })
	t.Run("overhead closes the books of runc and crun", func(t *testing.T) { closed(t, out) })
	t.Run("nothing is left", func(t *testing.T) {
		if got := string(out.Files["left.stdout"]); got != "/sys/fs/cgroup/guest/cgroup.procs\n" {
			t.Errorf("left behind, before the guest's own group:\n%s", got)
		}
	})
}

// built is tare as it is in this tree.
func built(ctx context.Context, t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tare")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/tare-bench/tare/cmd/tare")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build tare: %v\n%s", err, out)
	}
	return path
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
	if err != nil {
		t.Fatal(err)
	}
	// Two targets, a warm-up and three rounds, five operations on three lanes.
	if l.Failed != 0 || l.Total != 2*4*5*3 || len(l.Tables) != 1 {
		t.Fatalf("%d of %d operations failed, in %d tables\n%s", l.Failed, l.Total, len(l.Tables), out.Output("lifecycle"))
	}
	for i, row := range l.Tables[0].Rows {
		if row.Op != subject.ContainerOps[i] || len(row.Cells) != 2 {
			t.Errorf("row %d is %s of %d targets", i, row.Op, len(row.Cells))
		}
		for j, c := range row.Cells {
			if c.Target != []string{"runc", "crun"}[j] || c.Time.Estimate.N != 3 || c.Time.Estimate.Value < 1e6 || c.Time.Estimate.Value > 60e9 {
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
	if err := os.WriteFile(path, out.Files[filepath.Base(path)], 0o600); err != nil {
		t.Fatal(err)
	}
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
