// Package image makes container images of the probe: one layer, built here, so
// that nothing is ever pulled.
//
// An image is one tar that is both what `docker save` writes (manifest.json,
// read by docker, podman, skopeo and iSulad) and an OCI image layout
// (index.json, read by containerd): the Docker Image Specification v1.2 and the
// OCI Image Format Specification v1.0. The same probe gives the same bytes.
package image

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	Archive []byte // the tar
}

// Repository is the name of every image that tare makes for its containers.
const Repository = "localhost/tare-probe"

// Probe is the image of the workload. Its entry point is the probe; a
// container's arguments are the token that the probe reports with. It stops on
// SIGTERM.
//
// Files are carried beside it, in that order: other files, another image.
func Probe(files ...probe.File) (*Image, error) {
	i, err := build("", files)
	if err != nil {
		return nil, err
	}
	return build(Repository+":"+i.ID[len("sha256:"):][:12], files)
}

// Pause is the image for the process that holds a pod, under the name by which
// an engine looks for it. CRI-O starts /pause in it, whatever its entry point.
func Pause(ref string) (*Image, error) { return build(ref, nil, "pause") }

// created is when all images were made: engines refuse one without a time, and
// a fixed one keeps the digest.
var created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// build makes an image in which the probe has other names too.
func build(ref string, files []probe.File, names ...string) (*Image, error) {
	layer, err := layer(files, names)
	if err != nil {
		return nil, fmt.Errorf("make the probe's image: %w", err)
	}
	config, err := json.Marshal(v1.Image{
		Created:  &created,
		Platform: v1.Platform{Architecture: runtime.GOARCH, OS: "linux"},
		Config: v1.ImageConfig{
			Entrypoint: []string{probe.Name}, Cmd: []string{"pause"}, WorkingDir: "/", StopSignal: "SIGTERM",
			Env:    []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			Labels: map[string]string{"dev.tare.image": "probe"},
		},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{digest.FromBytes(layer)}},
		History: []v1.History{{Created: &created, CreatedBy: "tare", Comment: "the workload that runtimes are weighed with"}},
	})
	if err != nil {
		return nil, fmt.Errorf("make the probe's image: %w", err)
	}
	a := archive{image: &Image{Ref: ref, ID: digest.FromBytes(config).String()}}
	if err := a.write(config, layer); err != nil {
		return nil, fmt.Errorf("make the probe's image: %w", err)
	}
	return a.image, nil
}

// layer is the one layer: the probe, the folders on which runtimes mount, and
// what is carried.
func layer(files []probe.File, names []string) ([]byte, error) {
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
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: mode, ModTime: created}); err != nil {
			return nil, err
		}
	}
	if err := file(w, probe.Name[1:], 0o755, probe.Program()); err != nil {
		return nil, err
	}
	for _, f := range files {
		content, err := os.ReadFile(f.Source)
		if err != nil {
			return nil, err
		}
		if err := file(w, strings.TrimPrefix(path.Clean(f.Path), "/"), int64(f.Mode.Perm()), content); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeLink, Name: name, Linkname: probe.Name[1:], Mode: 0o755, ModTime: created}); err != nil {
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

func file(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content)), ModTime: created}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

// archive writes the tar of an image.
type archive struct {
	image *Image
	out   bytes.Buffer
	w     *tar.Writer
}

func (a *archive) write(config, layer []byte) error {
	a.w = tar.NewWriter(&a.out)
	manifest, err := json.Marshal(v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: descriptor(v1.MediaTypeImageConfig, config),
		Layers: []v1.Descriptor{descriptor(v1.MediaTypeImageLayer, layer)},
	})
	if err != nil {
		return err
	}
	of := descriptor(v1.MediaTypeImageManifest, manifest)
	of.Platform = &v1.Platform{Architecture: runtime.GOARCH, OS: "linux"}
	// containerd takes the first for the full name, others the second for the tag.
	of.Annotations = map[string]string{"io.containerd.image.name": a.image.Ref, v1.AnnotationRefName: a.image.Ref}
	a.image.Digest = of.Digest.String()

	hexID, hexLayer := hexOf(config), hexOf(layer)
	files := []struct {
		name    string
		content any
	}{
		{v1.ImageLayoutFile, v1.ImageLayout{Version: v1.ImageLayoutVersion}},
		{"index.json", v1.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: []v1.Descriptor{of}}},
		{blob(manifest), manifest}, {blob(config), config}, {blob(layer), layer},
		{hexID + ".json", config}, {hexLayer + "/layer.tar", layer},
		{"manifest.json", []map[string]any{{"Config": hexID + ".json", "RepoTags": []string{a.image.Ref}, "Layers": []string{hexLayer + "/layer.tar"}}}},
	}
	for _, f := range files {
		content, ok := f.content.([]byte)
		if !ok {
			if content, err = json.Marshal(f.content); err != nil {
				return err
			}
		}
		if err := file(a.w, f.name, 0o644, content); err != nil {
			return err
		}
	}
	err = a.w.Close()
	a.image.Archive = a.out.Bytes()
	return err
}

func descriptor(mediaType string, content []byte) v1.Descriptor {
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content))}
}

func hexOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func blob(content []byte) string { return "blobs/sha256/" + hexOf(content) }
