// Package image makes container images of the probe: one layer, built here, so
// that nothing is ever pulled. A [Layout] is what images are written as.
//
// An image is one tar that is both what `docker save` writes (manifest.json,
// read by docker, podman, skopeo and iSulad) and an OCI image layout
// (index.json, read by containerd): the Docker Image Specification v1.2 and the
// OCI Image Format Specification v1.0. The same probe gives the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/tare-bench/tare/internal/probe"
)

// Image is an image, ready to be loaded.
type Image struct {
	Ref     string // its full name, with a tag: "localhost/tare-probe:1f2e3d4c5b6a"
	ID      string // digest of its configuration, "sha256:…": what engines call the image's id
	Digest  string // digest of its manifest, "sha256:…"
	content func() (io.ReadCloser, error)
}

// Open reads the image as the tar that engines load.
func (i *Image) Open() (io.ReadCloser, error) { return i.content() }

// Save writes that tar into a file, for engines which load from one. Nobody else may read
// it: the variables of a user's program are in the image.
func (i *Image) Save(path string) error {
	in, err := i.content()
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// Repository is the name of every image that tare makes for its containers.
const Repository = "localhost/tare-probe"

// Probe is the image of the workload. Its entry point is the probe; a
// container's arguments are the token that the probe reports with. It stops on
// SIGTERM.
//
// Files are carried beside it, in that order: other files, another image.
func Probe(files ...probe.File) (*Image, error) {
	return build(func(id digest.Digest) string { return Repository + ":" + id.Encoded()[:12] }, files)
}

// Pause is the image for the process that holds a pod, under the name by which
// an engine looks for it. CRI-O starts /pause in it, whatever its entry point.
func Pause(ref string) (*Image, error) {
	return build(func(digest.Digest) string { return ref }, nil, "pause")
}

// Created is when all images were made: engines refuse one without a time, and
// a fixed one keeps the digest.
var Created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// build makes an image in which the probe has other names too. What it is called may
// depend on its id.
func build(ref func(id digest.Digest) string, files []probe.File, names ...string) (*Image, error) {
	content, err := layer(probe.Program(), files, names)
	if err != nil {
		return nil, fmt.Errorf("make the probe's image: %w", err)
	}
	l := Layout{}
	blob := l.Add(v1.MediaTypeImageLayer, content)
	config := l.AddJSON(v1.MediaTypeImageConfig, v1.Image{
		Created:  &Created,
		Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config: v1.ImageConfig{
			Entrypoint: []string{probe.Name}, Cmd: []string{"pause"}, WorkingDir: "/", StopSignal: "SIGTERM",
			Env:    []string{"PATH=" + Path},
			Labels: Labels(),
		},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{blob.Digest}},
		History: []v1.History{{Created: &Created, CreatedBy: "tare", Comment: "the workload that runtimes are weighed with"}},
	})
	manifest := name(l.AddJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config, Layers: []v1.Descriptor{blob},
	}), ref(config.Digest))
	l.List(manifest)
	// iSulad looks for files of these names.
	configFile, layerFile := config.Digest.Encoded()+".json", blob.Digest.Encoded()+"/layer.tar"
	l[configFile], l[layerFile] = l[Blob(config)], content
	l.Saved(Saved{configFile, []string{ref(config.Digest)}, []string{layerFile}})
	return &Image{Ref: ref(config.Digest), ID: config.Digest.String(), Digest: manifest.Digest.String(), content: l.open}, nil
}

// open reads the layout as a tar, of which no copy is held.
func (l Layout) open() (io.ReadCloser, error) {
	out, in := io.Pipe()
	go func() { in.CloseWithError(l.Tar(in, Created)) }()
	return out, nil
}

// name is a manifest under a name, for an index.
func name(manifest v1.Descriptor, ref string) v1.Descriptor {
	manifest.Platform = &v1.Platform{Architecture: runtime.GOARCH, OS: "linux"}
	// containerd takes the first for the full name, others the second for the tag.
	manifest.Annotations = map[string]string{NameAnnotation: ref, v1.AnnotationRefName: ref}
	return manifest
}

// layer is the one layer: the program, the folders on which runtimes mount, and
// what is carried.
func layer(program []byte, files []probe.File, names []string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{}
	for _, dir := range folders(files) {
		if made[dir] {
			continue
		}
		made[dir] = true
		mode := int64(0o755)
		if dir == "tmp" {
			mode = 0o1777
		}
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: mode, ModTime: Created}); err != nil {
			return nil, err
		}
	}
	if err := WriteFile(w, probe.Name[1:], 0o755, program, Created); err != nil {
		return nil, err
	}
	for _, f := range files {
		content, err := os.ReadFile(f.Source)
		if err != nil {
			return nil, err
		}
		if err := WriteFile(w, strings.TrimPrefix(path.Clean(f.Path), "/"), int64(f.Mode.Perm()), content, Created); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: probe.Name[1:], Mode: 0o755, ModTime: Created}); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// folders are those of every image, and those that carried files lie in, each
// after the one that it is in.
func folders(files []probe.File) []string {
	all := slices.Clone(probe.Folders)
	for _, f := range files {
		parts := strings.Split(strings.TrimPrefix(path.Clean(f.Path), "/"), "/")
		for i := 1; i < len(parts); i++ {
			all = append(all, path.Join(parts[:i]...))
		}
	}
	return all
}
