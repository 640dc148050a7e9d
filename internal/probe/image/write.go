package image

import (
	"archive/tar"
	"errors"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Part is a layer in a file: a tar that is not compressed.
type Part struct {
	Digest digest.Digest
	Size   int64
	File   string
}

// Labels are those of an image by which it is known as tare's.
func Labels() map[string]string { return map[string]string{"dev.tare.image": "probe"} }

// Write writes an image into a file, as both of what [Probe] makes; its name is made of
// its configuration. The file is the caller's, and has to stay as long as the image is
// used.
func Write(file string, config v1.Image, layers []Part) (*Image, error) {
	l := Layout{}
	c := l.AddJSON(v1.MediaTypeImageConfig, config)
	ref := Repository + ":" + c.Digest.Encoded()[:12]
	m := v1.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: c}
	saved := Saved{Config: c.Digest.Encoded() + ".json", RepoTags: []string{ref}}
	files := map[string]Part{}
	for _, p := range layers {
		d := v1.Descriptor{MediaType: v1.MediaTypeImageLayer, Digest: p.Digest, Size: p.Size}
		m.Layers = append(m.Layers, d)
		saved.Layers = append(saved.Layers, Blob(d))
		files[Blob(d)] = p
	}
	manifest := name(l.AddJSON(v1.MediaTypeImageManifest, m), ref)
	l.List(manifest)
	l[saved.Config] = l[Blob(c)]
	l.Saved(saved)
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(writeParts(out, l, files), out.Close()); err != nil {
		return nil, err
	}
	return &Image{Ref: ref, ID: c.Digest.String(), Digest: manifest.Digest.String(), content: func() (io.ReadCloser, error) { return os.Open(file) }}, nil
}

func writeParts(out io.Writer, l Layout, files map[string]Part) error {
	w := tar.NewWriter(out)
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
	return errors.Join(l.files(w, Created), w.Close())
}
