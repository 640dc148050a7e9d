package image

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Path is the PATH of programs in a container.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// NameAnnotation is the annotation with an image's full name for containerd and podman.
const NameAnnotation = "io.containerd.image.name"

// Layout is an OCI image layout: its files by path.
type Layout map[string][]byte

// Blob returns the path of a blob.
func Blob(d v1.Descriptor) string {
	return v1.ImageBlobsDir + "/" + string(d.Digest.Algorithm()) + "/" + d.Digest.Encoded()
}

// Add adds a blob.
func (l Layout) Add(mediaType string, content []byte) v1.Descriptor {
	d := v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
	l[Blob(d)] = content
	return d
}

// AddJSON adds a value as a blob of JSON.
func (l Layout) AddJSON(mediaType string, value any) v1.Descriptor {
	return l.Add(mediaType, text(value))
}

// text marshals a type of a specification, which cannot fail.
func text(value any) []byte {
	b, _ := json.Marshal(value)
	return b
}

// List writes the index and the layout file.
func (l Layout) List(manifests ...v1.Descriptor) {
	l[v1.ImageLayoutFile] = text(v1.ImageLayout{Version: v1.ImageLayoutVersion})
	l[v1.ImageIndexFile] = text(v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: manifests})
}

// Saved is an image in the format of `docker save`.
type Saved struct {
	Config   string
	RepoTags []string
	Layers   []string
}

// Saved adds the file that `docker load` needs.
func (l Layout) Saved(images ...Saved) { l["manifest.json"] = text(images) }

// Tar writes all files in the order of their paths, with the same timestamp.
func (l Layout) Tar(out io.Writer, at time.Time) error {
	w := tar.NewWriter(out)
	return errors.Join(l.files(w, at), w.Close())
}

func (l Layout) files(w *tar.Writer, at time.Time) error {
	for _, name := range slices.Sorted(maps.Keys(l)) {
		if err := WriteFile(w, name, 0o644, l[name], at); err != nil {
			return err
		}
	}
	return nil
}

// WriteFile writes a file of root to a tar.
func WriteFile(w *tar.Writer, name string, mode int64, content []byte, at time.Time) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: at}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}
