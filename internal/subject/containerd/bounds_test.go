package containerd

import (
	"context"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	tasks "github.com/containerd/containerd/api/services/tasks/v1"
	types "github.com/containerd/containerd/api/types/task"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// serve is the socket of a gRPC server.
func serve(t *testing.T, server *grpc.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	must.OK(t, err)
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
	c, err := Connect(t.Context(), serve(t, server), "x")
	must.OK(t, err)
	defer func() { _ = c.Close() }()
	// The record is another service's, which is not here.
	if err := removeContainer(t.Context(), c, "id"); err == nil || !s.deleted || s.early {
		t.Errorf("%+v, %v", s, err)
	}
}
