package cri

import (
	"context"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
)

// counting is an engine that does nothing and remembers what it was asked for.
type counting struct {
	server
	mu     sync.Mutex
	called []string
}

func (c *counting) note(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	c.mu.Lock()
	c.called = append(c.called, path.Base(info.FullMethod))
	c.mu.Unlock()
	return handle(ctx, request)
}

// since returns the calls since it was asked last.
func (c *counting) since() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.called
	c.called = nil
	return out
}

func (c *counting) RunPodSandbox(context.Context, *api.RunPodSandboxRequest) (*api.RunPodSandboxResponse, error) {
	return &api.RunPodSandboxResponse{PodSandboxId: "pod"}, nil
}

func (c *counting) CreateContainer(context.Context, *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
	return &api.CreateContainerResponse{ContainerId: "container"}, nil
}

func (c *counting) StartContainer(context.Context, *api.StartContainerRequest) (*api.StartContainerResponse, error) {
	return &api.StartContainerResponse{}, nil
}

func (c *counting) StopContainer(context.Context, *api.StopContainerRequest) (*api.StopContainerResponse, error) {
	return &api.StopContainerResponse{}, nil
}

func (c *counting) RemoveContainer(context.Context, *api.RemoveContainerRequest) (*api.RemoveContainerResponse, error) {
	return &api.RemoveContainerResponse{}, nil
}

func (c *counting) StopPodSandbox(context.Context, *api.StopPodSandboxRequest) (*api.StopPodSandboxResponse, error) {
	return &api.StopPodSandboxResponse{}, nil
}

func (c *counting) RemovePodSandbox(context.Context, *api.RemovePodSandboxRequest) (*api.RemovePodSandboxResponse, error) {
	return &api.RemovePodSandboxResponse{}, nil
}

// A tool that looks the image up beside CreateContainer times two things as
// one. Here each operation is its own calls, and nothing stands beside them.
func TestNothingIsAskedBesideTheCallsThatAreTimed(t *testing.T) {
	c := &counting{server: server{name: "containerd", status: ready("{}", "runc")}}
	address := listen(t, func(s *grpc.Server) {
		api.RegisterRuntimeServiceServer(s, c)
		api.RegisterImageServiceServer(s, c)
	}, grpc.UnaryInterceptor(c.note))
	conn, version, err := open(t.Context(), "x", "containerd", subject.Engine{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.close()
	s := &session{
		Target: &Target{name: "x", engineName: "containerd", version: version}, conn: conn, image: &imported{id: "image"},
		env: subject.Env{RunID: "abcdefgh", Lanes: 1, Timeout: 5 * time.Second}, held: []*held{{}},
	}
	for _, step := range []struct {
		op   subject.Op
		want []string
	}{
		{subject.RunPod, []string{"RunPodSandbox"}},
		{subject.Create, []string{"CreateContainer"}},
		{subject.Start, []string{"StartContainer"}},
		{subject.Stop, []string{"StopContainer"}},
		{subject.Remove, []string{"RemoveContainer"}},
		{subject.StopPod, []string{"StopPodSandbox"}},
		{subject.RemovePod, []string{"RemovePodSandbox"}},
		{subject.Run, []string{"RunPodSandbox", "CreateContainer", "StartContainer"}},
	} {
		do, err := s.prepare(step.op, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.since()
		if err := do(t.Context()); err != nil {
			t.Errorf("%s: %v", step.op, err)
		}
		if got := c.since(); !slices.Equal(got, step.want) {
			t.Errorf("%s calls %v, want %v", step.op, got, step.want)
		}
	}
}
