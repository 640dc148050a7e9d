package cri

import (
	"cmp"
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

// criNamespace is the namespace of CRI in containerd.
const criNamespace = "k8s.io"

// load imports an image in the engine's own way.
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
	// The image is tare's own, so the signature policy does not apply.
	return d.withStorage(ctx, []string{"load", "--quiet", "--input", file}, func(storage string) []string {
		return []string{"--insecure-policy", "copy", "--quiet", "docker-archive:" + file, storage + img.Ref}
	})
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
	return held.Leave(ctx) // CRI keeps listed images
}

// ExportImage implements subject.ImageExporter for containerd and CRI-O.
func (t *Target) ExportImage(ctx context.Context, ref, file string) error {
	switch t.engineName {
	case containerdEngine:
		return containerd.ExportImage(ctx, t.socket, ref, file, criNamespace, "default")
	case crioEngine:
		name, err := reference.ParseDockerRef(ref)
		if err != nil {
			return err
		}
		return t.withStorage(ctx, []string{"save", "--quiet", "--format", "docker-archive", "--output", file, name.String()}, func(storage string) []string {
			return []string{"--insecure-policy", "copy", "--quiet", storage + name.String(), "docker-archive:" + file}
		})
	}
	return fmt.Errorf("export images of %s: %w", t.engineName, subject.ErrUnsupported)
}

// withStorage runs skopeo, or podman if skopeo is missing, on the storage of CRI-O's images.
func (t *Target) withStorage(ctx context.Context, podman []string, skopeo func(storage string) []string) error {
	st := t.facts.storage
	st.root, st.runroot = cmp.Or(t.e.Root, st.root), cmp.Or(t.e.RunRoot, st.runroot)
	if st.driver == "" || st.root == "" || st.runroot == "" {
		return fmt.Errorf("CRI-O does not report its storage (driver %q, root %q, runroot %q)", st.driver, st.root, st.runroot)
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

// run runs the engine's command line, or the configured program instead. isula needs the locale
// en_US.UTF-8, whose location the variables may name.
func (t *Target) run(ctx context.Context, program string, verb ...string) (string, error) {
	p, err := cli.Find(t.e, program, "CONTAINERS_*", "XDG_RUNTIME_DIR", "LOCPATH", "LOCALE_ARCHIVE")
	if err != nil {
		return "", err
	}
	out, err := p.Run(ctx, verb...)
	return string(out), err
}

// loadDocker loads an image into the dockerd behind cri-dockerd.
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

// dockerdOf returns the address of the dockerd behind a cri-dockerd socket: the one on its
// command line, or the default. DOCKER_HOST configures the docker command only, and may name
// another machine.
func dockerdOf(socket string) string {
	pid, _ := procs.Listener(socket)
	return argument(pid, "unix:///var/run/docker.sock", "--docker-endpoint")
}
