// Package image builds container images of the probe with one layer, so that nothing is
// pulled. [Layout] is the format of images.
//
// An image is one tar that is both the output of `docker save` (manifest.json, for
// docker, podman, skopeo and iSulad) and an OCI image layout (index.json, for
// containerd): the Docker Image Specification v1.2 and the OCI Image Format
// Specification v1.0. Equal probes give equal bytes.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Image is an image that engines can load.
type Image struct {
	Ref    string // its full name, with a tag: "localhost/tare-probe:1f2e3d4c5b6a"
	ID     string // digest of its configuration, "sha256:…": what engines call the image's id
	Digest string // digest of its manifest, "sha256:…"

	files    Layout // all files except those with the image's name
	parts    map[string]Part
	manifest v1.Descriptor
	saved    Saved
}

// Of returns the image under the name of a run. Each run removes its name at the end.
// An engine shared by several runs keeps the content until the last name is gone.
func (i *Image) Of(runID string) *Image {
	named := *i
	named.Ref += "-" + runID
	return &named
}

// Open returns the image as a tar without keeping a copy.
func (i *Image) Open() (io.ReadCloser, error) {
	l := maps.Clone(i.files)
	manifest, saved := i.manifest, i.saved
	// containerd reads the full name from the first annotation. Other engines read the tag
	// from the second one.
	manifest.Annotations = map[string]string{NameAnnotation: i.Ref, v1.AnnotationRefName: i.Ref}
	l.List(manifest)
	saved.RepoTags = []string{i.Ref}
	l.Saved(saved)
	out, in := io.Pipe()
	go func() {
		w := tar.NewWriter(in)
		in.CloseWithError(errors.Join(writeParts(w, i.parts), l.files(w, Created), w.Close()))
	}()
	return out, nil
}

// Save writes the tar to a file that only its owner can read: the image has the
// variables of a user's program.
func (i *Image) Save(path string) error {
	in, err := i.Open()
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

// Repository is the name of all images for tare's containers.
const Repository = "localhost/tare-probe"

// Probe returns the image of the workload. Its entry point is the probe, with the token
// of its report as argument. It stops on SIGTERM. The image also has the given files,
// in order.
func Probe(files ...probe.File) (*Image, error) {
	return build("", files)
}

// Pause returns the image for the pause process of a pod under the engine's name for
// it. CRI-O starts /pause in it, independent of the entry point.
func Pause(ref string) (*Image, error) {
	return build(ref, nil, "pause")
}

// Created is the timestamp of all images. Engines reject an image without one, and a fixed
// time makes the digest reproducible.
var Created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// build builds an image that contains the probe under one or more names. An empty ref stands for
// a name by the image's id.
func build(ref string, files []probe.File, names ...string) (*Image, error) {
	content, err := layer(probe.Program(), files, names)
	if err != nil {
		return nil, fmt.Errorf("build the probe's image: %w", err)
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
	// iSulad reads a layer's file of this name.
	layerFile := blob.Digest.Encoded() + "/layer.tar"
	l[layerFile] = content
	return l.image(ref, config, []v1.Descriptor{blob}, []string{layerFile}), nil
}

// image completes the files of an image with a configuration and layers.
func (l Layout) image(ref string, config v1.Descriptor, layers []v1.Descriptor, saved []string) *Image {
	m := l.AddJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, Config: config, Layers: layers,
	})
	m.Platform = &v1.Platform{Architecture: runtime.GOARCH, OS: "linux"}
	configFile := config.Digest.Encoded() + ".json" // where iSulad looks for it
	l[configFile] = l[Blob(config)]
	return &Image{Ref: cmp.Or(ref, Repository+":"+config.Digest.Encoded()[:12]), ID: config.Digest.String(), Digest: m.Digest.String(), files: l, manifest: m, saved: Saved{Config: configFile, Layers: saved}}
}

// layer returns the layer with the program, the mount points of runtimes, and the given
// files.
func layer(program []byte, files []probe.File, names []string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, dir := range folders(files) {
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
		if err := WriteFile(w, f.Name(), int64(f.Mode.Perm()), content, Created); err != nil {
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

// folders returns the folders of every image and those of the files, parents first.
func folders(files []probe.File) []string {
	all := slices.Clone(probe.Folders)
	for _, f := range files {
		parts := strings.Split(f.Name(), "/")
		for i := 1; i < len(parts); i++ {
			if dir := path.Join(parts[:i]...); !slices.Contains(all, dir) {
				all = append(all, dir)
			}
		}
	}
	return all
}
