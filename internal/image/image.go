// Package image builds the container image of tare. For each architecture it builds an
// image FROM scratch with the program and an empty /tmp; an index lists these images. A
// bill of materials for each program refers to the index. The same programs always give the
// same digests.
//
// The output is an OCI image layout in a folder, a tar that containerd, podman, skopeo
// and docker load, or a push to a registry. The formats are OCI Image Format 1.1, with
// the subject field for referrers, and CycloneDX 1.6.
package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/distribution/reference"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	disk "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	layout "github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/version"
)

// Program is tare's path in the image, and its entry point.
const Program = "/tare"

const licence = "Apache-2.0"

// Options are the options of an image. Empty fields have defaults from the binaries.
type Options struct {
	Name         string    // with or without a tag: "registry.example/tare:v1"
	Created      time.Time // timestamp of all content; default: the commit's time
	Certificates string    // file of trusted CA certificates in PEM; default: none
}

// Image is an image that can be written.
type Image struct {
	Name      string          // full name, with a tag
	Signed    string          // name with the digest of the index, for signing
	Index     v1.Descriptor   // index that Name refers to
	Platforms []v1.Descriptor // its images
	Bills     []v1.Descriptor // the manifests of the bills of materials

	files, bills layout.Layout
	saved        []layout.Saved
	created      time.Time
	tag          string
}

// New builds the image from one binary for each architecture.
func New(o Options, binaries ...*Binary) (*Image, error) {
	binaries = slices.SortedFunc(slices.Values(binaries), func(a, b *Binary) int { return strings.Compare(a.Arch, b.Arch) })
	first := binaries[0]
	for i, b := range binaries[1:] {
		if b.Arch == binaries[i].Arch {
			return nil, fmt.Errorf("%s and %s are both for %s", binaries[i].path, b.path, b.Arch)
		}
		if b.commit() != first.commit() {
			return nil, fmt.Errorf("%s is %s, and %s is %s: build both from one tree", first.path, first.commit(), b.path, b.commit())
		}
	}
	i := &Image{files: layout.Layout{}, bills: layout.Layout{}}
	i.created = cmp.Or(o.Created, first.made(), time.Unix(0, 0)).UTC() // without a commit: a fixed time
	if err := i.setName(o.Name, first); err != nil {
		return nil, err
	}
	certificates, err := certificates(o.Certificates)
	if err != nil {
		return nil, err
	}
	about := i.annotations(first)
	for _, b := range binaries {
		if err := i.add(b, about, certificates, len(binaries) == 1); err != nil {
			return nil, fmt.Errorf("build the image of %s: %w", b.path, err)
		}
	}
	i.Index = i.files.AddJSON(v1.MediaTypeImageIndex, v1.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageIndex, Manifests: i.Platforms, Annotations: about,
	})
	for _, b := range binaries {
		if err := i.attach(b); err != nil {
			return nil, fmt.Errorf("create the bill of materials of %s: %w", b.path, err)
		}
	}
	i.Index.Annotations = map[string]string{layout.NameAnnotation: i.Name, v1.AnnotationRefName: i.tag}
	i.Signed = strings.TrimSuffix(i.Name, ":"+i.tag) + "@" + i.Index.Digest.String()
	return i, nil
}

// setName sets the image's name, in the full form that engines print.
func (i *Image) setName(given string, b *Binary) error {
	tag := strings.ReplaceAll(b.version(), "+", "-") // tags cannot contain +
	if given == "" {
		given = "localhost/tare:" + tag
	}
	named, err := reference.ParseNormalizedNamed(given)
	if err != nil {
		return fmt.Errorf("the image's name %q: %w", given, err)
	}
	if reference.IsNameOnly(named) {
		named, err = reference.WithTag(named, tag)
	}
	tagged, is := named.(reference.NamedTagged)
	if _, digested := named.(reference.Digested); err != nil || !is || digested {
		return fmt.Errorf("the image's name %q: write REGISTRY/REPOSITORY:TAG", given)
	}
	i.Name, i.tag = tagged.String(), tagged.Tag()
	return nil
}

// annotations returns the annotations of the image; they are also its labels.
func (i *Image) annotations(b *Binary) map[string]string {
	about := map[string]string{
		v1.AnnotationTitle:    "tare",
		v1.AnnotationSource:   "https://" + module,
		v1.AnnotationLicenses: licence,
		v1.AnnotationVersion:  b.version(),
		v1.AnnotationCreated:  i.created.Format(time.RFC3339),
	}
	if r := b.setting("vcs.revision"); r != "" {
		about[v1.AnnotationRevision] = r
	}
	return about
}

// add builds the image of one architecture. Its user is root: only root can create the
// namespaces and cgroups of a target and read other users' processes.
func (i *Image) add(b *Binary, about map[string]string, certificates []byte, alone bool) error {
	packed, unpacked, err := b.layer(i.created, certificates)
	if err != nil {
		return err
	}
	platform := v1.Platform{OS: "linux", Architecture: b.Arch}
	config := i.files.AddJSON(v1.MediaTypeImageConfig, v1.Image{
		Created: &i.created, Platform: platform,
		Config:  v1.ImageConfig{User: "0:0", Entrypoint: []string{Program}, WorkingDir: "/", Env: []string{"PATH=" + layout.Path}, Labels: about},
		RootFS:  v1.RootFS{Type: "layers", DiffIDs: []digest.Digest{unpacked}},
		History: []v1.History{{Created: &i.created, CreatedBy: "tare image"}},
	})
	layer := i.files.Add(v1.MediaTypeImageLayerGzip, packed)
	manifest := i.files.AddJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest,
		Config: config, Layers: []v1.Descriptor{layer}, Annotations: about,
	})
	manifest.Platform = &platform
	i.Platforms = append(i.Platforms, manifest)
	name := i.Name
	if !alone { // docker load does not support an index
		name += "-" + b.Arch
	}
	i.saved = append(i.saved, layout.Saved{Config: layout.Blob(config), RepoTags: []string{name}, Layers: []string{layout.Blob(layer)}})
	return nil
}

// attach builds the manifest that refers to the index, for the referrers API of
// registries.
func (i *Image) attach(b *Binary) error {
	bill, err := b.bill(i.created)
	if err != nil {
		return err
	}
	document := i.bills.Add(billType, bill)
	document.Annotations = map[string]string{v1.AnnotationTitle: "tare-linux-" + b.Arch + ".cdx.json"}
	about := map[string]string{v1.AnnotationCreated: i.created.Format(time.RFC3339), v1.AnnotationTitle: "bill of materials of tare for linux/" + b.Arch}
	subject := i.Index
	manifest := i.bills.AddJSON(v1.MediaTypeImageManifest, v1.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: v1.MediaTypeImageManifest, ArtifactType: billType,
		Config: i.bills.Add(v1.MediaTypeEmptyJSON, []byte("{}")), Layers: []v1.Descriptor{document}, Subject: &subject, Annotations: about,
	})
	manifest.ArtifactType, manifest.Annotations = billType, about
	i.Bills = append(i.Bills, manifest)
	return nil
}

// WriteFolder writes the image and its referrers to a folder, as an OCI image layout.
func (i *Image) WriteFolder(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%s exists and is not overwritten; move it away or give another path", dir)
		}
		return err
	}
	all := maps.Clone(i.files)
	maps.Copy(all, i.bills)
	all.List(append([]v1.Descriptor{i.Index}, i.Bills...)...)
	for path, content := range all {
		path = filepath.Join(dir, path)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, content, 0o644)
		}
		if err != nil {
			return errors.Join(err, os.RemoveAll(dir))
		}
	}
	return nil
}

// WriteTar writes the archive that engines load. It contains only the image, because some
// engines reject an archive with several entries in its index.
func (i *Image) WriteTar(w io.Writer) error {
	all := maps.Clone(i.files)
	all.List(i.Index)
	all.Saved(i.saved...)
	return all.Tar(w, i.created)
}

// Push writes the image and its referrers to the registry in the name, with the
// credentials of Docker's configuration.
func (i *Image) Push(ctx context.Context) error {
	ref, err := name.NewTag(i.Name)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "tare-image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "oci")
	if err := i.WriteFolder(dir); err != nil {
		return err
	}
	all, err := disk.ImageIndexFromPath(dir)
	if err != nil {
		return err
	}
	with := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithUserAgent("tare/" + version.String())}
	manifest, err := all.IndexManifest()
	if err != nil {
		return err
	}
	for _, m := range manifest.Manifests {
		var one remote.Taggable
		var to name.Reference = ref.Digest(m.Digest.String())
		if m.MediaType.IsIndex() {
			one, err = all.ImageIndex(m.Digest)
			to = ref
		} else {
			one, err = all.Image(m.Digest)
		}
		if err == nil {
			err = remote.Push(to, one, with...)
		}
		if err != nil {
			return fmt.Errorf("push to %s, with the credentials of docker login or podman login: %w", to, err)
		}
	}
	return nil
}
