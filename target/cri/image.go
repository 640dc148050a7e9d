package cri

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	docker "github.com/moby/moby/client"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/meter/process"
	"github.com/tare-bench/tare/probe/image"
	"github.com/tare-bench/tare/target"
	"github.com/tare-bench/tare/target/containerd"
	"github.com/tare-bench/tare/target/engine"
	"github.com/tare-bench/tare/target/engine/cli"
)

// criNamespace is that of CRI's things in containerd.
const criNamespace = "k8s.io"

// imported is an image that an engine has while it is needed.
type imported struct {
	id    string // as the engine calls it
	letGo func(remove func() error) error
	ref   string
}

// find asks CRI for an image; "" when it has none of that name.
func (c *connection) find(ctx context.Context, ref string) (id string, err error) {
	reply, err := c.images.ImageStatus(ctx, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: ref}})
	if err != nil {
		return "", fmt.Errorf("ImageStatus %s: %w", ref, err)
	}
	return reply.GetImage().GetId(), nil
}

// ensure gives the engine an image by its own way, unless it has it, and waits
// until CRI knows it. CRI itself can only pull.
func (s *session) ensure(ctx context.Context, img *image.Image) (*imported, error) {
	i := &imported{ref: img.Ref}
	var err error
	i.letGo, err = engine.Hold("cri "+s.socket+" "+img.Ref, func() (bool, error) {
		id, err := s.conn.find(ctx, img.Ref)
		if err != nil || id != "" {
			return false, err
		}
		if err := s.load(ctx, img); err != nil {
			return false, fmt.Errorf("import the image %s: %w", img.Ref, err)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(patience)
	for i.id == "" && err == nil {
		if i.id, err = s.conn.find(ctx, img.Ref); i.id == "" && err == nil && time.Now().After(deadline) {
			err = fmt.Errorf("the image %s was imported, and CRI does not know it %v later", img.Ref, patience)
		}
		if i.id == "" && err == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	if err != nil {
		return nil, errors.Join(err, i.release(context.WithoutCancel(ctx), s.conn))
	}
	return i, nil
}

// release removes the image if a session of this process imported it, and no
// other one needs it.
func (i *imported) release(ctx context.Context, c *connection) error {
	return i.letGo(func() error { return c.drop(ctx, i.ref) })
}

// drop removes an image through CRI. One that is not there is no error.
func (c *connection) drop(ctx context.Context, ref string) error {
	// CRI-O refuses while something of its last container is still being
	// removed, after the call for that has replied, or was given up.
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err = c.images.RemoveImage(ctx, &api.RemoveImageRequest{Image: &api.ImageSpec{Image: ref}})
		if err == nil || ctx.Err() != nil || status.Code(err) == codes.Unavailable || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("RemoveImage %s: %w", ref, err)
	}
	return nil
}

// load imports an image by the engine's own way.
func (s *session) load(ctx context.Context, img *image.Image) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch s.engineName {
	case containerdEngine:
		return s.loadContainerd(ctx, img)
	case dockerdEngine:
		return s.loadDocker(ctx, img)
	}
	file := filepath.Join(s.env.Dir, "image.tar")
	if err := os.WriteFile(file, img.Archive, 0o644); err != nil {
		return err
	}
	defer os.Remove(file)
	if s.engineName == isuladEngine {
		return s.run(ctx, "isula", "load", "-i", file)
	}
	return s.loadCRIO(ctx, img, file)
}

func (s *session) loadContainerd(ctx context.Context, img *image.Image) error {
	c, err := containerd.Connect(ctx, s.socket, criNamespace)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	held, err := containerd.Import(ctx, c, img, s.facts.snapshotter, s.env.RunID)
	if err != nil {
		return err
	}
	return held.Leave(ctx) // CRI keeps what it knows
}

// loadCRIO copies an image into the storage that CRI-O shares with skopeo and
// podman.
func (s *session) loadCRIO(ctx context.Context, img *image.Image, file string) error {
	st := s.facts.storage
	for _, given := range []struct {
		into *string
		from string
	}{{&st.root, s.e.Root}, {&st.runroot, s.e.RunRoot}} {
		if given.from != "" {
			*given.into = given.from
		}
	}
	if st.driver == "" || st.root == "" || st.runroot == "" {
		return fmt.Errorf("CRI-O does not tell where its storage is (driver %q, root %q, runroot %q)", st.driver, st.root, st.runroot)
	}
	if program, err := cli.Find(s.e, "skopeo"); err != nil || filepath.Base(program.Path) == "podman" {
		return s.run(ctx, "podman", "--root", st.root, "--runroot", st.runroot, "--storage-driver", st.driver, "load", "--quiet", "--input", file)
	}
	where := fmt.Sprintf("containers-storage:[%s@%s+%s", st.driver, st.root, st.runroot)
	if len(st.options) > 0 {
		where += ":" + strings.Join(st.options, ",")
	}
	// The image is tare's own: a policy on whose images may be used is not asked.
	return s.run(ctx, "skopeo", "--insecure-policy", "copy", "--quiet", "docker-archive:"+file, where+"]"+img.Ref)
}

// run runs the engine's command line, or the program given in its place.
func (s *session) run(ctx context.Context, program string, verb ...string) error {
	p, err := cli.Find(s.e, program, "CONTAINERS_*", "XDG_RUNTIME_DIR")
	if err != nil {
		return err
	}
	_, err = p.Run(ctx, verb...)
	return err
}

// loadDocker gives an image to the dockerd behind cri-dockerd.
func (s *session) loadDocker(ctx context.Context, img *image.Image) error {
	opts := []docker.Opt{docker.FromEnv}
	if pid, err := process.Listener(s.socket); err == nil {
		if host := argument(pid, "", "--docker-endpoint"); host != "" {
			opts = []docker.Opt{docker.WithHost(host)}
		}
	}
	c, err := docker.New(opts...)
	if err != nil {
		return fmt.Errorf("connect to dockerd: %w", err)
	}
	defer func() { _ = c.Close() }()
	reply, err := c.ImageLoad(ctx, bytes.NewReader(img.Archive), docker.ImageLoadWithQuiet(true))
	if err != nil {
		return fmt.Errorf("docker load: %w", err)
	}
	defer func() { _ = reply.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(reply, 1<<20))
	return err
}

// ensurePause gives the engine the image that holds pods, when it has none:
// otherwise it would try to pull it.
func (s *session) ensurePause(ctx context.Context) (*imported, error) {
	if s.facts.pause == "" {
		return nil, s.withoutPause(ctx)
	}
	img, err := image.Pause(s.facts.pause)
	if err != nil {
		return nil, err
	}
	return s.ensure(ctx, img)
}

// withoutPause is nil if the engine has a pinned image, which is the one that
// holds its pods.
func (s *session) withoutPause(ctx context.Context) error {
	list, err := s.conn.images.ListImages(ctx, &api.ListImagesRequest{})
	if err != nil {
		return fmt.Errorf("ListImages: %w", err)
	}
	for _, i := range list.Images {
		if i.Pinned {
			return nil
		}
	}
	return &target.Unavailable{Name: s.name, Reason: s.engineName + " does not tell which image holds its pods, and would pull it", Advice: pauseAdvice[s.engineName]}
}

var pauseAdvice = map[string]string{
	containerdEngine: "set sandbox_image (pinned_images.sandbox in containerd 2) in its configuration",
	crioEngine:       "set pause_image in its configuration",
	isuladEngine:     `set "pod-sandbox-image" in /etc/isulad/daemon.json, for example to "localhost/tare-pause:1", and restart isulad`,
	dockerdEngine:    "start cri-dockerd with --pod-infra-container-image=NAME, for example localhost/tare-pause:1",
}
