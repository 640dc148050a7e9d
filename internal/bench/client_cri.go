package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// criClient makes the bare calls of CRI.
type criClient struct {
	clientOrders
	conn    *grpc.ClientConn
	runtime api.RuntimeServiceClient
	ref, id string // of the image

	config         *api.PodSandboxConfig
	pod, container string // ids of what it holds
	token          string
}

func newCRIClient(ctx context.Context, o clientOrders) (*criClient, error) {
	i, err := image.Probe()
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+engine.Socket(o.Address), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	reply, err := api.NewImageServiceClient(conn).ImageStatus(ctx, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: i.Ref}})
	if err == nil && reply.GetImage().GetId() == "" {
		err = fmt.Errorf("the engine has no image %s", i.Ref)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &criClient{clientOrders: o, conn: conn, runtime: api.NewRuntimeServiceClient(conn), ref: i.Ref, id: reply.Image.Id}, nil
}

func (c *criClient) close(context.Context) error { return c.conn.Close() }

func namespaces() *api.NamespaceOption {
	return &api.NamespaceOption{Network: api.NamespaceMode_NODE, Pid: api.NamespaceMode_CONTAINER}
}

func (c *criClient) runPod() func(context.Context) error {
	name := engine.NewName(c.RunID, 0)
	c.config = &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: name, Uid: name, Namespace: "tare"},
		LogDirectory: c.Dir,
		Labels:       map[string]string{engine.RunLabel: c.RunID},
		Linux: &api.LinuxPodSandboxConfig{CgroupParent: "/" + c.Group,
			SecurityContext: &api.LinuxSandboxSecurityContext{NamespaceOptions: namespaces()}},
	}
	request := &api.RunPodSandboxRequest{Config: c.config, RuntimeHandler: ociRuntime}
	return func(ctx context.Context) error {
		reply, err := c.runtime.RunPodSandbox(ctx, request)
		c.pod = reply.GetPodSandboxId()
		return err
	}
}

func (c *criClient) create() func(context.Context) error {
	c.token = engine.NewName(c.RunID, 0)
	request := &api.CreateContainerRequest{SandboxConfig: c.config, Config: &api.ContainerConfig{
		Metadata: &api.ContainerMetadata{Name: c.token},
		Image:    &api.ImageSpec{Image: c.id, UserSpecifiedImage: c.ref},
		Args:     []string{c.token},
		Labels:   map[string]string{engine.RunLabel: c.RunID},
		LogPath:  c.token + ".log",
		Linux: &api.LinuxContainerConfig{
			Resources:       &api.LinuxContainerResources{MemoryLimitInBytes: c.Limits.Memory, CpuShares: c.Limits.CPUShares},
			SecurityContext: &api.LinuxContainerSecurityContext{NamespaceOptions: namespaces()},
		},
	}}
	return func(ctx context.Context) error {
		request.PodSandboxId = c.pod
		reply, err := c.runtime.CreateContainer(ctx, request)
		c.container = reply.GetContainerId()
		return err
	}
}

func (c *criClient) start(ctx context.Context) error {
	_, err := c.runtime.StartContainer(ctx, &api.StartContainerRequest{ContainerId: c.container})
	return err
}

func (c *criClient) prepare(_ context.Context, op subject.Op) (call, after func(context.Context) error, err error) {
	switch op {
	case subject.RunPod:
		return c.runPod(), nil, nil
	case subject.Create:
		return c.create(), nil, nil
	case subject.Start:
		return c.start, reported(filepath.Join(c.Dir, c.token+".log")), nil
	case subject.Run:
		pod, create := c.runPod(), c.create()
		return func(ctx context.Context) error {
			for _, step := range []func(context.Context) error{pod, create, c.start} {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		}, nil, nil
	case subject.Stop:
		request := &api.StopContainerRequest{ContainerId: c.container, Timeout: 10}
		return func(ctx context.Context) error {
			_, err := c.runtime.StopContainer(ctx, request)
			return err
		}, nil, nil
	case subject.Remove:
		request := &api.RemoveContainerRequest{ContainerId: c.container}
		return func(ctx context.Context) error {
			_, err := c.runtime.RemoveContainer(ctx, request)
			return err
		}, nil, nil
	case subject.StopPod:
		request := &api.StopPodSandboxRequest{PodSandboxId: c.pod}
		return func(ctx context.Context) error {
			_, err := c.runtime.StopPodSandbox(ctx, request)
			return err
		}, nil, nil
	case subject.RemovePod:
		request := &api.RemovePodSandboxRequest{PodSandboxId: c.pod}
		return func(ctx context.Context) error {
			_, err := c.runtime.RemovePodSandbox(ctx, request)
			return err
		}, nil, nil
	}
	return nil, nil, subject.ErrUnsupported
}

// discard removes the run's pods with what is in them.
func (c *criClient) discard(ctx context.Context) error {
	list, err := c.runtime.ListPodSandbox(ctx, &api.ListPodSandboxRequest{
		Filter: &api.PodSandboxFilter{LabelSelector: map[string]string{engine.RunLabel: c.RunID}}})
	errs := []error{err}
	for _, pod := range list.GetItems() {
		// As tare does: without grace, since a pod's stop would give it some.
		all, err := c.runtime.ListContainers(ctx, &api.ListContainersRequest{Filter: &api.ContainerFilter{PodSandboxId: pod.Id}})
		errs = append(errs, err)
		for _, x := range all.GetContainers() {
			_, err := c.runtime.StopContainer(ctx, &api.StopContainerRequest{ContainerId: x.Id})
			errs = append(errs, err)
		}
		_, err = c.runtime.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: pod.Id})
		errs = append(errs, err)
		_, err = c.runtime.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: pod.Id})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
