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

// imagePatience is how long loading an image may take, imageEnds how long a load that
// was begun may go on in a run that is to end, and imageComes how long the image of a load
// that was given up is looked for.
const (
	imagePatience = 4 * time.Minute
	imageEnds     = 10 * time.Second
	imageComes    = 20 * time.Second
)

// Loading is the time of a load. A daemon goes on loading what its client gives up, and
// would have the image after all has been cleaned: it is waited for, of a run that is to
// end for a moment.
func Loading(ctx context.Context) (context.Context, context.CancelFunc) {
	begun, cancel := context.WithTimeout(context.WithoutCancel(ctx), imagePatience)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(imageEnds, cancel) })
	return begun, func() {
		stop()
		cancel()
	}
}

// load imports the image, and notes whether a load was given up.
func (s *Session) load(ctx context.Context) (made bool, err error) {
	made, err = s.o.Driver.Import(ctx)
	s.loading = made && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
	return made, err
}

// drop removes the image. The engine may still be at work on a load that was given up, and
// have the image later.
func (s *Session) drop(ctx context.Context) error {
	err := s.o.Driver.Drop(ctx, s.o.Ref)
	d, lists := s.o.Driver.(Cleaned)
	if !s.loading || !lists || err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < imageComes && machine.Sleep(ctx, sight) == nil; {
		if refs, listed := d.Images(ctx); listed == nil && slices.Contains(refs, s.o.Ref) {
			return d.Drop(ctx, s.o.Ref)
		}
	}
	return fmt.Errorf("%s may still be loading the image %s, whose load was given up", s.o.Called, s.o.Ref)
}

// imageLabel is the one that image.Probe gives to all its images.
const imageLabel = "dev.tare.image"

// ImageFilter finds the images of the workload, whatever files they carry, where
// an engine lists images by a label.
const ImageFilter = imageLabel + "=probe"

// RunOfImage returns the id of the run whose name of an image this is, see [image.Image.Of].
func RunOfImage(ref string) (runID string, is bool) {
	tag, is := strings.CutPrefix(ref, image.Repository+":")
	id, runID, named := strings.Cut(tag, "-")
	return runID, is && named && runID != "" && len(id) == 12 && strings.Trim(id, "0123456789abcdef") == ""
}

// OwnImages returns those of an image's names that are a run's.
func OwnImages(names []string, runID string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		of, is := RunOfImage(name)
		return !is || of != runID
	})
}
