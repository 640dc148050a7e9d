package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
)

// imagePatience is how long loading an image may take, and imageEnds how long a load
// that was begun may go on in a run that is to end.
const (
	imagePatience = time.Minute
	imageEnds     = 10 * time.Second
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
