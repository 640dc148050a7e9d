package cri

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// leftovers are things of one run: pods and containers, by id with their names.
type leftovers struct {
	pods, containers []thing
	images           []string
	stays            error // why an image of tare's is not among them
}

type thing struct{ id, name string }

// findOf lists the pods and containers that bear a run's id, without the pods
// that are to be kept and what is in them.
func (c *connection) findOf(ctx context.Context, runID string, keep map[string]bool) (leftovers, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var left leftovers
	of := map[string]string{engine.RunLabel: runID}
	pods, err := c.runtime.ListPodSandbox(ctx, &api.ListPodSandboxRequest{Filter: &api.PodSandboxFilter{LabelSelector: of}})
	if err != nil {
		return left, plain(ctx, "ListPodSandbox", err)
	}
	containers, err := c.runtime.ListContainers(ctx, &api.ListContainersRequest{Filter: &api.ContainerFilter{LabelSelector: of}})
	if err != nil {
		return left, plain(ctx, "ListContainers", err)
	}
	for _, p := range pods.Items {
		if name := p.GetMetadata().GetName(); engine.OfRun(name, runID) && p.Labels[engine.RunLabel] == runID && !keep[p.Id] {
			left.pods = append(left.pods, thing{p.Id, name})
		}
	}
	for _, k := range containers.Containers {
		if name := k.GetMetadata().GetName(); engine.OfRun(name, runID) && k.Labels[engine.RunLabel] == runID && !keep[k.PodSandboxId] {
			left.containers = append(left.containers, thing{k.Id, name})
		}
	}
	return left, nil
}

// withImages adds tare's images, if nothing of another run is there. CRI does
// not tell whose an image is.
func (l *leftovers) withImages(ctx context.Context, c *connection, runID string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	containers, err := c.runtime.ListContainers(ctx, &api.ListContainersRequest{})
	if err != nil {
		return plain(ctx, "ListContainers", err)
	}
	pods, err := c.runtime.ListPodSandbox(ctx, &api.ListPodSandboxRequest{})
	if err != nil {
		return plain(ctx, "ListPodSandbox", err)
	}
	for _, k := range containers.Containers {
		if other := k.Labels[engine.RunLabel]; other != "" && other != runID {
			return nil
		}
	}
	for _, p := range pods.Items {
		if other := p.Labels[engine.RunLabel]; other != "" && other != runID {
			return nil
		}
	}
	images, err := c.images.ListImages(ctx, &api.ListImagesRequest{})
	if err != nil {
		return plain(ctx, "ListImages", err)
	}
	for _, i := range images.Images {
		for _, tag := range i.RepoTags {
			if strings.HasPrefix(tag, image.Repository+":") {
				l.images = append(l.images, tag)
			}
		}
	}
	return nil
}

// withPause adds the image that holds pods, if it is tare's and only tare's.
func (l *leftovers) withPause(ctx context.Context, c *connection, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if ref == "" {
		return nil
	}
	own, err := image.Pause(ref)
	if err != nil {
		return err
	}
	id, err := c.find(ctx, ref)
	if err != nil || strings.TrimPrefix(id, "sha256:") != strings.TrimPrefix(own.ID, "sha256:") {
		return err
	}
	pods, err := c.runtime.ListPodSandbox(ctx, &api.ListPodSandboxRequest{})
	if err != nil {
		return plain(ctx, "ListPodSandbox", err)
	}
	if n := len(pods.Items) - len(l.pods); n > 0 {
		l.stays = fmt.Errorf("the image %s, which holds pods, is one that tare made, and stays: %d pods of others may need it; clean again when they are gone, or put the engine's own in its place: crictl --runtime-endpoint unix://%s pull %s", ref, n, c.socket, ref)
		return nil
	}
	l.images = append(l.images, ref)
	return nil
}

func (l *leftovers) lines() []string {
	var out []string
	for _, p := range l.pods {
		out = append(out, "pod "+p.name)
	}
	for _, c := range l.containers {
		out = append(out, "container "+c.name)
	}
	for _, i := range l.images {
		out = append(out, "image "+i)
	}
	return out
}

// remove removes them all, by force.
func (l *leftovers) remove(ctx context.Context, c *connection) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	errs := []error{engine.Each(len(l.containers), func(i int) error {
		id := l.containers[i].id
		return again(ctx, "remove the container "+l.containers[i].name, func() error {
			// Without time to end by itself it is killed at once.
			_, stop := c.runtime.StopContainer(ctx, &api.StopContainerRequest{ContainerId: id})
			_, remove := c.runtime.RemoveContainer(ctx, &api.RemoveContainerRequest{ContainerId: id})
			return worst(remove, stop)
		})
	})}
	errs = append(errs, engine.Each(len(l.pods), func(i int) error {
		id := l.pods[i].id
		return again(ctx, "remove the pod "+l.pods[i].name, func() error {
			_, stop := c.runtime.StopPodSandbox(ctx, &api.StopPodSandboxRequest{PodSandboxId: id})
			_, remove := c.runtime.RemovePodSandbox(ctx, &api.RemovePodSandboxRequest{PodSandboxId: id})
			return worst(remove, stop)
		})
	}))
	for _, ref := range l.images {
		errs = append(errs, c.drop(ctx, ref))
	}
	return errors.Join(errs...)
}

// worst is nil if the removal succeeded; what the stop said may be why it did
// not.
func worst(remove, stop error) error {
	if remove == nil || status.Code(remove) == codes.NotFound {
		return nil
	}
	return errors.Join(remove, stop)
}

// again does something until it succeeds, a few times: what has just been
// killed may be in the way of its own removal. An engine that is gone is not
// asked again.
func again(ctx context.Context, what string, do func() error) error {
	var err error
	for range 5 {
		if err = do(); err == nil {
			return nil
		}
		if status.Code(err) == codes.Unavailable || strings.Contains(err.Error(), "code = Unavailable") {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s: %w", what, err)
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	c, err := connect(ctx, t.socket)
	if err != nil {
		return nil, t.failed("clean up", err)
	}
	defer c.close()
	left, err := c.findOf(ctx, runID, nil)
	if err == nil {
		err = left.withImages(ctx, c, runID)
	}
	if err == nil {
		err = left.withPause(ctx, c, t.facts.pause)
	}
	if err != nil || dryRun {
		return left.lines(), t.failed("clean up", err)
	}
	return left.lines(), t.failed("clean up", left.remove(ctx, c), left.stays)
}
