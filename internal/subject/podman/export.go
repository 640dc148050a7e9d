package podman

import (
	"context"
	"errors"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// ExportImage implements subject.ImageExporter by podman save.
func (t *Target) ExportImage(ctx context.Context, ref, file string) error {
	_, err := t.podman.Run(ctx, "image", "exists", ref)
	if e, ok := errors.AsType[*cli.Error](err); ok && e.Exit == 1 {
		return cargo.ErrNoImage
	}
	if err == nil {
		_, err = t.podman.Run(ctx, "save", "--quiet", "--format", "docker-archive", "--output", file, ref)
	}
	return err
}
