package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// listOf lists the pods and containers of a run, with the caller's time-out.
func (c *connection) listOf(ctx context.Context, runID string) (pods []*api.PodSandbox, containers []*api.Container, err error) {
	of := map[string]string{engine.RunLabel: runID}
	p, err := askLong(ctx, "ListPodSandbox", c.runtime.ListPodSandbox, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: of}})
	if err != nil {
		return nil, nil, err
	}
	k, err := askLong(ctx, "ListContainers", c.runtime.ListContainers, &api.ListContainersRequest{Filter: &api.ContainerFilter{LabelSelector: of}})
	if err != nil {
		return nil, nil, err
	}
	foreign := func(name string, labels map[string]string) bool {
		return !engine.OfRun(name, runID) || labels[engine.RunLabel] != runID
	}
	pods = slices.DeleteFunc(p.Items, func(p *api.PodSandbox) bool { return foreign(p.GetMetadata().GetName(), p.Labels) })
	containers = slices.DeleteFunc(k.Containers, func(c *api.Container) bool { return foreign(c.GetMetadata().GetName(), c.Labels) })
	return pods, containers, nil
}

// pods lists the pods with some labels.
func (c *connection) pods(ctx context.Context, labels map[string]string) ([]*api.PodSandbox, error) {
	reply, err := ask(ctx, "ListPodSandbox", c.runtime.ListPodSandbox, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: labels}})
	return reply.GetItems(), err
}

// Remove implements engine.Driver.
func (d *driver) Remove(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if d.engineName == crioEngine {
		d.reclaim(ctx, names)
	}
	pods, containers, err := d.conn.listOf(ctx, d.env.RunID)
	if err != nil {
		return err
	}
	runtime := d.conn.runtime
	err = engine.Each(len(containers), func(i int) error {
		if !slices.Contains(names, containers[i].GetMetadata().GetName()) {
			return nil
		}
		// StopContainer without a timeout kills it at once.
		_, stop := runtime.StopContainer(ctx, &api.StopContainerRequest{ContainerId: containers[i].Id})
		_, remove := runtime.RemoveContainer(ctx, &api.RemoveContainerRequest{ContainerId: containers[i].Id})
		return worst("remove the container "+containers[i].GetMetadata().GetName(), remove, stop)
	})
	return errors.Join(err, engine.Each(len(pods), func(i int) error {
		if !slices.Contains(names, pods[i].GetMetadata().GetName()) {
			return nil
		}
		_, stop := runtime.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: pods[i].Id})
		_, remove := runtime.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: pods[i].Id})
		return worst("remove the pod "+pods[i].GetMetadata().GetName(), remove, stop)
	}), d.removeUnanswered(ctx, names))
}

// worst returns nil if the removal succeeded or nothing was there. Otherwise it returns both
// errors, since a failed stop may be the reason for a failed removal.
func worst(doing string, remove, stop error) error {
	if remove == nil || status.Code(remove) == codes.NotFound {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, errors.Join(remove, stop))
}

// reclaim repeats abandoned calls to CRI-O, as a kubelet does. CRI-O keeps the pod or container
// of an abandoned call for a minute or two without listing it, and returns it if the same
// request is repeated.
func (d *driver) reclaim(ctx context.Context, names []string) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	_ = engine.Each(len(names), func(i int) error {
		h := d.held[names[i]]
		if h == nil || !h.abandoned {
			return nil
		}
		h.abandoned = false
		if h.pod == "" {
			insist(ctx, func(ctx context.Context) error {
				reply, err := d.conn.runtime.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Config: h.config, RuntimeHandler: d.requested()})
				h.pod = reply.GetPodSandboxId()
				return err
			})
		} else if h.request != nil && h.container == "" {
			insist(ctx, func(ctx context.Context) error {
				_, err := d.conn.runtime.CreateContainer(ctx, &api.CreateContainerRequest{PodSandboxId: h.pod, Config: h.request, SandboxConfig: h.config})
				return err
			})
		}
		return nil
	})
}

// insist repeats a call until it is answered. While CRI-O is still working on the first request,
// a repeated request gets no answer until it times out. The next repetition then gets the
// result. CRI-O's clock may end a call slightly before ours.
func insist(ctx context.Context, do func(ctx context.Context) error) {
	const one = time.Second
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, one)
		began := time.Now()
		err := do(try)
		cancel()
		if err == nil || time.Since(began) < one*9/10 {
			return // after a refusal nothing was made
		}
	}
}

// Images implements engine.Driver. The pause image has the same name in all runs. It is listed
// for this run only if tare made it, no other run has an image on the engine, and all remaining
// pods are tare's.
func (d *driver) Images(ctx context.Context) ([]string, error) {
	list, err := ask(ctx, "ListImages", d.conn.images.ListImages, &api.ListImagesRequest{})
	if err != nil {
		return nil, err
	}
	var refs []string
	others := 0
	for _, i := range list.Images {
		refs = append(refs, engine.OwnImages(i.RepoTags, d.env.RunID)...)
		for _, name := range i.RepoTags {
			if of, is := engine.RunOfImage(name); is && of != d.env.RunID {
				others++
			}
		}
	}
	if d.facts.pause == "" || others > 0 {
		return refs, nil
	}
	own, err := image.Pause(d.facts.pause)
	if err != nil {
		return refs, err
	}
	id, err := d.conn.find(ctx, own.Ref)
	if err != nil || !sameID(id, own) {
		return refs, err
	}
	pods, err := d.conn.pods(ctx, nil)
	if err != nil {
		return refs, err
	}
	pods = slices.DeleteFunc(pods, func(p *api.PodSandbox) bool { return p.Labels[engine.RunLabel] != "" })
	if d.stays = nil; len(pods) > 0 {
		d.stays = fmt.Errorf("the pause image %s, made by tare, stays: %d foreign pods may need it; run tare clean when they are gone, or replace it: crictl --runtime-endpoint unix://%s pull %[1]s", own.Ref, len(pods), d.socket)
		return refs, nil
	}
	return append(refs, own.Ref), nil
}

// sameID reports whether an engine's image id is that of i.
func sameID(id string, i *image.Image) bool {
	return strings.TrimPrefix(id, "sha256:") == strings.TrimPrefix(i.ID, "sha256:")
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c, err := connect(ctx, t.socket)
	if err != nil {
		return nil, engine.Failed(t.name, "clean up", err)
	}
	defer c.close()
	d := &driver{Target: t, conn: c, env: subject.Env{RunID: runID}}
	found, err := engine.Clean(ctx, d, t.name, "pod", runID, dryRun)
	errs := []error{err}
	if t.engineName == containerdEngine {
		held, err := t.leases(ctx, runID, dryRun)
		found, errs = append(found, held...), append(errs, engine.Failed(t.name, "clean up", err))
	}
	if !dryRun {
		errs = append(errs, engine.Failed(t.name, "clean up", d.stays))
	}
	return found, errors.Join(errs...)
}

// leases lists the leases of a run that was killed while it imported an image into containerd.
// Unless dryRun is set, it removes them.
func (t *Target) leases(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c, err := containerd.Connect(ctx, t.socket, criNamespace)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return containerd.RemoveLeases(ctx, c, runID, dryRun)
}
