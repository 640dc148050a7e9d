package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/containerd/errdefs"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// key identifies an image among the sessions of a run.
func (d *driver) key(img *image.Image) string {
	return "cri " + d.socket + " " + d.env.RunID + " " + img.Ref
}

// find returns the id of an image in CRI, "" for none.
func (c *connection) find(ctx context.Context, ref string) (id string, err error) {
	reply, err := ask(ctx, "ImageStatus "+ref, c.images.ImageStatus, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: ref}})
	return reply.GetImage().GetId(), err
}

// Import implements engine.Driver.
func (d *driver) Import(ctx context.Context) (made bool, err error) {
	d.imageID, made, err = d.give(ctx, d.probe, func(context.Context) error { return nil })
	return made, err
}

// give loads an image into the engine if the engine lacks it, and waits until CRI lists it. It
// uses the engine's own means, since CRI can only pull. may returns an error if the image must
// not be loaded.
func (d *driver) give(ctx context.Context, img *image.Image, may func(ctx context.Context) error) (id string, made bool, err error) {
	if id, err = d.conn.find(ctx, img.Ref); err != nil || id != "" {
		return id, false, err
	}
	if err = may(ctx); err == nil {
		made, err = true, d.load(ctx, img)
	}
	if err != nil {
		return "", made, fmt.Errorf("import the image %s: %w", img.Ref, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if id, err = d.conn.find(ctx, img.Ref); err != nil || id != "" {
			return id, true, err
		}
		if time.Now().After(deadline) {
			return "", true, fmt.Errorf("the image %s was imported, but is missing in CRI after %v", img.Ref, patience)
		}
	}
}

// Drop implements engine.Driver, through CRI.
func (d *driver) Drop(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	if d.engineName == containerdEngine && ref != d.facts.pause {
		id, err := d.untag(ctx, ref)
		if err != nil || id == "" {
			return err
		}
		ref = id
	}
	// CRI-O refuses to remove the image while its last container is still being removed. That may
	// take longer than the call that removes the container.
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := d.conn.images.RemoveImage(ctx, &api.RemoveImageRequest{Image: &api.ImageSpec{Image: ref}})
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || status.Code(err) == codes.Unavailable || time.Now().After(deadline):
			return fmt.Errorf("RemoveImage %s: %w", ref, err)
		}
	}
}

// untag removes one name of an image in containerd. containerd's CRI would remove the image with
// all its names. untag returns the image's id if that was the last name, else "".
func (d *driver) untag(ctx context.Context, ref string) (id string, err error) {
	if id, err = d.conn.find(ctx, ref); err != nil || id == "" {
		return "", err
	}
	c, err := containerd.Connect(ctx, d.socket, criNamespace)
	if err != nil {
		return "", err
	}
	defer func() { _ = c.Close() }()
	if err := c.ImageService().Delete(ctx, ref); err != nil && !errdefs.IsNotFound(err) {
		return "", fmt.Errorf("remove the image %s: %w", ref, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) { // CRI is notified by an event
		reply, err := ask(ctx, "ImageStatus "+id, d.conn.images.ImageStatus, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: id}})
		switch names := reply.GetImage().GetRepoTags(); {
		case err != nil:
			return "", err
		case !slices.Contains(names, ref):
			if len(names) > 0 {
				id = ""
			}
			return id, nil
		case time.Now().After(deadline):
			return "", fmt.Errorf("the image %s was removed, but is still in CRI after %v", ref, patience)
		}
	}
}

// holdPause loads a pause image if the engine has none and would try to pull it.
func (d *driver) holdPause(ctx context.Context) (err error) {
	if d.facts.pause == "" {
		return d.withoutPause(ctx)
	}
	if d.pause, err = image.Pause(d.facts.pause); err != nil {
		return err
	}
	d.letGo, err = engine.Hold(d.key(d.pause), func() (bool, error) { return d.givePause(ctx) })
	return err
}

// givePause loads the pause image. made is also true if another run of tare loaded it earlier,
// so that the last run removes it.
func (d *driver) givePause(ctx context.Context) (made bool, err error) {
	id, made, err := d.give(ctx, d.pause, func(ctx context.Context) error { return d.conn.mayMakePause(ctx, d.name, d.pause.Ref) })
	return made || sameID(id, d.pause), err
}

// dropPause removes the pause image if this run is the last that needs it.
func (d *driver) dropPause(ctx context.Context) error {
	refs, err := d.Images(ctx)
	if err == nil && slices.Contains(refs, d.pause.Ref) {
		err = d.Drop(ctx, d.pause.Ref)
	}
	return errors.Join(err, d.stays)
}

// mayMakePause returns a *subject.Unavailable if other users' pods could get tare's pause image,
// which has the name of the engine's own.
func (c *connection) mayMakePause(ctx context.Context, name, ref string) error {
	advice := fmt.Sprintf("pull the engine's pause image first: crictl --runtime-endpoint unix://%s pull %s", c.socket, ref)
	if kubelet(c.socket) {
		return engine.Unavailable(name, advice, "the pause image %s is missing and a kubelet runs here: its new pods would get tare's image", ref)
	}
	pods, err := c.pods(ctx, nil)
	if err != nil {
		return engine.Unavailable(name, "see the engine's log", "%v", err)
	}
	for _, p := range pods {
		if p.Labels[engine.RunLabel] == "" {
			return engine.Unavailable(name, advice, "the pause image %s is missing and the engine has pods of others (%s): new ones would get tare's image",
				ref, p.GetMetadata().GetNamespace()+"/"+p.GetMetadata().GetName())
		}
	}
	return nil
}

// withoutPause handles engines that do not report the name of their pause image. It returns nil
// if the engine has a pinned image, because that is its pause image.
func (d *driver) withoutPause(ctx context.Context) error {
	list, err := ask(ctx, "ListImages", d.conn.images.ListImages, &api.ListImagesRequest{})
	if err != nil || slices.ContainsFunc(list.Images, func(i *api.Image) bool { return i.Pinned }) {
		return err
	}
	return &subject.Unavailable{Name: d.name, Reason: d.engineName + " does not report its pause image, and would pull it", Advice: pauseAdvice[d.engineName]}
}

var pauseAdvice = map[string]string{
	containerdEngine: "set sandbox_image (pinned_images.sandbox in containerd 2) in its configuration",
	crioEngine:       "set pause_image in its configuration",
	isuladEngine:     `set "pod-sandbox-image" in /etc/isulad/daemon.json, for example to "localhost/tare-pause:1", and restart isulad`,
	dockerdEngine:    "start cri-dockerd with --pod-infra-container-image=NAME, for example localhost/tare-pause:1",
}
