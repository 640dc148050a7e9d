package cri

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// stopTimeout is how long (s) a container may take to end on SIGTERM before the
// engine kills it.
const stopTimeout = 10

// held is what a lane holds: a pod, and maybe a container in it. A lane gets a
// new one with every pod and every container: a call that was given up may
// still write into the old one.
type held struct {
	lane      int
	name      string // of the pod; "" where there is none
	config    *api.PodSandboxConfig
	pod       string // id
	container string // id
	token     string // what the workload reports with; the container's name
	pid       int    // of the container's process, as far as it is known
}

// podConfig is that of a new pod.
func (s *session) podConfig(name string) *api.PodSandboxConfig {
	return &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: name, Uid: name, Namespace: "tare"},
		LogDirectory: s.logs,
		Labels:       map[string]string{engine.RunLabel: s.env.RunID},
		// Without this part cri-dockerd gives the pod a network card.
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent: s.cgroupParent(name),
			// As a kubelet has them since 1.22, of a pod without overhead in its
			// RuntimeClass: runtimes with a VM make it that large. It limits
			// nothing by itself.
			Resources: s.resources(),
			Overhead:  &api.LinuxContainerResources{},
			SecurityContext: &api.LinuxSandboxSecurityContext{
				NamespaceOptions: &api.NamespaceOption{Network: s.podNetwork(), Pid: api.NamespaceMode_CONTAINER},
				Seccomp:          unconfined(),
			},
		},
	}
}

// unconfined is what a kubelet asks for by default. Without it some engines put
// a profile of their own in its place.
func unconfined() *api.SecurityProfile {
	return &api.SecurityProfile{ProfileType: api.SecurityProfile_Unconfined}
}

// cgroupParent is where a pod has its cgroups. With the cgroupfs driver that
// is a group of its own below the run's, so that nothing of it stays. systemd takes the units
// of pods away itself, but slices that were made for them would stay: there it
// is one that it always has. An engine that does not tell keeps its default.
func (s *session) cgroupParent(pod string) string {
	switch s.facts.cgroups {
	case "cgroupfs":
		return s.podGroup(pod)
	case "systemd":
		return "system.slice"
	}
	return ""
}

// resources are the run's limits. What is 0 is not limited, for engines too; a
// period stands with a quota only.
func (s *session) resources() *api.LinuxContainerResources {
	r := &api.LinuxContainerResources{MemoryLimitInBytes: s.env.Limits.Memory, CpuShares: s.env.Limits.CPUShares}
	if quota := s.env.Limits.CPUQuota(); quota > 0 {
		r.CpuQuota, r.CpuPeriod = quota, subject.CPUPeriod
	}
	return r
}

// mounts are a container's volume, or its pod's tmpfs. Without any, what is at
// subject.VolumePath is for the workload to make in its root file system, which is
// writable.
func (s *session) mounts(h *held) []*api.Mount {
	m := &api.Mount{ContainerPath: subject.VolumePath, Propagation: api.MountPropagation_PROPAGATION_PRIVATE}
	switch dir, tmpfs := s.volumes.Folder(h.lane), s.tmpfses.folder(h.name); {
	case dir != "":
		m.HostPath = dir
	case tmpfs != "":
		m.HostPath, m.SelinuxRelabel = tmpfs, true // as a kubelet asks for an emptyDir, and not for a path of the host
	default:
		return nil
	}
	return []*api.Mount{m}
}

// devices are a container's block device. What a kubelet gives a container as a
// volume with the mode Block is this.
func (s *session) devices() []*api.Device {
	if s.device.Node == "" {
		return nil
	}
	return []*api.Device{{ContainerPath: subject.DevicePath, HostPath: s.device.Node, Permissions: "rw"}}
}

// containerConfig is that of a new container in what a lane holds.
func (s *session) containerConfig(h *held) *api.ContainerConfig {
	return &api.ContainerConfig{
		Mounts:   s.mounts(h),
		Devices:  s.devices(),
		Metadata: &api.ContainerMetadata{Name: h.token},
		// Like a kubelet: by its id, so that no name is looked up.
		Image:   &api.ImageSpec{Image: s.image.id, UserSpecifiedImage: s.image.ref},
		Args:    []string{h.token},
		Labels:  map[string]string{engine.RunLabel: s.env.RunID},
		LogPath: logName(h.token),
		Linux: &api.LinuxContainerConfig{
			Resources: s.resources(),
			SecurityContext: &api.LinuxContainerSecurityContext{
				NamespaceOptions: &api.NamespaceOption{Network: s.podNetwork(), Pid: api.NamespaceMode_CONTAINER},
				Seccomp:          unconfined(),
			},
		},
	}
}

func (s *session) podNetwork() api.NamespaceMode {
	if s.network == subject.NetworkBridge {
		return api.NamespaceMode_POD
	}
	return api.NamespaceMode_NODE
}

func logName(token string) string { return token + ".log" }

// call is one CRI call.
type call func(ctx context.Context) error

// runPod returns the call that makes a new pod for a lane.
func (s *session) runPod(n int) (call, error) {
	h := &held{lane: n, name: engine.NewName(s.env.RunID, n)}
	s.held[n] = h
	if err := errors.Join(s.makeGroup(h.name), s.tmpfses.mount(h.name)); err != nil {
		return nil, err
	}
	h.config = s.podConfig(h.name)
	request := &api.RunPodSandboxRequest{Config: h.config, RuntimeHandler: s.handler}
	return func(ctx context.Context) error {
		reply, err := s.conn.runtime.RunPodSandbox(ctx, request)
		h.pod = reply.GetPodSandboxId()
		return plain(ctx, "RunPodSandbox", err)
	}, nil
}

// create returns the call that makes a container in the lane's pod. The pod's
// id is known only when the call is made, if the pod is part of the operation.
func (s *session) create(n int) call {
	h := new(held)
	if was := s.held[n]; was.pod != "" {
		*h = *was
		s.held[n] = h
	} else {
		h = was // the pod is made by the same operation
	}
	h.token = engine.NewName(s.env.RunID, n)
	request := &api.CreateContainerRequest{PodSandboxId: h.pod, Config: s.containerConfig(h), SandboxConfig: h.config}
	return func(ctx context.Context) error {
		request.PodSandboxId = h.pod
		reply, err := s.conn.runtime.CreateContainer(ctx, request)
		h.container = reply.GetContainerId()
		return plain(ctx, "CreateContainer", err)
	}
}

func (s *session) start(n int) call {
	h := s.held[n]
	request := &api.StartContainerRequest{ContainerId: h.container}
	return func(ctx context.Context) error {
		request.ContainerId = h.container
		_, err := s.conn.runtime.StartContainer(ctx, request)
		return plain(ctx, "StartContainer", err)
	}
}

// prepare returns the call of one operation on one lane.
func (s *session) prepare(op subject.Op, n int) (call, error) {
	h := s.held[n]
	switch {
	case op != subject.RunPod && op != subject.Run && h.pod == "":
		return nil, fmt.Errorf("lane %d has no pod", n)
	case (op == subject.Start || op == subject.Stop || op == subject.Remove) && h.container == "":
		return nil, fmt.Errorf("lane %d has no container", n)
	}
	runtime := s.conn.runtime
	switch op {
	case subject.RunPod:
		return s.runPod(n)
	case subject.Create:
		return s.create(n), nil
	case subject.Start:
		return s.start(n), nil
	case subject.Run:
		pod, err := s.runPod(n)
		if err != nil {
			return nil, err
		}
		steps := []call{pod, s.create(n), s.start(n)}
		return func(ctx context.Context) error {
			for _, step := range steps {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		}, nil
	case subject.Stop:
		request := &api.StopContainerRequest{ContainerId: h.container, Timeout: stopTimeout}
		return func(ctx context.Context) error {
			_, err := runtime.StopContainer(ctx, request)
			return plain(ctx, "StopContainer", err)
		}, nil
	case subject.Remove:
		request := &api.RemoveContainerRequest{ContainerId: h.container}
		return func(ctx context.Context) error {
			_, err := runtime.RemoveContainer(ctx, request)
			return plain(ctx, "RemoveContainer", err)
		}, nil
	case subject.StopPod:
		request := &api.StopPodSandboxRequest{PodSandboxId: h.pod}
		return func(ctx context.Context) error {
			_, err := runtime.StopPodSandbox(ctx, request)
			return plain(ctx, "StopPodSandbox", err)
		}, nil
	case subject.RemovePod:
		request := &api.RemovePodSandboxRequest{PodSandboxId: h.pod}
		return func(ctx context.Context) error {
			_, err := runtime.RemovePodSandbox(ctx, request)
			return plain(ctx, "RemovePodSandbox", err)
		}, nil
	}
	return nil, subject.ErrUnsupported
}

// plain says of an error which call it is from. gRPC's own words for a context
// that ended become the context's.
func plain(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if code := status.Code(err); (code == codes.DeadlineExceeded || code == codes.Canceled) && ctx.Err() != nil {
		return fmt.Errorf("%s: %w", name, ctx.Err())
	}
	return fmt.Errorf("%s: %w", name, err)
}

// groupOf is the cgroup of a target of a run.
func groupOf(env subject.Env) string {
	return filepath.Join(cgroup.Prefix+env.RunID, filepath.Base(env.Dir))
}

// command is what an operation on a lane calls, for people.
func (s *session) command(op subject.Op, n int) string {
	return strings.ReplaceAll(s.operations()[string(op)].Command, "ID", s.held[n].name)
}
