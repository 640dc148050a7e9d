package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/tare-bench/tare/internal/cargo"
)

// ExportImage implements subject.ImageExporter, as docker save does.
func (t *Target) ExportImage(ctx context.Context, ref, file string) error {
	_, err := t.ImageInspect(ctx, ref)
	if cerrdefs.IsNotFound(err) {
		return cargo.ErrNoImage
	}
	if err != nil {
		return fmt.Errorf("look for the image %s: %w", ref, t.plain(err))
	}
	archive, err := t.ImageSave(context.WithValue(ctx, saving{}, true), []string{ref})
	if err != nil {
		return fmt.Errorf("save the image %s: %w", ref, t.plain(err))
	}
	defer archive.Close()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, archive)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("save the image %s: %w", ref, err)
	}
	return nil
}
