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

// call is one operation on a lane. All that its requests need is made before,
// but for an id that is known only when the call before it has replied.
func (d *driver) call(_ context.Context, op subject.Op, s engine.State, place engine.Place) (do func(context.Context) error, shown string, err error) {
	shown = strings.ReplaceAll(d.operations()[string(op)].Command, "ID", s.Name) // for people
	h, err := d.holding(op, s.Name)
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

// one is an operation of one call whose reply says nothing.
func one[Q, A any](name string, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := method(ctx, request)
		return plain(ctx, name, err)
	}
}

// ask asks the engine something outside of what is timed, and waits for patience at most.
func ask[Q, A any](ctx context.Context, name string, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) (*A, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return askLong(ctx, name, method, request)
}

// askLong asks something for which the caller has bounded the time.
func askLong[Q, A any](ctx context.Context, name string, method func(context.Context, *Q, ...grpc.CallOption) (*A, error), request *Q) (*A, error) {
	reply, err := method(ctx, request)
	return reply, plain(ctx, name, err)
}

// holding is what an operation acts on: a new pod, or one that is there.
func (d *driver) holding(op subject.Op, name string) (*held, error) {
	begins := op == subject.RunPod || op == subject.Run
	if begins {
		if err := d.newPod(name); err != nil {
			return nil, err
		}
	}
	h := d.held[name]
	switch {
	case h == nil || !begins && h.pod == "":
		return nil, fmt.Errorf("there is no pod %s", name)
	case slices.Contains([]subject.Op{subject.Start, subject.Stop, subject.Remove}, op) && h.container == "":
		return nil, fmt.Errorf("there is no container in the pod %s", name)
	}
	return h, nil
}

// monitors are tasks of the engine's own in a pod's cgroup: CRI limits no tasks, so that
// a pod with a program of the user's own has its limit as a kubelet gives one.
const monitors = 32

// newPod makes what a pod has of the machine's.
func (d *driver) newPod(name string) error {
	d.held[name] = &held{config: d.podConfig(name)}
	limits := d.env.Limits.Pod()
	if most := d.env.Limits.Pids; d.env.Workload.Cargo != nil && most > 0 {
		limits.Pids = most + monitors
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
		h.pod, h.unsure = reply.GetPodSandboxId(), err != nil && over(ctx) != nil
		return plain(ctx, "RunPodSandbox", err)
	}
}

// requested is the handler as a request has it. isulad's default is none of its
// handlers: only no name at all stands for it in every version.
func (t *Target) requested() string {
	if t.engineName == isuladEngine && t.handler == t.facts.standard {
		return ""
	}
	return t.handler
}

// create makes a container in a pod that is there.
func (d *driver) create(name string, place engine.Place) func(ctx context.Context) error {
	h := *d.held[name]
	d.held[name] = &h
	return d.createIn(&h, name, place)
}

func (d *driver) createIn(h *held, name string, place engine.Place) func(ctx context.Context) error {
	os.Remove(d.ground.Log(name)) // of the container before
	h.making = d.containerConfig(name, place)
	request := &api.CreateContainerRequest{Config: h.making, SandboxConfig: h.config}
	return func(ctx context.Context) error {
		request.PodSandboxId = h.pod
		reply, err := d.conn.runtime.CreateContainer(ctx, request)
		h.container, h.unsure = reply.GetContainerId(), err != nil && over(ctx) != nil
		return plain(ctx, "CreateContainer", err)
	}
}

func (d *driver) start(h *held) func(ctx context.Context) error {
	request := new(api.StartContainerRequest)
	return func(ctx context.Context) error {
		request.ContainerId = h.container
		_, err := d.conn.runtime.StartContainer(ctx, request)
		return plain(ctx, "StartContainer", err)
	}
}

// plain says of an error which call it is from. gRPC's own words for a context
// that ended become the context'd.
func plain(ctx context.Context, name string, err error) error {
	if err == nil {
		return nil
	}
	if code := status.Code(err); code == codes.DeadlineExceeded || code == codes.Canceled {
		if end := over(ctx); end != nil {
			return fmt.Errorf("%s: %w", name, end)
		}
	}
	return fmt.Errorf("%s: %w", name, err)
}

// over is why a context ended, nil while it has not. A server knows the deadline,
// too, and may say so before the timer here has fired.
func over(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}
