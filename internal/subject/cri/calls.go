package cri

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// call returns an operation on a lane as a function. Its requests are built before it is
// timed, except for ids that the previous call returns.
func (d *driver) call(_ context.Context, op subject.Op, s engine.State, place engine.Place) (do func(context.Context) error, shown string, err error) {
	shown = strings.ReplaceAll(d.operations()[string(op)].Command, "ID", s.Name) // for display
	h, err := d.podFor(op, s.Name)
	if err != nil {
		return nil, shown, err
	}
	runtime := d.conn.runtime
	switch op {
	case subject.RunPod:
		do = d.runPod(h)
	case subject.Create:
		do = d.create(s.Name, place)
	case subject.Start:
		do = d.start(h)
	case subject.Run:
		pod, create, start := d.runPod(h), d.createIn(h, s.Name, place), d.start(h)
		do = func(ctx context.Context) error {
			for _, step := range []func(context.Context) error{pod, create, start} {
				if err := step(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	case subject.Stop:
		do = one("StopContainer", runtime.StopContainer, &api.StopContainerRequest{ContainerId: h.container, Timeout: stopTimeout})
	case subject.Remove:
		do = one("RemoveContainer", runtime.RemoveContainer, &api.RemoveContainerRequest{ContainerId: h.container})
	case subject.StopPod:
		do = one("StopPodSandbox", runtime.StopPodSandbox, &api.StopPodSandboxRequest{PodSandboxId: h.pod})
	case subject.RemovePod:
		do = one("RemovePodSandbox", runtime.RemovePodSandbox, &api.RemovePodSandboxRequest{PodSandboxId: h.pod})
	}
	return do, shown, nil
}

// one returns an operation that is one call with an empty reply.
func one[Q, A any](name string, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := method(ctx, request)
		return callError(ctx, name, err)
	}
}

// ask makes a call outside of the measurement, with the time-out patience.
func ask[Q, A any](ctx context.Context, name string, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) (*A, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return askLong(ctx, name, method, request)
}

// askLong makes such a call with the caller's time-out.
func askLong[Q, A any](ctx context.Context, name string, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) (*A, error) {
	reply, err := method(ctx, request)
	return reply, callError(ctx, name, err)
}

// podFor returns the pod that an operation acts on, a new one for runp and run.
func (d *driver) podFor(op subject.Op, name string) (*held, error) {
	begins := op == subject.RunPod || op == subject.Run
	if begins {
		if err := d.newPod(name); err != nil {
			return nil, err
		}
	}
	h := d.held[name]
	switch {
	case h == nil || !begins && h.pod == "":
		return nil, fmt.Errorf("no pod %s", name)
	case slices.Contains([]subject.Op{subject.Start, subject.Stop, subject.Remove}, op) && h.container == "":
		return nil, fmt.Errorf("no container in pod %s", name)
	}
	return h, nil
}

// engineTasks is added to the task limit of a pod with a user's program, since the engine runs
// tasks of its own in the pod's cgroup. CRI has no field for a task limit, so tare sets it on
// the pod's cgroup, as a kubelet does.
const engineTasks = 32

// newPod creates the parts of a pod that the engine does not: its cgroup and its tmpfs.
func (d *driver) newPod(name string) error {
	d.held[name] = &held{config: d.podConfig(name)}
	limits := d.env.Limits.Pod()
	if most := d.env.Limits.Pids; d.env.Workload.Cargo != nil && most > 0 {
		limits.Pids = most + engineTasks
	}
	if err := d.ground.Make(name, limits); err != nil {
		return err
	}
	return d.tmpfses.mount(name)
}

func (d *driver) runPod(h *held) func(ctx context.Context) error {
	request := &api.RunPodSandboxRequest{Config: h.config, RuntimeHandler: d.requested()}
	return func(ctx context.Context) error {
		reply, err := d.conn.runtime.RunPodSandbox(ctx, request)
		h.pod, h.abandoned = reply.GetPodSandboxId(), err != nil && ended(ctx) != nil
		return callError(ctx, "RunPodSandbox", err)
	}
}

// requested returns the handler name for a request. isulad's default is not among its handlers,
// so in all versions only an empty name selects it.
func (t *Target) requested() string {
	if t.engineName == isuladEngine && t.handler == t.facts.standard {
		return ""
	}
	return t.handler
}

// create returns the call for a container in an existing pod.
func (d *driver) create(name string, place engine.Place) func(ctx context.Context) error {
	h := *d.held[name]
	d.held[name] = &h
	return d.createIn(&h, name, place)
}

func (d *driver) createIn(h *held, name string, place engine.Place) func(ctx context.Context) error {
	os.Remove(d.ground.Log(name)) // the previous container's
	h.request = d.containerConfig(name, place)
	request := &api.CreateContainerRequest{Config: h.request, SandboxConfig: h.config}
	return func(ctx context.Context) error {
		request.PodSandboxId = h.pod
		reply, err := d.conn.runtime.CreateContainer(ctx, request)
		h.container, h.abandoned = reply.GetContainerId(), err != nil && ended(ctx) != nil
		return callError(ctx, "CreateContainer", err)
	}
}

func (d *driver) start(h *held) func(ctx context.Context) error {
	request := new(api.StartContainerRequest)
	return func(ctx context.Context) error {
		request.ContainerId = h.container
		_, err := d.conn.runtime.StartContainer(ctx, request)
		return callError(ctx, "StartContainer", err)
	}
}

// callError prefixes an error with its call. It translates gRPC's Canceled and
// DeadlineExceeded to the error of ctx.
func callError(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Canceled {
		if end := ended(ctx); end != nil {
			return fmt.Errorf("%s: %w", name, end)
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// ended returns why a context ended, or nil if it has not ended. It also checks the deadline
// itself, because the server knows it too and may report it before the timer here fires.
func ended(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
