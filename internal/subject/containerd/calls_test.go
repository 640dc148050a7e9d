package containerd

import (
	"context"
	"net"
	"path/filepath"
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
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// serve is the socket of a gRPC server.
func serve(t *testing.T, server *grpc.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l := must.Get(net.Listen("unix", path))(t)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	return path
}

// A daemon that hangs takes a connection and answers nothing: whoever asks has
// to give up by himself.
func TestEveryQuestionBesideTheTimedOnesIsBounded(t *testing.T) {
	var asked atomic.Int64
	path := serve(t, grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		asked.Add(1)
		method, _ := grpc.MethodFromServerStream(stream)
		if end, ok := stream.Context().Deadline(); !ok || time.Until(end) > 2*time.Minute {
			t.Errorf("%s may take for ever", method)
		}
		return status.Error(codes.Internal, "out of order")
	})))

	d := &Target{name: "mine", at: address{path, "x"}, snapshotter: "native"}
	if _, err := d.Open(t.Context(), enginetest.Environment(t, 1)); err == nil {
		t.Error("it was opened")
	}
	if _, err := d.Clean(t.Context(), "x", false); err == nil {
		t.Error("it was swept")
	}
	if asked.Load() < 5 {
		t.Errorf("%d questions", asked.Load())
	}
}

// slow is a containerd whose tasks stop some time after they were killed, as
// Kata's do.
type slow struct {
	tasks.UnimplementedTasksServer
	asked   int
	deleted bool
	early   bool // it was told to delete one that had not stopped
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

func TestATaskIsDeletedWhenItHasStopped(t *testing.T) {
	s, server := new(slow), grpc.NewServer()
	tasks.RegisterTasksServer(server, s)
	c := must.Get(Connect(t.Context(), serve(t, server), "x"))(t)
	defer func() { _ = c.Close() }()
	// The record is another service's, which is not here.
	if err := removeContainer(t.Context(), c, "id"); err == nil || !s.deleted || s.early {
		t.Errorf("%+v, %v", s, err)
	}
}

// told is a task that ends on whatever signal it is sent.
type told struct {
	client.Task
	by    syscall.Signal
	exits chan client.ExitStatus
}

func (t *told) Wait(context.Context) (<-chan client.ExitStatus, error) { return t.exits, nil }

func (t *told) Kill(_ context.Context, s syscall.Signal, _ ...client.KillOpts) error {
	t.by = s
	t.exits <- *client.NewExitStatus(0, time.Now(), nil)
	return nil
}

func TestAContainerIsStoppedByTheSignalThatItsImageNames(t *testing.T) {
	d, task := &driver{waiting: t.Context()}, &told{exits: make(chan client.ExitStatus, 1)}
	d.env.Workload.Cargo = &cargo.Cargo{Process: cargo.Process{Stop: syscall.SIGQUIT}}
	d.Target, d.containers = &Target{}, map[string]*container{"a": {task: task}}
	do, _, err := d.call(t.Context(), subject.Stop, engine.State{Name: "a"}, engine.Place{})
	if err == nil {
		err = do(t.Context())
	}
	if err != nil || task.by != syscall.SIGQUIT {
		t.Errorf("sent %v: %v", task.by, err)
	}
}
