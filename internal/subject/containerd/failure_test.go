package containerd

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	types "github.com/containerd/containerd/api/types/task"
	"github.com/containerd/containerd/v2/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// wrapper is an OCI runtime that calls runc, except for some verbs.
func wrapper(t *testing.T, cases string) string {
	t.Helper()
	runc := need.Tool(t, "runc")
	path := filepath.Join(t.TempDir(), "runtime")
	script := fmt.Sprintf("#!/bin/sh\nfor id; do :; done\ncase \" $* \" in\n%s\nesac\nexec %s \"$@\"\n", cases, runc)
	must.OK(t, os.WriteFile(path, []byte(script), 0o755))
	return path
}

func TestSuccessWithoutEffectIsAFailure(t *testing.T) {
	d := engines.Containerd(t, engines.V1)
	for _, c := range []struct {
		name, cases string
		op          subject.Op
		kind, says  string
	}{
		{"start without effect", `*' start '*) exit 0;;`, subject.Start, record.FailWorkload, "first line is not in the container's log"},
		{"start that kills the container", `*' start '*) pid=$(runc --root "$2" state $id | sed -n 's/.*"pid": \([0-9]*\).*/\1/p'); runc --root "$2" kill $id KILL; while kill -0 $pid 2> /dev/null; do sleep 0.02; done; exit 0;;`,
			subject.Start, record.FailState, "reported success, "},
		{"stop with SIGKILL", `*' kill '*) exec runc --root "$2" kill $(echo " $*" | sed 's/.* kill //; s/ [0-9]*$//') KILL;;`, subject.Stop, record.FailWorkload, "killed by signal 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := enginetest.Environment(t, 1)
			env.Timeout = 3 * time.Second
			s := open(t, d, wrapper(t, c.cases), env)
			for _, op := range []subject.Op{subject.Create, subject.Start, subject.Stop} {
				if op != c.op {
					enginetest.Must(t, s, op, 1)
					continue
				}
				f := enginetest.Do(t, s, op, 1)[0].Failure
				must.That(t, f != nil && f.Kind == c.kind && strings.Contains(f.Detail, c.says) && strings.Contains(f.Command, "tare-"+env.RunID+"-0-"),
					"%s: %+v", op, f)
				break
			}
			must.OK(t, s.Close(t.Context()))
			nothing(t, d)
		})
	}
}

// Kata's runtime continues to boot its VM for seconds after its client has disconnected.
// This fake has the name of the runtime and the ID of the container. It continues until it
// is released.
func TestRuntimeOfAnAbandonedCallIsAwaited(t *testing.T) {
	need.Tool(t, "bash") // for the process name
	d := engines.Containerd(t, engines.V1)
	dir := t.TempDir()
	let, made := filepath.Join(dir, "let"), filepath.Join(dir, "made")
	must.OK(t, syscall.Mkfifo(let, 0o600))
	goesOn := filepath.Join(dir, "goes-on")
	must.Write(t, goesOn, "read x < "+let+"; sleep 0.3; touch "+made+"\n")
	env := enginetest.Environment(t, 1)
	env.Timeout = 2 * time.Second
	s := open(t, d, wrapper(t, `*' create '*) setsid bash -c "exec -a kata-runtime bash `+goesOn+` create $id" > /dev/null 2>&1 < /dev/null & exec sleep 600;;`), env)
	if f := enginetest.Do(t, s, subject.Create, 1)[0].Failure; f == nil || f.Kind != record.FailTimeout {
		t.Fatalf("%+v", f)
	}
	var once sync.Once
	ctx := term.WithSayer(t.Context(), func(text string) {
		once.Do(func() {
			if _, err := os.Stat(made); err == nil || !strings.Contains(text, "kata-runtime") {
				t.Errorf("said %q, %v", text, err)
			}
			must.Write(t, let, "\n")
		})
	})
	must.OK(t, s.Close(ctx))
	must.Get(os.Stat(made))(t)
	nothing(t, d)
}

func TestExistingNameFailsItsLaneAndItsOwnerIsUntouched(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		t.Cleanup(func() { nothing(t, d) })
		s := open(t, d, "runc", enginetest.Environment(t, 2))
		b := must.Get(s.Prepare(t.Context(), subject.Create, enginetest.UpTo(2)))(t)
		taken := s.Held()[0].Name
		create := exec.Command(d.Ctr, "-a", d.Address, "-n", ownNamespace, "snapshots", "prepare", taken)
		if out, err := create.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		_, samples, err := b.Start(t.Context())
		must.OK(t, err)
		if f := samples[0].Failure; f == nil || f.Kind != record.FailError || !strings.Contains(f.Detail, "already exists") || !strings.Contains(f.Command, taken) {
			t.Errorf("lane 0: %+v", f)
		}
		f := samples[1].Failure
		check.That(t, f == nil, "lane 1: %+v", f)
		must.OK(t, s.Discard(t.Context(), enginetest.UpTo(2)))
		left := d.Snapshots(t, ownNamespace)
		check.That(t, len(left) == 2 && slices.Contains(left, taken), "%q", left) // and the image's lease
		must.OK(t, s.client.SnapshotService(s.snapshotter).Remove(t.Context(), taken))
	})
}

func TestTwoTargetsOfARunKeepTheirImage(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		t.Cleanup(func() { nothing(t, d) })
		one, other := enginetest.Environment(t, 1), enginetest.Environment(t, 1)
		other.RunID = one.RunID
		a, b := open(t, d, "runc", one), open(t, d, "crun", other)
		must.OK(t, a.Close(t.Context()))
		enginetest.Must(t, b, subject.Run, 1)
	})
}

func TestCleanLeavesOtherRuns(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		t.Cleanup(func() { nothing(t, d) })
		env := enginetest.Environment(t, 2)
		killed, other := open(t, d, "runc", env), open(t, d, "runc", enginetest.Environment(t, 1))
		enginetest.Must(t, killed, subject.Run, 2)
		enginetest.Must(t, other, subject.Run, 1)
		want := fmt.Sprintf("[container %s container %s image %s lease %s]", killed.Held()[0].Name, killed.Held()[1].Name, killed.image.Ref, killed.image.lease.ID)
		for _, dryRun := range []bool{true, false} {
			left, err := killed.Clean(t.Context(), env.RunID, dryRun)
			must.That(t, err == nil && fmt.Sprint(left) == want, "%v, %v; not %s", left, err, want)
		}
		left := d.Containers(t, ownNamespace)
		must.That(t, len(left) == 1 && left[0] == other.Held()[0].Name, "%q", left)
		enginetest.Must(t, other, subject.Stop, 1)
		enginetest.Must(t, other, subject.Remove, 1)
		enginetest.Must(t, other, subject.Run, 1)
	})
}

func TestLateSuccessIsRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		env := enginetest.Environment(t, 4)
		env.Timeout = 15 * time.Millisecond // too short for a create
		s := open(t, d, "runc", env)
		for _, sample := range enginetest.Do(t, s, subject.Create, 4) {
			check.That(t, sample.Failure != nil && sample.Failure.Kind == record.FailTimeout, "%+v", sample)
		}
		must.OK(t, s.Close(t.Context()))
		nothing(t, d)
	})
}

func TestKilledEngineFailsItsLanes(t *testing.T) {
	runc := need.Tool(t, "runc")
	d := engines.Containerd(t, engines.V1, engines.Runtime("victim", runc)) // not shared
	s := must.Get(weigh(t, d, "runc").Open(t.Context(), enginetest.Environment(t, 10)))(t)
	enginetest.Dies(t, s, d.Pid, "containerd/runc")
}

// serve returns the socket of a gRPC server.
func serve(t *testing.T, server *grpc.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l := must.Get(net.Listen("unix", path))(t)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return path
}

// A hanging daemon accepts connections and never answers. So every call needs a timeout.
func TestUntimedCallsAreBounded(t *testing.T) {
	var asked atomic.Int64
	path := serve(t, grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		asked.Add(1)
		method, _ := grpc.MethodFromServerStream(stream)
		end, ok := stream.Context().Deadline()
		check.That(t, ok && time.Until(end) <= 2*time.Minute, "%s has no deadline", method)
		return status.Error(codes.Internal, "out of order")
	})))

	d := &Target{name: "mine", at: address{path, "x"}, snapshotter: "native"}
	_, err := d.Open(t.Context(), enginetest.Environment(t, 1))
	check.That(t, err != nil, "Open succeeded")
	_, err = d.Clean(t.Context(), "x", false)
	check.That(t, err != nil, "Clean succeeded")
	check.That(t, asked.Load() >= 5, "%d requests", asked.Load())
}

// slow is a containerd with tasks that stop some time after a kill, like those of Kata.
type slow struct {
	tasks.UnimplementedTasksServer
	asked   int
	deleted bool
	early   bool // a task was deleted before it had stopped
}

func (s *slow) Kill(context.Context, *tasks.KillRequest) (*emptypb.Empty, error) {
	if s.deleted {
		return nil, status.Error(codes.NotFound, "gone")
	}
	return new(emptypb.Empty), nil
}

func (s *slow) Get(context.Context, *tasks.GetRequest) (*tasks.GetResponse, error) {
	s.asked++
	p := &types.Process{Status: types.Status_RUNNING}
	if s.asked > 20 {
		p.Status = types.Status_STOPPED
	}
	return &tasks.GetResponse{Process: p}, nil
}

func (s *slow) Delete(context.Context, *tasks.DeleteTaskRequest) (*tasks.DeleteResponse, error) {
	s.early, s.deleted = s.early || s.asked <= 20, true
	return new(tasks.DeleteResponse), nil
}

func TestTaskIsDeletedOnceStopped(t *testing.T) {
	s, server := new(slow), grpc.NewServer()
	tasks.RegisterTasksServer(server, s)
	c := must.Get(Connect(t.Context(), serve(t, server), "x"))(t)
	defer func() { _ = c.Close() }()
	// The record of the container is in another service, which this server lacks, so an
	// error is expected.
	err := removeContainer(t.Context(), c, "id")
	check.That(t, err != nil && s.deleted && !s.early, "%+v, %v", s, err)
}

// signalled is a task that ends on any signal.
type signalled struct {
	client.Task
	by    syscall.Signal
	exits chan client.ExitStatus
}

func (t *signalled) Wait(context.Context) (<-chan client.ExitStatus, error) { return t.exits, nil }

func (t *signalled) Kill(_ context.Context, s syscall.Signal, _ ...client.KillOpts) error {
	t.by = s
	t.exits <- *client.NewExitStatus(0, time.Now(), nil)
	return nil
}

func TestStopSendsTheStopSignalOfTheImage(t *testing.T) {
	d, task := &driver{waiting: t.Context()}, &signalled{exits: make(chan client.ExitStatus, 1)}
	d.env.Workload.Cargo = &cargo.Cargo{Process: cargo.Process{Stop: syscall.SIGQUIT}}
	d.Target, d.containers = &Target{}, map[string]*container{"a": {task: task}}
	do, _, err := d.call(t.Context(), subject.Stop, engine.State{Name: "a"}, engine.Place{})
	if err == nil {
		err = do(t.Context())
	}
	check.That(t, err == nil && task.by == syscall.SIGQUIT, "sent %v: %v", task.by, err)
}
