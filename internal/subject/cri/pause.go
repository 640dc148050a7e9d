package cri

import (
	"context"
	"fmt"
	"slices"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// holdPause gives the engine the image that holds pods, when it has none:
// otherwise it would try to pull it.
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

func (d *driver) givePause(ctx context.Context) (made bool, err error) {
	_, made, err = d.give(ctx, d.pause, func(ctx context.Context) error { return d.conn.mayMakePause(ctx, d.name, d.pause.Ref) })
	return made, err
}

// mayMakePause returns a *subject.Unavailable where an image of tare's under the
// name of the engine's own would get into the pods of others: those that are
// made meanwhile would be held by it.
func (c *connection) mayMakePause(ctx context.Context, name, ref string) error {
	advice := fmt.Sprintf("let the engine have its own first: crictl --runtime-endpoint unix://%s pull %s", c.socket, ref)
	if kubelet(c.socket) {
		return engine.Unavailable(name, advice, "the image %s, which holds pods, is not there, and a kubelet runs here: the pods that it makes would get one that tare puts in its place", ref)
	}
	pods, err := c.pods(ctx, nil)
	if err != nil {
		return engine.Unavailable(name, "see the engine's log", "%v", err)
	}
	for _, p := range pods {
		if p.Labels[engine.RunLabel] == "" {
			return engine.Unavailable(name, advice, "the image %s, which holds pods, is not there, and the engine has pods of others (%s): new ones would get one that tare puts in its place",
				ref, p.GetMetadata().GetNamespace()+"/"+p.GetMetadata().GetName())
		}
	}
	return nil
}

// withoutPause is nil if the engine has a pinned image, which is the one that
// holds its pods.
func (d *driver) withoutPause(ctx context.Context) error {
	list, err := ask(ctx, "ListImages", d.conn.images.ListImages, &api.ListImagesRequest{})
	if err != nil || slices.ContainsFunc(list.Images, func(i *api.Image) bool { return i.Pinned }) {
		return err
	}
	return &subject.Unavailable{Name: d.name, Reason: d.engineName + " does not tell which image holds its pods, and would pull it", Advice: pauseAdvice[d.engineName]}
}

var pauseAdvice = map[string]string{
	containerdEngine: "set sandbox_image (pinned_images.sandbox in containerd 2) in its configuration",
	crioEngine:       "set pause_image in its configuration",
	isuladEngine:     `set "pod-sandbox-image" in /etc/isulad/daemon.json, for example to "localhost/tare-pause:1", and restart isulad`,
	dockerdEngine:    "start cri-dockerd with --pod-infra-container-image=NAME, for example localhost/tare-pause:1",
}
