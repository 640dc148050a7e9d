package engine

import (
	"context"
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

// OwnImage tells whether a name is one that image.Probe gives: its repository,
// and for a tag twelve digits of its digest.
func OwnImage(ref string) bool {
	tag, is := strings.CutPrefix(ref, image.Repository+":")
	return is && len(tag) == 12 && strings.Trim(tag, "0123456789abcdef") == ""
}

// OwnImages are the names, of one image with these labels, under which it is the
// workload's.
func OwnImages(names []string, labels map[string]string) []string {
	var own []string
	for _, name := range names {
		if labels[imageLabel] == "probe" && OwnImage(name) {
			own = append(own, name)
		}
	}
	return own
}
