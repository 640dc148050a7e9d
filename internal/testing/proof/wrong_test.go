package proof

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/subject/minder"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// misdeed is a program error caused by a script, with its expected message.
type misdeed struct {
	name   string
	script string
	op     subject.Op // the failing operation
	says   string     // expected message, unless but has one for the target
	but    map[string]string
	waits  bool // the engine waits before it kills
}

const forever = "while :; do sleep 0.05; done"

// done reports whether a started program has misbehaved.
func (m *misdeed) done(pid int) bool {
	if m.name != forks {
		return m.waits || engine.Ended(pid, 0)
	}
	groups, err := procs.GroupsOf(pid)
	if err != nil {
		return true // it has exited
	}
	hs, err := cgroup.Hierarchies()
	own, above, _ := cgroup.PIDsRefused("", hs, groups)
	return err == nil && own+above > 0
}

// loud is the maximum output of a program in these tests. bounded is the maximum size of
// its log when it is killed.
const loud, bounded = 4 << 20, 256 << 20

const forks, never = "forks without end", "never ready"

var misdeeds = []misdeed{
	{name: never, script: "trap 'exit 0' TERM; " + forever, op: subject.Run, says: "not ready (log:^ready$) within 1s"},
	{name: "exits at once", script: "echo because >&2; exit 3", op: subject.Run, says: "because; with status 3 | because; ended with 3",
		but: map[string]string{"runsc": "because"}},
	{name: "exits once ready", script: "echo ready; until [ -e /in/go ] || [ -e ${0%/*}/go ]; do sleep 0.02; done; echo 'lost it' >&2; exit 4", op: subject.Stop, says: "the workload ended before it was stopped, with status 4",
		but: map[string]string{"runsc": "the workload ended before it was stopped"}},
	{name: "floods its log", script: `trap 'exit 0' TERM; echo ready; line=$(printf '%02000d' 7); while :; do echo "$line"; done`, op: subject.Stop, says: "its output exceeded 4 MiB"},
	{name: "ignores the signal", script: "trap '' TERM; echo ready; " + forever, op: subject.Stop, waits: true, says: "the workload ignores SIGTERM",
		but: map[string]string{"runsc": "timed out waiting for the workload's exit", "docker/runsc": "killed by signal 9"}},
	{name: "has no handler", script: "echo ready; " + forever, op: subject.Stop, waits: true, says: "had no handler for SIGTERM",
		but: map[string]string{"host": "", "runsc": "", "docker/runsc": ""}},
	{name: forks, script: "trap 'exit 0' TERM; echo ready; while :; do sleep 1000 & done 2>/dev/null", op: subject.Stop, waits: true, says: "it was refused more tasks than its limit of ",
		but: map[string]string{"runsc": "it was refused more tasks than | ended before it was stopped", "docker/runsc": "it was refused more tasks than | ended before it was stopped"}},
}

// Every error of a user's program is a failure with its cause. It is reported in time, the
// log is bounded, and nothing is left behind.
func TestProgramErrorsAreFailuresWithCauses(t *testing.T) {
	all := fleet(t)
	some := slices.DeleteFunc(slices.Clone(all), func(f find.Found) bool {
		return !slices.Contains([]string{"host", "floor", "runc", "docker/runc", "containerd/runc"}, f.Name)
	})
	wrong(t, some, func(f find.Found, m misdeed) bool { return m.waits && f.Name != "floor" && f.Name != "runc" })
}

// has reports whether a failure contains all texts of an alternative. Texts are separated
// by "; ", alternatives by " | ".
func has(f *record.Failure, says string) bool {
	lacks := func(s string) bool { return !strings.Contains(f.Detail+"\n"+f.Output, s) }
	return slices.ContainsFunc(strings.Split(says, " | "), func(all string) bool {
		return !slices.ContainsFunc(strings.Split(all, "; "), lacks)
	})
}

// patience returns the timeout of one operation. Engines wait ten seconds before they
// kill.
func patience(target string) time.Duration {
	if strings.Contains(target, "/") && target != "containerd/runc" {
		return 20 * time.Second
	}
	return 6 * time.Second // enough to start and stop a sandbox on a busy machine
}

// wrong runs every error on all targets concurrently, except the excluded ones.
func wrong(t *testing.T, all []find.Found, out func(find.Found, misdeed) bool) {
	p, archive := folders(t), shell(t)
	var at sync.WaitGroup
	for _, f := range all {
		at.Go(func() {
			in := t.TempDir()
			// Readable by the image's user, whatever the mode of its parent folders.
			if err := os.Chmod(in, 0o755); err != nil {
				t.Error(err)
				return
			}
			own := strings.ReplaceAll(f.Name, "/", "-")
			roots := workspace.Roots{State: filepath.Join(p.dir, "state-"+own), Data: filepath.Join(p.dir, "data-"+own)}
			script := filepath.Join(in, "do")
			s, env := within(t, p, roots, f.Target, setting.Workload{Image: archive, Command: []string{"bash", "/in/do"}, Mounts: []setting.Mount{setting.Mount(in + ":/in")},
				HostCommand: []string{"bash", script}}, patience(f.Name))
			s = minder.Wrap(s, env, loud)
			for _, m := range misdeeds {
				if out(f, m) || m.name == forks && f.Name == "host" { // the host has no limits
					continue
				}
				began := time.Now()
				if err := os.WriteFile(script, []byte(m.script+"\n"), 0o644); err != nil {
					t.Error(err)
					return
				}
				within := time.Minute
				if m.name == never {
					within = time.Second
				}
				s, err := ready.Wrap(s, "log:^ready$", within)
				if err != nil {
					t.Error(err)
					return
				}
				told, log := commit(t, s, m, filepath.Join(in, "go"))
				took := time.Since(began).Round(time.Millisecond)
				says, other := m.but[f.Name]
				if !other {
					says = m.says
				}
				check.That(t, (told == nil) == (says == "") && (told == nil || has(told, says)), "%s, %s: %+v; want %q", f.Name, m.name, told, says)
				check.That(t, log <= bounded && took <= 2*time.Minute, "%s, %s: took %v, log of %d bytes", f.Name, m.name, took, log)
				if told != nil {
					t.Logf("%s %s: after %v, log of %d KiB: %s, exit %d: %s", f.Name, m.name, took, log>>10, told.Kind, told.Exit, told.Detail)
				}
			}
		})
	}
	at.Wait()
}

// commit runs a misbehaving program and returns its failure and the size of its log.
func commit(t *testing.T, s subject.Session, m misdeed, sign string) (*record.Failure, int64) {
	ctx := t.Context()
	defer func() {
		check.Error(t, s.Discard(context.WithoutCancel(ctx), []int{0}), "")
	}()
	samples, err := subject.Operate(ctx, s, subject.Run, []int{0})
	if err != nil {
		t.Error(err)
		return nil, 0
	}
	x := samples[0]
	at, _ := subject.As[subject.Reachable](s)
	if m.op != subject.Run && x.Failure == nil {
		check.Error(t, os.WriteFile(sign, nil, 0o644), "")
		defer os.Remove(sign)
		for pid, late := at.Reach(0).Pid, time.Now().Add(time.Minute); !m.done(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(late) {
				t.Errorf("%s: the program did not fail in time", m.name)
				break
			}
		}
		if samples, err = subject.Operate(ctx, s, m.op, []int{0}); err != nil {
			t.Error(err)
			return nil, 0
		}
		x = samples[0]
	}
	log := int64(0)
	if info, err := os.Stat(cmp.Or(at.Reach(0).Log, "/dev/null")); err == nil {
		log = info.Size()
	}
	return x.Failure, log
}
