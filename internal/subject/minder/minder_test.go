package minder

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/thread"
	"github.com/tare-bench/tare/record"
)

// one is a session with one lane and a process of this machine.
type one struct {
	pid int
	log string
	op  subject.Op
	on  *record.Failure // failure of all operations but the first

	bad    *record.Failure // failure of the first operation
	others bool            // the process does not belong to the container
	host   bool

	unknown bool // the exit status is unknown
}

func (o *one) Prepare(_ context.Context, op subject.Op, _ []int) (subject.Batch, error) {
	o.op = op
	return o, nil
}

func (o *one) Start(context.Context) (int64, []record.Sample, error) {
	s := record.Sample{Lane: 0}
	if o.op == subject.Run {
		s.Failure = o.bad
	}
	if o.op != subject.Run && o.on != nil {
		f := *o.on
		s.Failure = &f
	}
	return 1, []record.Sample{s}, nil
}
func (o *one) Discard(context.Context, []int) error { return nil }
func (o *one) Close(context.Context) error          { return nil }
func (o *one) Reach(int) subject.Reached {
	return subject.Reached{Pid: o.pid, Log: o.log, Plain: true, Host: o.host, Own: func(pid int) bool { return !o.others && pid == o.pid }}
}
func (o *one) Ended(context.Context, int) subject.Ended {
	return subject.Ended{Exit: 7, Known: !o.unknown, Output: "because"}
}

// shell starts a script as the first process of a PID namespace, and waits for its first line.
func shell(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	need.Root(t)
	c := exec.Command("/bin/sh", "-c", script)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err == nil {
		err = thread.Parent(t.Context(), c.Start)
	}
	must.OK(t, err)
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	must.Get(out.Read(make([]byte, 1)))(t)
	return c
}

// begun returns a session with a supervised program on lane 0.
func begun(t *testing.T, in *one) *session {
	t.Helper()
	s := Wrap(in, subject.Env{}, 1<<20)
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	operate(t, s, subject.Run)
	return s.(*session)
}

// operate performs an operation on lane 0, and returns its failure.
func operate(t *testing.T, s subject.Session, op subject.Op) *record.Failure {
	t.Helper()
	samples := must.Get(subject.Operate(t.Context(), s, op, []int{0}))(t)
	return samples[0].Failure
}

// ends waits until a process has ended, without reaping it.
func ends(t *testing.T, pid int) {
	t.Helper()
	must.OK(t, unix.Waitid(unix.P_PID, pid, new(unix.Siginfo), unix.WEXITED|unix.WNOWAIT, nil))
}

func TestFailureHasTheReasonOfTheProgram(t *testing.T) {
	late := &record.Failure{Kind: record.FailTimeout, Detail: "timed out"}
	killed := &record.Failure{Kind: record.FailWorkload, Exit: 137, Detail: "killed"}
	other := &record.Failure{Kind: record.FailState, Detail: "its state"}
	for name, c := range map[string]struct {
		script string
		on     *record.Failure
		ends   bool // the program ends before the stop
		says   string
	}{
		"no handler":             {"echo; exec sleep 1000", late, false, "timed out: the workload had no handler for SIGTERM"},
		"no handler, killed":     {"echo; exec sleep 1000", killed, false, "killed: the workload had no handler for SIGTERM"},
		"ignored signal":         {"trap '' TERM; echo; exec sleep 1000", late, false, "timed out: the workload ignores SIGTERM"},
		"handler":                {"trap : TERM; echo; sleep 1000 & wait", late, false, "timed out"},
		"other failure":          {"trap '' TERM; echo; exec sleep 1000", other, false, "its state"},
		"no failure":             {"trap : TERM; echo; sleep 1000 & wait", nil, false, ""},
		"ended early":            {"echo", late, true, "the workload ended before it was stopped, with status 7"},
		"ended early, unnoticed": {"echo", nil, true, "the workload ended before it was stopped, with status 7"},
	} {
		t.Run(name, func(t *testing.T) {
			in := &one{pid: shell(t, c.script).Process.Pid, on: c.on}
			s := begun(t, in)
			if c.ends {
				ends(t, in.pid)
			}
			f := operate(t, s, subject.Stop)
			check.That(t, (f != nil) == (c.says != "") && (f == nil || strings.HasPrefix(f.Detail, c.says)) && (c.says != "timed out" || f.Detail == c.says),
				"%+v, want %q", f, c.says)
		})
	}
}

func TestOverFindsEndedPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		script  string
		others  bool // the process is not confirmed as that of the container
		unknown bool // the end or the exit status is unknown
		says    string
	}{
		"running":                       {script: "echo; exec sleep 1000"},
		"ended":                         {script: "echo", says: "the workload ended before it was stopped, with status 7"},
		"ended, unknown status":         {script: "echo", unknown: true, says: "the workload ended before it was stopped"},
		"ended before it was confirmed": {script: "echo", others: true, says: "the workload ended before it was stopped, with status 7"},
		"unknown state":                 {script: "echo", others: true, unknown: true},
	} {
		t.Run(name, func(t *testing.T) {
			in := &one{pid: shell(t, c.script).Process.Pid, others: c.others, unknown: c.unknown}
			s := begun(t, in)
			if c.script == "echo" {
				ends(t, in.pid)
			}
			over, f := subject.Over(t.Context(), s, []int{0})
			check.That(t, (f != nil) == (c.says != "") && len(over) > 0 == (f != nil) && (f == nil || f.Detail == c.says && f.Output == "because"),
				"%v, %+v, want %q", over, f, c.says)
		})
	}
}

func TestProgramThatFloodsItsLogIsKilled(t *testing.T) {
	p := shell(t, "echo; exec sleep 1000")
	in := &one{pid: p.Process.Pid, log: filepath.Join(t.TempDir(), "log")}
	must.OK(t, os.WriteFile(in.log, make([]byte, 1<<20-1), 0o600))
	s := begun(t, in)
	why := s.ended(0, false)
	must.That(t, why == "", "killed because %s", why)
	must.OK(t, os.WriteFile(in.log, make([]byte, 1<<20), 0o600))
	err := p.Wait()
	check.That(t, err != nil && p.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL, "the program exited with %v", err)
	e := s.Ended(t.Context(), 0)
	check.That(t, e.Advice == quieter, "advice: %q", e.Advice)
	f := operate(t, s, subject.Stop)
	check.That(t, f != nil && f.Detail == "its output exceeded 1 MiB, so it was killed", "%+v", f)
	f = operate(t, s, subject.Remove)
	check.That(t, f == nil, "reported twice: %+v", f)
}

func TestForeignProcessIsNotKilled(t *testing.T) {
	bad := &record.Failure{Kind: record.FailState, Detail: "its state"}
	for name, c := range map[string]struct {
		in   one
		ends bool
	}{
		"process of the container":               {one{}, true},
		"foreign process with a reused PID":      {one{others: true}, false},
		"process of the container, failed start": {one{bad: bad}, true},
		"foreign process, failed start":          {one{bad: bad, others: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := shell(t, "echo; exec sleep 1000")
			in := c.in
			in.pid, in.log = p.Process.Pid, filepath.Join(t.TempDir(), "log")
			must.OK(t, os.WriteFile(in.log, make([]byte, 1<<20), 0o600))
			why := begun(t, &in).ended(0, false)
			check.That(t, (why != "") == c.ends, "killed because %q", why) // ended also detects an exit
		})
	}
}

// A PID is used only if the target confirms that the process belongs to the container.
func TestUnconfirmedProcessIsNotPinned(t *testing.T) {
	check.Equal(t, "pinned process", pin(subject.Reached{Pid: os.Getpid()}), -1)
}

func TestRefusedTasksAreReportedForTheContainerOnly(t *testing.T) {
	group := limited(t)
	for name, c := range map[string]struct {
		in   one
		says string
		over bool // exited and reaped before the stop
	}{
		"cgroup of a container":        {in: one{}, says: "it was refused more tasks"},
		"cgroup of an ended container": {one{}, "the workload ended before it was stopped, with status 7; it was refused more tasks", true},
		"foreign process":              {in: one{others: true}},
		"cgroup of the machine":        {in: one{host: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := shell(t, "trap : TERM; echo; sleep 1000 & wait")
			must.OK(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(p.Process.Pid)), 0o600))
			in := c.in
			in.pid = p.Process.Pid
			s := begun(t, &in)
			if c.over {
				_ = p.Process.Kill()
				_ = p.Wait()
			}
			f := operate(t, s, subject.Stop)
			check.That(t, (f != nil) == (c.says != "") && (f == nil || strings.HasPrefix(f.Detail, c.says)), "%+v", f)
		})
	}
}

// limited creates a cgroup that has refused a task because of its limit.
func limited(t *testing.T) string {
	t.Helper()
	hs := must.Get(cgroup.Hierarchies())(t)
	h, found := machine.Cgroups(hs).Find("pids")
	if os.Geteuid() != 0 || !found {
		t.Skip("needs root and the pids controller for a limit")
	}
	hs = cgroup.Using(hs, "pids")
	name := cgroup.Prefix + "minder-" + strconv.Itoa(os.Getpid())
	must.OK(t, cgroup.Delegate(hs, name, "pids"))
	group := filepath.Join(h.Mount, name, "one")
	t.Cleanup(func() { must.OK(t, cgroup.Remove(hs, name)) })
	write := func(file, text string) {
		t.Helper()
		must.OK(t, os.WriteFile(filepath.Join(group, file), []byte(text), 0o600))
	}
	must.OK(t, os.Mkdir(group, 0o755))
	write("pids.max", "1")
	forks := shell(t, "echo; while (:); do :; done") // forks until the limit refuses a task
	write("cgroup.procs", strconv.Itoa(forks.Process.Pid))
	_ = forks.Wait() // the exit status does not matter
	write("pids.max", "100")
	return group
}

func TestMostDividesTheDiskAmongLanes(t *testing.T) {
	for lanes, want := range map[int]int64{0: 256 << 20, 1: 256 << 20, 100: 42949672, 1000: 16 << 20} {
		check.Equal(t, lanes, Most(lanes), want)
	}
}
