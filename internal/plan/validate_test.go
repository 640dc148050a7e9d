package plan

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
)

func TestDefaultsAreValid(t *testing.T) {
	l := Defaults()
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
}

func TestDefaultsAreNotShared(t *testing.T) {
	l := Defaults()
	l.Ops[0], l.Lanes[0] = subject.Run, 7
	if again := Defaults(); again.Ops[0] != subject.RunPod || again.Lanes[0] != 1 || subject.Ops[0] != subject.RunPod {
		t.Errorf("a change of one became a change of all: %+v, %v", again, subject.Ops)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	tests := map[string]struct {
		change func(*Lifecycle)
		want   string
	}{
		"no lanes":                  {func(l *Lifecycle) { l.Lanes = nil }, "lanes: the list is empty"},
		"no operations":             {func(l *Lifecycle) { l.Ops = nil }, "ops: the list is empty"},
		"an unknown operation":      {func(l *Lifecycle) { l.Ops = []subject.Op{"pause"} }, `ops: unknown operation "pause": the operations are`},
		"no rounds":                 {func(l *Lifecycle) { l.Rounds = 0 }, "rounds: 0"},
		"a precision of one":        {func(l *Lifecycle) { l.Precision = 1 }, "precision: 1 "},
		"no budget":                 {func(l *Lifecycle) { l.Budget = 0 }, "budget: 0s leaves no time"},
		"no time-out":               {func(l *Lifecycle) { l.Timeout = 0 }, "timeout: 0s would fail"},
		"no memory":                 {func(l *Lifecycle) { l.Limits.Memory = 0 }, "limits.memory: 0"},
		"an option as a target":     {func(l *Lifecycle) { l.Targets = []string{"--all"} }, `targets: "--all" is not a target`},
		"an empty target":           {func(l *Lifecycle) { l.Targets = []string{""} }, `targets: "" is not a target`},
		"a path as a target":        {func(l *Lifecycle) { l.Targets = []string{"/usr/bin/runc"} }, "write a name such as runc, or name=path"},
		"a baseline not weighed":    {func(l *Lifecycle) { l.Targets, l.Baseline = []string{"runc"}, "crun" }, `baseline: "crun" is not one of the targets: the targets are runc`},
		"a baseline that is a path": {func(l *Lifecycle) { l.Baseline = "runc=/x" }, `baseline: "runc=/x" is not a target`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := Defaults()
			test.change(&l)
			err := l.Validate()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestValidateSaysEverythingAtOnce(t *testing.T) {
	l := Lifecycle{}
	err := l.Validate()
	for _, field := range []string{"lanes", "ops", "rounds", "budget", "timeout", "limits.memory", "limits.pids", "limits.cpu_shares"} {
		if err == nil || !strings.Contains(err.Error(), field+":") {
			t.Errorf("%s is not in %v", field, err)
		}
	}
}

func TestTargetsOfEveryEngineAreNames(t *testing.T) {
	l := Defaults()
	l.Targets = []string{"host", "floor", "runc", "docker/runc", "cri+containerd/runc", "cri+cri-o/runc", "runc-1.5.2=/opt/runc", "youki=./youki"}
	l.Baseline = "runc-1.5.2"
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
}

func TestSplitTargetCutsAtTheFirstSign(t *testing.T) {
	for text, want := range map[string][2]string{"runc": {"runc", ""}, "a=/b": {"a", "/b"}, "a=/b=c": {"a", "/b=c"}} {
		if name, path := SplitTarget(text); name != want[0] || path != want[1] {
			t.Errorf("%q gives %q, %q", text, name, path)
		}
	}
}
