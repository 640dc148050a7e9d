package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	ggcr "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/imagetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// program opens a fake tare binary.
func program(t *testing.T, arch string, change func(*debug.BuildInfo)) *Binary {
	t.Helper()
	info := imagetest.Info(arch)
	if change != nil {
		change(info)
	}
	return must.Get(Open(stored(t, imagetest.Binary(machines[arch], info))))(t)
}

func stored(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tare")
	must.OK(t, os.WriteFile(path, content, 0o755))
	return path
}

func both(t *testing.T, o Options) *Image {
	t.Helper()
	return must.Get(New(o, program(t, "arm64", nil), program(t, "amd64", nil)))(t)
}

// written writes the image layout, and reads its index with another library.
func written(t *testing.T, i *Image) ggcr.ImageIndex {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tare.oci")
	must.OK(t, i.WriteFolder(dir))
	return must.Get(layout.ImageIndexFromPath(dir))(t)
}

func TestFolderIsAnImageLayoutWithBothArchitectures(t *testing.T) {
	t.Parallel()
	i := both(t, Options{Name: "registry.example/tare"})
	index := must.Get(written(t, i).ImageIndex(hash(i.Index)))(t)
	must.OK(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 2 {
		t.Fatal(manifest, err)
	}
	for n, arch := range []string{"amd64", "arm64"} {
		m := manifest.Manifests[n]
		one := must.Get(index.Image(m.Digest))(t)
		config := must.Get(one.ConfigFile())(t)
		if m.Platform.String() != "linux/"+arch || config.Architecture != arch || config.OS != "linux" || config.Config.User != "0:0" ||
			!slices.Equal(config.Config.Entrypoint, []string{"/tare"}) || config.Created.Format(time.RFC3339) != imagetest.Made {
			t.Errorf("%s: %v %+v", arch, m.Platform, config)
		}
		want := map[string]string{
			v1.AnnotationTitle: "tare", v1.AnnotationSource: "https://github.com/tare-bench/tare", v1.AnnotationLicenses: "Apache-2.0",
			v1.AnnotationVersion: "v1.2.3+dirty", v1.AnnotationRevision: imagetest.Commit, v1.AnnotationCreated: imagetest.Made,
		}
		check.That(t, maps.Equal(config.Config.Labels, want) && maps.Equal(manifest.Annotations, want),
			"%s: labels %v, annotations %v", arch, config.Config.Labels, manifest.Annotations)
		check.Equal(t, fmt.Sprintf("%s: files", arch), unpacked(t, one), []string{"tmp/ 1777", "tare 755"})
	}
	check.That(t, i.Name == "registry.example/tare:v1.2.3-dirty" && i.Signed == "registry.example/tare@"+i.Index.Digest.String(),
		"name %s, signed as %s", i.Name, i.Signed)
}

func hash(d v1.Descriptor) ggcr.Hash {
	return ggcr.Hash{Algorithm: string(d.Digest.Algorithm()), Hex: d.Digest.Encoded()}
}

// unpacked returns the names and modes in the single layer of an image.
func unpacked(t *testing.T, i ggcr.Image) (files []string) {
	t.Helper()
	layers, err := i.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatal(layers, err)
	}
	content := must.Get(layers[0].Uncompressed())(t)
	defer content.Close()
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil || h.Uid != 0 || h.Gid != 0 {
			t.Fatal(h, err)
		}
		files = append(files, fmt.Sprintf("%s %o", h.Name, h.Mode))
	}
}

func TestTarHasTheIndexesThatEnginesLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		binaries []*Binary
		tags     []string
	}{
		{"one architecture has the image name", []*Binary{program(t, "arm64", nil)}, []string{"localhost/tare:v1.2.3-dirty"}},
		{"two architectures have a name each", []*Binary{program(t, "amd64", nil), program(t, "arm64", nil)},
			[]string{"localhost/tare:v1.2.3-dirty-amd64", "localhost/tare:v1.2.3-dirty-arm64"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			i := must.Get(New(Options{}, c.binaries...))(t)
			var out bytes.Buffer
			must.OK(t, i.WriteTar(&out))
			files := map[string][]byte{}
			for r := tar.NewReader(&out); ; {
				h, err := r.Next()
				if err != nil {
					break
				}
				files[h.Name], _ = io.ReadAll(r)
			}
			var index v1.Index
			var saved []struct {
				Config           string
				RepoTags, Layers []string
			}
			must.OK(t, errors.Join(json.Unmarshal(files["index.json"], &index), json.Unmarshal(files["manifest.json"], &saved)))
			check.That(t, len(index.Manifests) == 1 && index.Manifests[0].Annotations["io.containerd.image.name"] == "localhost/tare:v1.2.3-dirty",
				"index.json: %s", files["index.json"])
			var tags []string
			for _, s := range saved {
				tags = append(tags, s.RepoTags...)
				check.That(t, files[s.Config] != nil && len(s.Layers) == 1 && files[s.Layers[0]] != nil,
					"manifest.json refers to missing files: %+v", s)
			}
			check.Equal(t, "tags", tags, c.tags)
		})
	}
}

func TestImageIsReproducible(t *testing.T) {
	t.Parallel()
	one := both(t, Options{})
	later := must.Get(New(Options{}, program(t, "amd64", nil), program(t, "arm64", nil)))(t)
	var a, b bytes.Buffer
	err := errors.Join(one.WriteTar(&a), later.WriteTar(&b))
	check.That(t, err == nil && bytes.Equal(a.Bytes(), b.Bytes()), "two tars of the same programs differ, %v", err)
	for n := range one.Bills {
		check.That(t, one.Bills[n].Digest == later.Bills[n].Digest, "two bills of materials differ: %v, %v", one.Bills[n], later.Bills[n])
	}
	dated := both(t, Options{Created: time.Unix(1, 0)})
	check.That(t, dated.Index.Digest != one.Index.Digest, "the date does not change the digest")
	elsewhere := both(t, Options{Name: "registry.example/a:b"})
	check.That(t, elsewhere.Index.Digest == one.Index.Digest, "the name changes the digest")
}

func TestBillsOfMaterialsReferToTheIndex(t *testing.T) {
	t.Parallel()
	i := both(t, Options{})
	all := written(t, i)
	must.That(t, len(i.Bills) == 2, "%v", i.Bills)
	for n, arch := range []string{"amd64", "arm64"} {
		one := must.Get(all.Image(hash(i.Bills[n])))(t)
		raw := must.Get(one.RawManifest())(t)
		var m v1.Manifest
		must.OK(t, json.Unmarshal(raw, &m))
		must.That(t, m.Subject != nil && m.Subject.Digest == i.Index.Digest && m.Subject.Size == i.Index.Size && m.ArtifactType == billType &&
			m.Config.MediaType == v1.MediaTypeEmptyJSON && len(m.Layers) == 1, "%s", raw)
		layers := must.Get(one.Layers())(t)
		content, err := layers[0].Compressed() // the content is not compressed
		must.OK(t, err)
		text := must.Get(io.ReadAll(content))(t)
		validBill(t, text)
		for _, says := range []string{
			`"purl": "pkg:golang/github.com/tare-bench/tare@v1.2.3%2Bdirty?goarch=` + arch + `&goos=linux&type=module"`, `"timestamp": "` + imagetest.Made + `"`,
			`"purl": "pkg:golang/stdlib@1.26.6"`, `"purl": "pkg:golang/example.com/a@v1.0.0%2Bincompatible"`, `"name": "example.com/c"`,
			`"content": "` + digest.FromBytes(imagetest.Binary(machines[arch], imagetest.Info(arch))).Encoded() + `"`,
		} {
			check.That(t, bytes.Contains(text, []byte(says)), "%s: the bill of materials lacks %s:\n%s", arch, says, text)
		}
		check.That(t, !bytes.Contains(text, []byte("example.com/b")), "%s: the bill of materials contains a replaced module:\n%s", arch, text)
	}
}

func TestPushedImageHasItsTagAndReferrers(t *testing.T) {
	t.Parallel()
	for name, referrers := range map[string]bool{"referrers API": true, "referrers tag": false} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.WithReferrersSupport(referrers), registry.Logger(log.New(io.Discard, "", 0))))
			t.Cleanup(server.Close)
			i := both(t, Options{Name: strings.TrimPrefix(server.URL, "http://") + "/some/tare:v1"})
			for range 2 { // the second push finds everything in place
				must.OK(t, i.Push(t.Context()))
			}
			pushed(t, i)
		})
	}
	i := both(t, Options{Name: "127.0.0.1:1/tare:v1"})
	check.Error(t, i.Push(t.Context()), "push to 127.0.0.1:1/tare:v1")
}

func pushed(t *testing.T, i *Image) {
	t.Helper()
	tag := must.Get(name.NewTag(i.Name))(t)
	index := must.Get(remote.Index(tag))(t)
	if digest, err := index.Digest(); err != nil || digest != hash(i.Index) {
		t.Errorf("%s has the digest %v, want %s, %v", tag, digest, i.Index.Digest, err)
	}
	must.OK(t, validate.Index(index))
	found := must.Get(remote.Referrers(tag.Digest(i.Index.Digest.String())))(t)
	manifest, err := found.IndexManifest()
	must.That(t, err == nil && len(manifest.Manifests) == 2, "referrers: %+v, %v", manifest, err)
	for _, b := range i.Bills {
		check.That(t, slices.ContainsFunc(manifest.Manifests, func(m ggcr.Descriptor) bool { return m.Digest == hash(b) }),
			"%s is not a referrer: %+v", b.Digest, manifest)
	}
}

func TestUnsuitableProgramIsRefused(t *testing.T) {
	t.Parallel()
	with := func(change func(*debug.BuildInfo)) []byte {
		info := imagetest.Info("amd64")
		change(info)
		return imagetest.Binary(elf.EM_X86_64, info)
	}
	for name, c := range map[string]struct {
		content []byte
		says    string
	}{
		"not ELF":                {[]byte("#!/bin/sh\n"), "not an ELF program"},
		"ELF header only":        {imagetest.Binary(elf.EM_X86_64, imagetest.Info("amd64"))[:64], "not an ELF program"},
		"truncated":              {imagetest.Binary(elf.EM_X86_64, imagetest.Info("amd64"))[:150], "no Go build information"},
		"unsupported machine":    {imagetest.Binary(elf.EM_RISCV, imagetest.Info("riscv64")), "tare supports amd64 and arm64"},
		"dynamically linked":     {imagetest.Binary(elf.EM_X86_64, imagetest.Info("amd64"), elf.PT_INTERP), "CGO_ENABLED=0"},
		"other program":          {with(func(i *debug.BuildInfo) { i.Path = "example.com/\x1b[31m" }), "not tare"},
		"wrong ELF header":       {imagetest.Binary(elf.EM_AARCH64, imagetest.Info("amd64")), "its ELF header is for arm64"},
		"other operating system": {with(func(i *debug.BuildInfo) { i.Settings[1].Value = "freebsd" }), "built for freebsd/amd64"},
		"no build settings":      {with(func(i *debug.BuildInfo) { i.Settings = nil }), "built for /"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(stored(t, c.content))
			check.That(t, err != nil && strings.Contains(err.Error(), c.says), "got the error %v, want %q", err, c.says)
		})
	}
	for _, path := range []string{"/dev/zero", t.TempDir(), "/nowhere"} {
		_, err := Open(path)
		check.That(t, err != nil, "%s was opened", path)
	}
}

func TestInvalidImageOptionsAreRefused(t *testing.T) {
	t.Parallel()
	of := func(change func(*debug.BuildInfo)) *Binary { return program(t, "arm64", change) }
	amd := program(t, "amd64", nil)
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	var withKey bytes.Buffer
	for kind, content := range map[string][]byte{"CERTIFICATE": server.Certificate().Raw, "EC PRIVATE KEY": {1}} {
		must.OK(t, pem.Encode(&withKey, &pem.Block{Type: kind, Bytes: content}))
	}
	for name, c := range map[string]struct {
		o        Options
		binaries []*Binary
		says     string
	}{
		"same architecture twice":   {Options{}, []*Binary{amd, program(t, "amd64", nil)}, "both for amd64"},
		"different commits":         {Options{}, []*Binary{amd, of(func(i *debug.BuildInfo) { i.Settings[2].Value = "fedc" })}, "from one tree"},
		"different versions":        {Options{}, []*Binary{amd, of(func(i *debug.BuildInfo) { i.Main.Version = "v1" })}, "from one tree"},
		"name with a line break":    {Options{Name: "a\nb"}, []*Binary{amd}, "name"},
		"name with a digest":        {Options{Name: "a/b:c@sha256:" + strings.Repeat("0", 64)}, []*Binary{amd}, "REPOSITORY:TAG"},
		"version that is not a tag": {Options{}, []*Binary{program(t, "amd64", func(i *debug.BuildInfo) { i.Main.Version = "v1 \x1b" })}, "name"},
		"invalid certificates":      {Options{Certificates: "image_test.go"}, []*Binary{amd}, "no PEM certificate"},
		"certificates with a key":   {Options{Certificates: stored(t, withKey.Bytes())}, []*Binary{amd}, "it contains a private key"},
		"missing certificates":      {Options{Certificates: "/nowhere"}, []*Binary{amd}, "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.o, c.binaries...)
			check.That(t, err != nil && strings.Contains(err.Error(), c.says), "got the error %v, want %q", err, c.says)
		})
	}
}

// validBill validates a bill of materials against the schema in the CycloneDX library.
func validBill(t *testing.T, text []byte) {
	t.Helper()
	dir := must.Get(exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output())(t)
	c := jsonschema.NewCompiler()
	for name, file := range map[string]string{"bom-1.6.schema.json": "bom-1.6.schema.json", "spdx.schema.json": "spdx.schema.json", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		content := must.Get(os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "schema", file)))(t)
		schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(content))
		if err == nil {
			err = c.AddResource("http://cyclonedx.org/schema/"+name, schema)
		}
		must.OK(t, err)
	}
	schema := must.Get(c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json"))(t)
	bill, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = schema.Validate(bill)
	}
	check.That(t, err == nil, "%v\n%s", err, text)
}
