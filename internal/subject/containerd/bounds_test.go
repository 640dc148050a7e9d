package containerd

import (
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

// A daemon that hangs takes a connection and answers nothing: whoever asks has
// to give up by himself.
func TestEveryQuestionBesideTheTimedOnesIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		asked.Add(1)
		method, _ := grpc.MethodFromServerStream(stream)
		if end, ok := stream.Context().Deadline(); !ok || time.Until(end) > 2*time.Minute {
			t.Errorf("%s may take for ever", method)
		}
		return status.Error(codes.Internal, "out of order")
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

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
