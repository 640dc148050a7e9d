package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe/image"
)

// Time limits. imageAnswer is for a question about an image, and imagePatience for its load.
// imageEnds is for the rest of a load after the run was interrupted. imageComes is for the
// search for the image of an abandoned load.
const (
	imageAnswer   = time.Minute
	imagePatience = 4 * time.Minute
	imageEnds     = 10 * time.Second
	imageComes    = 20 * time.Second
)

// Loading returns the context of a load. A daemon completes a load that its client abandoned,
// and the image would appear after clean-up. An interrupted run therefore waits imageEnds for
// the load.
func Loading(ctx context.Context) (context.Context, context.CancelFunc) {
	begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagePatience)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(imageEnds, cancel) })
	return begun, func() {
		stop()
		cancel()
	}
}

// load imports the image and records whether the load was abandoned.
func (s *Session) load(ctx context.Context) (made bool, err error) {
	made, err = s.o.Driver.Import(ctx)
	s.loading = made && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
	return made, err
}

// drop removes the image. After an abandoned load it waits for an image that appears late.
func (s *Session) drop(ctx context.Context) error {
	d := s.o.Driver
	err := d.Drop(ctx, s.o.Ref)
	if !s.loading || err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < imageComes && machine.Sleep(ctx, pollArrival) == nil; {
		if refs, listed := d.Images(ctx); listed == nil && slices.Contains(refs, s.o.Ref) {
			return d.Drop(ctx, s.o.Ref)
		}
	}
	return fmt.Errorf("%s may still be loading the image %s: its load was abandoned", s.o.Called, s.o.Ref)
}

// imageLabel is the label that image.Probe sets on all its images.
const imageLabel = "dev.tare.image"

// ImageFilter selects the workload's images in an engine that lists images by label.
const ImageFilter = imageLabel + "=probe"

// RunOfImage returns the id of the run that an image name belongs to, see [image.Image.Of].
func RunOfImage(ref string) (runID string, is bool) {
	tag, is := strings.CutPrefix(ref, image.Repository+":")
	id, runID, named := strings.Cut(tag, "-")
	return runID, is && named && runID != "" && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == ""
}

// OwnImages returns the names that belong to a run.
func OwnImages(names []string, runID string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		of, is := RunOfImage(name)
		return !is || of != runID
	})
}
