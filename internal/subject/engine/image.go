package engine

import (
	"strings"

	"github.com/tare-bench/tare/internal/probe/image"
)

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
