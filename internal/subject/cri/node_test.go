package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

// node is a fake engine. Its images and pods do nothing, and its command line is a script.
type node struct {
	server
	t       *testing.T
	address string
	command string // loads images; appends its arguments to the file calls
	calls   string

	mu         sync.Mutex
	images     map[string]string // id by name
	pods       []*api.PodSandbox
	containers []*api.Container
	broken     error    // returned by lists
	called     []string // the methods, in order
	stats      []*api.ContainerStats
	exit       int32 // of containers
	reason     string
	noPid      bool // it reports no pids, like iSulad
	exec       func(ctx context.Context, r *api.ExecSyncRequest) (*api.ExecSyncResponse, error)
}

func onNode(t *testing.T) *node {
	dir := t.TempDir()
	n := &node{server: server{name: "containerd", status: ready(oneHandler)}, t: t, images: map[string]string{}, command: filepath.Join(dir, "isula"), calls: filepath.Join(dir, "calls")}
	must.OK(t, os.WriteFile(n.command, []byte("#!/bin/sh\necho \"$*\" >> "+n.calls+"\n"), 0o755))
	bounded := func(ctx context.Context, request any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		method := path.Base(info.FullMethod)
		if end, ok := ctx.Deadline(); method != "ExecSync" && (!ok || time.Until(end) > 2*time.Minute) {
			t.Errorf("%s has no deadline", method)
		}
		n.with(func() { n.called = append(n.called, method) })
		return handle(ctx, request)
	}
	n.address = listen(t, func(s *grpc.Server) {
		api.RegisterRuntimeServiceServer(s, n)
		api.RegisterImageServiceServer(s, n)
	}, grpc.UnaryInterceptor(bounded))
	none := kubelet
	t.Cleanup(func() { kubelet = none })
	return n
}

// target returns the node as an iSulad target, because iSulad loads images by its command
// line.
func (n *node) target() *Target {
	return &Target{name: "mine", engineName: isuladEngine, socket: engine.Socket(n.address), e: subject.Engine{Command: n.command}, facts: facts{pause: "localhost/pause:1"}}
}

func (n *node) open() *session {
	n.t.Helper()
	s, err := n.target().Open(n.t.Context(), enginetest.Environment(n.t, 2))
	must.OK(n.t, err)
	return s.(*session)
}

// loads returns the commands since the last call.
func (n *node) loads() []string {
	b, _ := os.ReadFile(n.calls)
	_ = os.Remove(n.calls)
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func (n *node) with(do func()) { n.mu.Lock(); defer n.mu.Unlock(); do() }

// ImageStatus also finds an image if anything was loaded since the last call.
func (n *node) ImageStatus(_ context.Context, r *api.ImageStatusRequest) (*api.ImageStatusResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := n.images[r.Image.Image]
	if b, _ := os.ReadFile(n.calls); id == "" && len(b) > 0 {
		id = "loaded"
		if pause, err := image.Pause(r.Image.Image); err == nil && r.Image.Image == "localhost/pause:1" {
			id = pause.ID
		}
		n.images[r.Image.Image] = id
		_ = os.Remove(n.calls)
	}
	if id == "" {
		return &api.ImageStatusResponse{}, nil
	}
	return &api.ImageStatusResponse{Image: &api.Image{Id: id}}, nil
}

func (n *node) ListImages(context.Context, *api.ListImagesRequest) (*api.ListImagesResponse, error) {
	return &api.ListImagesResponse{}, nil
}

func (n *node) RemoveImage(_ context.Context, r *api.RemoveImageRequest) (*api.RemoveImageResponse, error) {
	n.with(func() { delete(n.images, r.Image.Image) })
	return &api.RemoveImageResponse{}, nil
}

func (n *node) ListPodSandbox(_ context.Context, r *api.ListPodSandboxRequest) (*api.ListPodSandboxResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	reply := &api.ListPodSandboxResponse{}
	for _, p := range n.pods {
		if want := r.GetFilter().GetLabelSelector()[engine.RunLabel]; want == "" || p.Labels[engine.RunLabel] == want {
			reply.Items = append(reply.Items, p)
		}
	}
	return reply, n.broken
}

func (n *node) ListContainers(context.Context, *api.ListContainersRequest) (*api.ListContainersResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return &api.ListContainersResponse{Containers: n.containers}, nil
}

func (n *node) RunPodSandbox(_ context.Context, r *api.RunPodSandboxRequest) (*api.RunPodSandboxResponse, error) {
	n.with(func() {
		n.pods = append(n.pods, &api.PodSandbox{Id: "pod of " + r.Config.Metadata.Name, Metadata: r.Config.Metadata, Labels: r.Config.Labels})
	})
	return &api.RunPodSandboxResponse{PodSandboxId: "pod of " + r.Config.Metadata.Name}, nil
}

func (n *node) CreateContainer(_ context.Context, r *api.CreateContainerRequest) (*api.CreateContainerResponse, error) {
	n.with(func() {
		n.containers = append(n.containers, &api.Container{Id: r.Config.Metadata.Name, PodSandboxId: r.PodSandboxId, Metadata: r.Config.Metadata, Labels: r.Config.Labels})
	})
	return &api.CreateContainerResponse{ContainerId: r.Config.Metadata.Name}, nil
}

func (n *node) StartContainer(_ context.Context, r *api.StartContainerRequest) (*api.StartContainerResponse, error) {
	n.becomes(r.ContainerId, api.ContainerState_CONTAINER_RUNNING)
	return &api.StartContainerResponse{}, nil
}

func (n *node) StopContainer(_ context.Context, r *api.StopContainerRequest) (*api.StopContainerResponse, error) {
	n.becomes(r.ContainerId, api.ContainerState_CONTAINER_EXITED)
	return &api.StopContainerResponse{}, nil
}

func (n *node) becomes(id string, state api.ContainerState) {
	n.with(func() {
		for _, c := range n.containers {
			if c.Id == id {
				c.State = state
			}
		}
	})
}

func (n *node) RemoveContainer(_ context.Context, r *api.RemoveContainerRequest) (*api.RemoveContainerResponse, error) {
	n.with(func() {
		n.containers = slices.DeleteFunc(n.containers, func(c *api.Container) bool { return c.Id == r.ContainerId })
	})
	return &api.RemoveContainerResponse{}, nil
}

// ContainerStatus reports this process.
func (n *node) ContainerStatus(_ context.Context, r *api.ContainerStatusRequest) (*api.ContainerStatusResponse, error) {
	reply := &api.ContainerStatusResponse{Status: &api.ContainerStatus{Id: r.ContainerId, ExitCode: n.exit, Reason: n.reason}, Info: map[string]string{"info": fmt.Sprintf(`{"pid":%d}`, os.Getpid())}}
	if n.noPid {
		reply.Info = nil
	}
	return reply, nil
}

func (n *node) StopPodSandbox(_ context.Context, r *api.StopPodSandboxRequest) (*api.StopPodSandboxResponse, error) {
	n.with(func() {
		for _, p := range n.pods {
			if p.Id == r.PodSandboxId {
				p.State = api.PodSandboxState_SANDBOX_NOTREADY
			}
		}
	})
	return &api.StopPodSandboxResponse{}, nil
}

func (n *node) RemovePodSandbox(_ context.Context, r *api.RemovePodSandboxRequest) (*api.RemovePodSandboxResponse, error) {
	n.with(func() {
		n.pods = slices.DeleteFunc(n.pods, func(p *api.PodSandbox) bool { return p.Id == r.PodSandboxId })
		n.containers = slices.DeleteFunc(n.containers, func(c *api.Container) bool { return c.PodSandboxId == r.PodSandboxId })
	})
	return &api.RemovePodSandboxResponse{}, nil
}

func (n *node) ExecSync(ctx context.Context, r *api.ExecSyncRequest) (*api.ExecSyncResponse, error) {
	return n.exec(ctx, r)
}

func (n *node) ListContainerStats(context.Context, *api.ListContainerStatsRequest) (*api.ListContainerStatsResponse, error) {
	return &api.ListContainerStatsResponse{Stats: n.stats}, nil
}

// pod returns a pod of the given run.
func pod(name, runID string) *api.PodSandbox {
	p := &api.PodSandbox{Id: name, Metadata: &api.PodSandboxMetadata{Name: name, Namespace: "default"}}
	if runID != "" {
		p.Labels = map[string]string{engine.RunLabel: runID}
	}
	return p
}

func TestPauseImageIsNotCreatedIfOthersWouldUseIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		kubelet bool
		pods    []*api.PodSandbox
		broken  error
		there   bool
		says    string // "" if the image may be created or exists
	}{
		{name: "no other pods"},
		{name: "only tare's pods", pods: []*api.PodSandbox{pod("tare-x-0-1", "x")}},
		{name: "a kubelet", kubelet: true, says: "a kubelet runs here"},
		{name: "a kubelet and an existing image", kubelet: true, there: true},
		{name: "pods of others", pods: []*api.PodSandbox{pod("web", "")}, says: "pods of others (default/web)"},
		{name: "pods of others and an existing image", pods: []*api.PodSandbox{pod("web", "")}, there: true},
		{name: "an engine that fails to list", broken: errors.New("no list"), says: "no list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onNode(t)
			kubelet = func(string) bool { return c.kubelet }
			n.pods, n.broken = c.pods, c.broken
			if c.there {
				n.images["localhost/pause:1"] = "own"
			}
			_, err := New(t.Context(), "mine", "containerd", "", subject.Engine{Address: n.address})
			var not *subject.Unavailable
			if c.says == "" && err != nil || c.says != "" && (!errors.As(err, &not) || not.Advice == "" || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("New: got %v, want %q", err, c.says)
			}
			if c.broken != nil {
				return
			}
			s, err := n.target().Open(t.Context(), enginetest.Environment(t, 1))
			if c.says == "" && err != nil || c.says != "" && (!errors.As(err, &not) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("Open: got %v, want %q", err, c.says)
			}
			if s != nil {
				_ = s.Close(t.Context())
			}
			if n.images["localhost/pause:1"] != "" != c.there {
				t.Errorf("images %v", n.images)
			}
		})
	}
}

func TestRemovedImagesAreLoadedAgain(t *testing.T) {
	n := onNode(t)
	n.images["localhost/pause:1"] = "own"
	s := n.open()
	probe := s.probe
	for _, op := range []subject.Op{subject.RunPod, subject.Create, subject.Run} {
		n.with(func() { delete(n.images, probe.Ref) })
		must.Get(s.Prepare(t.Context(), op, nil))(t)
		if n.images[probe.Ref] == "" || s.imageID != "loaded" {
			t.Errorf("%s: images %v, %q", op, n.images, s.imageID)
		}
	}
	must.OK(t, s.Close(t.Context()))
	if n.images[probe.Ref] != "" || n.images["localhost/pause:1"] != "own" {
		t.Errorf("it leaves %v", n.images)
	}
}

func TestIsulaLoadNamesItsDaemon(t *testing.T) {
	n := onNode(t)
	s := &driver{Target: n.target(), env: subject.Env{Dir: t.TempDir()}}
	probe := must.Get(image.Probe())(t)
	must.OK(t, s.load(t.Context(), probe))
	if got, want := n.loads(), "load -H "+n.address+" -i "+s.env.Dir+"/image.tar"; len(got) != 1 || got[0] != want {
		t.Errorf("%q, not %q", got, want)
	}
}

func TestDockerdIgnoresDockerHost(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
	check.Equal(t, "address of dockerd", dockerdOf(engine.Socket(onNode(t).address)), "unix:///var/run/docker.sock")
}

func TestPauseImageInUseKeepsTheRun(t *testing.T) {
	n := onNode(t)
	own := must.Get(image.Pause("localhost/pause:1"))(t)
	n.images[own.Ref] = own.ID
	n.pods = []*api.PodSandbox{pod("tare-gone-0-1", "gone"), pod("web", "")}
	check.Equal(t, "left", len(must.Get(n.target().Clean(t.Context(), "gone", true))(t)), 1)
	if left, err := n.target().Clean(t.Context(), "gone", false); err == nil || !strings.Contains(err.Error(), own.Ref) || len(left) != 1 || len(n.pods) != 1 {
		t.Errorf("%q, %v, pods %v", left, err, n.pods)
	}
	n.pods = nil
	if left, err := n.target().Clean(t.Context(), "gone", false); err != nil || len(left) != 1 || len(n.images) > 0 {
		t.Errorf("%q, %v, images %v", left, err, n.images)
	}
}

// iSulad reports no pids. A pod in the network of the host is reached in the network of
// the engine's process.
func TestPodWithoutPidIsReachedInTheEnginesNetwork(t *testing.T) {
	for _, c := range []struct {
		network string
		noPid   bool
		want    subject.Reached
	}{
		{subject.NetworkHost, true, subject.Reached{Sharing: os.Getpid()}},
		{subject.NetworkHost, false, subject.Reached{Pid: os.Getpid()}},
		{subject.NetworkBridge, true, subject.Reached{}},
	} {
		n := onNode(t)
		n.noPid = c.noPid
		target := n.target()
		target.network = c.network
		s := enginetest.Open(t, target, enginetest.Environment(t, 1)).(*session)
		for _, op := range []subject.Op{subject.RunPod, subject.Create} {
			enginetest.Must(t, s, op, 1)
		}
		got := s.Reach(0)
		check.Equal(t, fmt.Sprint(c.network, c.noPid), [2]int{got.Pid, got.Sharing}, [2]int{c.want.Pid, c.want.Sharing})
	}
}

// A timed operation must not make other calls. An image lookup, for example, would count as
// part of CreateContainer.
func TestTimedOperationsMakeNoOtherCalls(t *testing.T) {
	n := onNode(t)
	s := n.open()
	for op, want := range map[subject.Op][]string{
		subject.RunPod: {"RunPodSandbox"}, subject.Create: {"CreateContainer"}, subject.Start: {"StartContainer"}, subject.Stop: {"StopContainer"},
		subject.Remove: {"RemoveContainer"}, subject.StopPod: {"StopPodSandbox"}, subject.RemovePod: {"RemovePodSandbox"},
		subject.Run: {"RunPodSandbox", "CreateContainer", "StartContainer"},
	} {
		s.held["x"] = &held{pod: "pod", container: "container", config: s.podConfig("x")}
		do, shown, err := s.call(t.Context(), op, engine.State{Name: "x"}, engine.Place{})
		if err != nil || !strings.Contains(shown, " x") {
			t.Fatal(shown, err)
		}
		n.with(func() { n.called = nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		must.OK(t, do(ctx))
		cancel()
		check.Equal(t, op, n.called, want)
	}
	for says, h := range map[string]*held{"no pod": nil, "no container": {pod: "pod"}} {
		s.held["x"] = h
		_, _, err := s.call(t.Context(), subject.Stop, engine.State{Name: "x"}, engine.Place{})
		check.Error(t, err, says)
	}
}
