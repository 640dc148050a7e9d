package cri

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/distribution/reference"
	docker "github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// criNamespace is that of CRI's things in containerd.
const criNamespace = "k8s.io"

// load imports an image by the engine's own way.
func (d *driver) load(ctx context.Context, img *image.Image) error {
	ctx, cancel := engine.Loading(ctx)
	defer cancel()
	switch d.engineName {
	case containerdEngine:
		return d.loadContainerd(ctx, img)
	case dockerdEngine:
		return d.loadDocker(ctx, img)
	}
	file := filepath.Join(d.env.Dir, "image.tar")
	if err := img.Save(file); err != nil {
		return err
	}
	defer os.Remove(file)
	if d.engineName == isuladEngine {
		_, err := d.isula(ctx, "load", "-i", file)
		return err
	}
	return d.loadCRIO(ctx, img, file)
}

func (d *driver) loadContainerd(ctx context.Context, img *image.Image) error {
	c, err := containerd.Connect(ctx, d.socket, criNamespace)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	held, err := containerd.Import(ctx, c, img, d.facts.snapshotter, d.env.RunID)
	if err != nil {
		return err
	}
	return held.Leave(ctx) // CRI keeps what it knows
}

// loadCRIO copies an image into the storage that CRI-O shares with skopeo and
// podman.
func (d *driver) loadCRIO(ctx context.Context, img *image.Image, file string) error {
	// The image is tare's own: a policy on whose images may be used is not asked.
	return d.withStorage(ctx, []string{"load", "--quiet", "--input", file}, func(storage string) []string {
		return []string{"--insecure-policy", "copy", "--quiet", "docker-archive:" + file, storage + img.Ref}
	})
}

// Lend implements subject.Lender, for the engines whose images can be had.
func (t *Target) Lend(ctx context.Context, ref, file string) error {
	switch t.engineName {
	case containerdEngine:
		return containerd.Lend(ctx, t.socket, ref, file, criNamespace, "default")
	case crioEngine:
		name, err := reference.ParseDockerRef(ref)
		if err != nil {
			return err
		}
		return t.withStorage(ctx, []string{"save", "--quiet", "--format", "docker-archive", "--output", file, name.String()}, func(storage string) []string {
			return []string{"--insecure-policy", "copy", "--quiet", storage + name.String(), "docker-archive:" + file}
		})
	}
	return fmt.Errorf("images are not taken out of %s: %w", t.engineName, subject.ErrUnsupported)
}

// withStorage runs podman, or skopeo where there is one, on the storage of CRI-O's
// images.
func (t *Target) withStorage(ctx context.Context, podman []string, skopeo func(storage string) []string) error {
	st := t.facts.storage
	for _, given := range []struct {
		into *string
		from string
	}{{&st.root, t.e.Root}, {&st.runroot, t.e.RunRoot}} {
		if given.from != "" {
			*given.into = given.from
		}
	}
	if st.driver == "" || st.root == "" || st.runroot == "" {
		return fmt.Errorf("CRI-O does not tell where its storage is (driver %q, root %q, runroot %q)", st.driver, st.root, st.runroot)
	}
	if program, err := cli.Find(t.e, "skopeo"); err != nil || filepath.Base(program.Path) == "podman" {
		_, err := t.run(ctx, "podman", append([]string{"--root", st.root, "--runroot", st.runroot, "--storage-driver", st.driver}, podman...)...)
		return err
	}
	where := fmt.Sprintf("containers-storage:[%s@%s+%s", st.driver, st.root, st.runroot)
	if len(st.options) > 0 {
		where += ":" + strings.Join(st.options, ",")
	}
	_, err := t.run(ctx, "skopeo", skopeo(where+"]")...)
	return err
}

// run runs the engine's command line, or the program given in its place. isula wants the
// locale en_US.UTF-8, which may be elsewhere.
func (t *Target) run(ctx context.Context, program string, verb ...string) (string, error) {
	p, err := cli.Find(t.e, program, "CONTAINERS_*", "XDG_RUNTIME_DIR", "LOCPATH", "LOCALE_ARCHIVE")
	if err != nil {
		return "", err
	}
	out, err := p.Run(ctx, verb...)
	return string(out), err
}

// loadDocker gives an image to the dockerd behind cri-dockerd.
func (d *driver) loadDocker(ctx context.Context, img *image.Image) error {
	host := dockerdOf(d.socket)
	c, err := docker.New(docker.WithHost(host))
	if err != nil {
		return fmt.Errorf("connect to dockerd at %s: %w", host, err)
	}
	defer func() { _ = c.Close() }()
	archive, err := img.Open()
	if err != nil {
		return err
	}
	defer archive.Close()
	reply, err := c.ImageLoad(ctx, archive, docker.ImageLoadWithQuiet(true))
	if err != nil {
		return fmt.Errorf("docker load: %w", err)
	}
	defer func() { _ = reply.Close() }()
	_, err = io.Copy(io.Discard, io.LimitReader(reply, 1<<20))
	return err
}

// dockerdOf is where the cri-dockerd behind a socket finds its dockerd: as its
// command line says, or its default. DOCKER_HOST is the command line docker's,
// and may name another machine.
func dockerdOf(socket string) string {
	const usual = "unix:///var/run/docker.sock"
	pid, err := procs.Listener(socket)
	if err != nil {
		return usual
	}
	return argument(pid, usual, "--docker-endpoint")
}
