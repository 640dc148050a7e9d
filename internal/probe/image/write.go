package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Part is a layer in a file: an uncompressed tar.
type Part struct {
	Digest digest.Digest
	Size   int64
	File   string
}

// Labels returns the labels that identify an image of tare.
func Labels() map[string]string { return map[string]string{"dev.tare.image": "probe"} }

// Assemble builds an image from layers in files, in both formats of [Probe]. Its name
// contains the digest of its configuration. The files must exist as long as the image is
// used.
func Assemble(config v1.Image, layers []Part) *Image {
	l := Layout{}
	var blobs []v1.Descriptor
	var saved []string
	parts := map[string]Part{}
	for _, p := range layers {
		d := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: p.Digest, Size: p.Size}
		blobs, saved = append(blobs, d), append(saved, Blob(d))
		parts[Blob(d)] = p
		config.RootFS.DiffIDs = append(config.RootFS.DiffIDs, p.Digest)
	}
	i := l.image("", l.AddJSON(v1.MediaTypeImageConfig, config), blobs, saved)
	i.parts = parts
	return i
}

func writeParts(w *tar.Writer, files map[string]Part) error {
	for blob, p := range files {
		in, err := os.Open(p.File)
		if err != nil {
			return err
		}
		err = w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: blob, Mode: 0o644, Size: p.Size, ModTime: Created})
		if err == nil {
			_, err = io.Copy(w, in)
		}
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return nil
}
