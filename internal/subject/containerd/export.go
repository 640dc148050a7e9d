package containerd

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/containerd/containerd/v2/core/images/archive"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/errdefs"
	"github.com/containerd/platforms"
	"github.com/distribution/reference"

	"github.com/tare-bench/tare/internal/cargo"
)

// ExportImage implements subject.ImageExporter. It searches the namespace of tare's containers,
// then those of ctr, nerdctl and a kubelet.
func (t *Target) ExportImage(ctx context.Context, ref, file string) error {
	return ExportImage(ctx, t.at.socket, ref, file, t.at.namespace, "default", "k8s.io")
}

// ExportImage writes an image to a file, from the first namespace that has it.
func ExportImage(ctx context.Context, socket, ref, file string, among ...string) error {
	name, err := reference.ParseDockerRef(ref)
	if err != nil {
		return err
	}
	c, err := Connect(ctx, socket, among[0])
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for _, namespace := range among {
		in := namespaces.WithNamespace(ctx, namespace)
		_, err := c.ImageService().Get(in, name.String())
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("find the image %s: %w", name, err)
		}
		out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		err = c.Export(in, out, archive.WithPlatform(platforms.Default()), archive.WithImage(c.ImageService(), name.String()))
		if err = errors.Join(err, out.Close()); err != nil {
			return fmt.Errorf("export the image %s: %w", name, err)
		}
		return nil
	}
	return cargo.ErrNoImage
}
