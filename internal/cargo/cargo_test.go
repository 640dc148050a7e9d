package cargo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// tarOf returns a tar file with the given entries. Gname is the content of an entry.
func tarOf(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		content := h.Gname
		h.Gname = ""
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		h.Size = int64(len(content))
		must.OK(t, w.WriteHeader(&h))
		must.Get(io.WriteString(w, content))(t)
	}
	must.OK(t, w.Close())
	return b.Bytes()
}

func file(name, content string) tar.Header { return tar.Header{Name: name, Gname: content} }

func link(kind byte, name, to string) tar.Header {
	return tar.Header{Typeflag: kind, Name: name, Linkname: to}
}

// imageOf returns an image with the given layers and the configuration of a server.
func imageOf(t *testing.T, layers ...[]byte) v1.Image {
	t.Helper()
	img := empty.Image
	for _, content := range layers {
		l := got(tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }))(t)
		img = got(mutate.AppendLayers(img, l))(t)
	}
	c := got(img.ConfigFile())(t)
	c = c.DeepCopy()
	c.OS, c.Architecture = "linux", runtime.GOARCH
	c.Config = v1.Config{Entrypoint: []string{"/app", "serve"}, Cmd: []string{"8080"}, Env: []string{"A=image", "B=image"}, User: "web", WorkingDir: "/srv", StopSignal: "SIGQUIT",
		Volumes: map[string]struct{}{"/data": {}}}
	return got(mutate.ConfigFile(img, c))(t)
}

// server returns the image of most tests.
func server(t *testing.T) v1.Image {
	return imageOf(t,
		tarOf(t, file("etc/passwd", "root:x:0:0::/:/bin/sh\nweb:x:100:101::/:/bin/sh\n"), file("app", "old"), file("gone", "x"), file("deep/er/old", "x"), file("deep/er/older", "x"), file("high/old", "x")),
		tarOf(t, file(".wh.gone", ""), file("app", "new"), link(tar.TypeLink, "hard", "app"), link(tar.TypeSymlink, "soft", "/app"),
			file("deep/er/new", "y"), file("deep/er/.wh..wh..opq", ""),
			// Whiteouts do not affect entries of the same layer, even if the layer has no
			// entry for the parent folder.
			file("high/er/new", "z"), file("high/.wh..wh..opq", ""), link(tar.TypeDir, "own", ""), file("own/new", "o"), file(".wh.own", ""),
			tar.Header{Typeflag: tar.TypeChar, Name: "dev/null", Devmajor: 1, Devminor: 3},
			tar.Header{Name: "sbin/su", Gname: "s", Mode: 0o4755}))
}

func layoutOf(t *testing.T, add func(layout.Path)) []byte {
	t.Helper()
	dir := t.TempDir()
	p := got(layout.Write(dir, empty.Index))(t)
	add(p)
	return got(io.ReadAll(retar(dir)))(t)
}

func dockerOf(t *testing.T, img v1.Image) []byte {
	t.Helper()
	var b bytes.Buffer
	must.OK(t, tarball.Write(got(name.NewTag("example.com/app:1"))(t), img, &b))
	return b.Bytes()
}

// got returns the value of a call that must succeed: got(os.Open(name))(t).
func got[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		must.OK(t, err)
		return v
	}
}

func inFile(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.tar")
	must.OK(t, os.WriteFile(path, content, 0o600))
	return path
}

func blob(t *testing.T, p layout.Path, hex string, content []byte) {
	t.Helper()
	h := v1.Hash{Algorithm: "sha256", Hex: hex}
	must.OK(t, p.WriteBlob(h, io.NopCloser(bytes.NewReader(content))))
}

func add(t *testing.T, img v1.Image, o ...layout.Option) func(layout.Path) {
	return func(p layout.Path) {
		must.OK(t, p.AppendImage(img, o...))
	}
}

// packed returns the image with its layers compressed by zstd.
func packed(t *testing.T, img v1.Image) v1.Image {
	t.Helper()
	config := got(img.ConfigFile())(t)
	layers := got(img.Layers())(t)
	out := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for _, l := range layers {
		in := got(l.Uncompressed())(t)
		text := got(io.ReadAll(in))(t)
		z := got(zstd.NewWriter(nil))(t)
		out = got(mutate.AppendLayers(out, static.NewLayer(z.EncodeAll(text, nil), types.OCILayerZStd)))(t)
	}
	return got(mutate.ConfigFile(out, config))(t)
}

func zipped(t *testing.T, b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	must.Get(w.Write(b))(t)
	must.OK(t, w.Close())
	return out.Bytes()
}

func TestEveryImageFormatGivesTheSameWorkload(t *testing.T) {
	t.Parallel()
	img := server(t)
	other := platform
	other.Architecture = "s390x"
	host := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer host.Close()
	ref := strings.TrimPrefix(host.URL, "http://") + "/app:1"
	must.OK(t, remote.Write(got(name.ParseReference(ref))(t), img))
	saved := dockerOf(t, img)
	refs := map[string]string{}
	for form, w := range map[string]setting.Workload{
		"docker save":             {Image: inFile(t, saved)},
		"docker save, compressed": {Image: inFile(t, zipped(t, saved))},
		"OCI layout":              {Image: inFile(t, layoutOf(t, add(t, img)))},
		"OCI layout, zstd":        {Image: inFile(t, layoutOf(t, add(t, packed(t, img))))},
		"several platforms": {Image: inFile(t, layoutOf(t, func(p layout.Path) {
			add(t, server(t), layout.WithPlatform(other))(p)
			add(t, img, layout.WithPlatform(platform))(p)
		}))},
		"pulled":      {Image: ref, Pull: true},
		"from engine": {Image: "app:1"},
	} {
		w.Env = []setting.Variable{"B=mine", "C=mine"}
		lender := Lender{Name: "an engine", Save: func(_ context.Context, ref, file string) error { return os.WriteFile(file, saved, 0o600) }}
		c, err := Make(t.Context(), w, t.TempDir(), []Lender{{Name: "none", Save: func(context.Context, string, string) error { return ErrNoImage }}, lender})
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		refs[form] = c.Image.Ref
		if want := (Process{Args: []string{"/app", "serve", "8080"}, Env: []string{"PATH=" + image.Path, "A=image", "B=mine", "C=mine"}, Dir: "/srv", UID: 100, GID: 101, Stop: unix.SIGQUIT}); fmt.Sprint(c.Process) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", form, c.Process, want)
		}
		checkImage(t, form, c)
	}
	names := slices.Compact(slices.Sorted(maps.Values(refs)))
	check.That(t, len(names) == 1, "the same image has several names: %v", refs)
}

// checkImage reads the result like docker load, and like containerd.
func checkImage(t *testing.T, form string, c *Cargo) {
	t.Helper()
	tag := got(name.NewTag(c.Image.Ref))(t)
	saved := got(tarball.Image(c.Image.Open, &tag))(t)
	in := got(c.Image.Open())(t)
	defer in.Close()
	dir := t.TempDir()
	must.OK(t, spread(t.Context(), in, dir))
	index := got(layout.ImageIndexFromPath(dir))(t)
	root := got(os.OpenRoot(dir))(t)
	defer root.Close()
	listed := got(choose(root, index, 0))(t)
	for _, img := range []v1.Image{saved, listed} {
		if err := validate.Image(img, validate.Fast); err != nil {
			t.Errorf("%s: %v", form, err)
		}
		id, err := img.ConfigName()
		config, err2 := img.ConfigFile()
		if err = errors.Join(err, err2); err != nil || id.String() != c.Image.ID {
			t.Fatalf("%s: image ID %s, want %s: %v", form, id, c.Image.ID, err)
		}
		if got := config.Config; !slices.Equal(got.Entrypoint, []string{"/probe"}) || got.User != "100:101" || got.WorkingDir != "/srv" || got.StopSignal != "SIGQUIT" || !slices.Equal(got.Env, c.Env) || len(got.Volumes) > 0 || got.Labels["dev.tare.image"] != "probe" {
			t.Errorf("%s: %+v", form, got)
		}
	}
	check.Equal(t, form, must.Get(listed.Digest())(t).String(), c.Image.Digest)
}

func TestLayersAreAppliedInOrder(t *testing.T) {
	t.Parallel()
	need.Root(t)
	c := got(Make(t.Context(), setting.Workload{Image: inFile(t, dockerOf(t, server(t)))}, t.TempDir(), nil))(t)
	root := got(c.Root())(t)
	for name, want := range map[string]string{"app": "new", "hard": "new", "deep/er/new": "y", "high/er/new": "z", "own/new": "o", "sbin/su": "s"} {
		check.Equal(t, name, string(must.Get(os.ReadFile(filepath.Join(root, name)))(t)), want)
	}
	for _, gone := range []string{"gone", "deep/er/old", "deep/er/older", "high/old", "dev/null", ".wh.gone"} {
		_, err := os.Lstat(filepath.Join(root, gone))
		check.That(t, errors.Is(err, os.ErrNotExist), "%s exists: %v", gone, err)
	}
	to, err := os.Readlink(filepath.Join(root, "soft"))
	check.That(t, to == "/app", "the link points to %q: %v", to, err)
	check.Equal(t, "Mode", must.Get(os.Stat(filepath.Join(root, "sbin/su")))(t).Mode(), 0o755|os.ModeSetuid)
	info, err := os.Stat(c.dir)
	check.That(t, err == nil && info.Mode().Perm() == 0o700, "other users can access the files: %v %v", info.Mode(), err)
	b, err := os.ReadFile(filepath.Join(root, "probe"))
	check.That(t, err == nil && strings.HasPrefix(string(b), "\x7fELF"), "no probe: %v", err)
}

func TestInvalidWorkloadIsRefused(t *testing.T) {
	t.Parallel()
	ok := tarOf(t, file("app", "x"))
	changed := func(change func(*v1.ConfigFile)) v1.Image {
		img := imageOf(t, ok)
		c := got(img.ConfigFile())(t)
		c = c.DeepCopy()
		c.Config.User = ""
		change(c)
		return got(mutate.ConfigFile(img, c))(t)
	}
	good := changed(func(*v1.ConfigFile) {})
	large := bytes.Repeat([]byte(" "), maxJSON+1)
	swapped := bytes.Replace(layoutOf(t, add(t, good)), []byte(`"WorkingDir":"/srv"`), []byte(`"WorkingDir":"/sru"`), 1)
	for why, c := range map[string]struct {
		archive []byte
		w       setting.Workload
		says    string
	}{
		"not an archive":             {[]byte("#!/bin/sh\necho hello\n"), setting.Workload{}, "read the archive"},
		"archive without an image":   {ok, setting.Workload{}, "neither an index.json"},
		"file outside":               {tarOf(t, file("../evil", "x")), setting.Workload{}, "outside of the archive"},
		"link to outside":            {tarOf(t, link(tar.TypeSymlink, "a/b", "../../etc/passwd")), setting.Workload{}, "points outside of the archive"},
		"file through a link":        {tarOf(t, link(tar.TypeSymlink, "blobs", "/etc"), file("blobs/x", "x")), setting.Workload{}, "its link"},
		"duplicate file":             {tarOf(t, file("a", "1"), file("a", "2")), setting.Workload{}, "file exists"},
		"blob with another digest":   {swapped, setting.Workload{}, "has another digest than its name"},
		"oversized index":            {tarOf(t, file("index.json", strings.Repeat(" ", maxJSON+1))), setting.Workload{}, "too large"},
		"link to an oversized index": {tarOf(t, file("x", strings.Repeat(" ", maxJSON+1)), link(tar.TypeLink, "index.json", "x")), setting.Workload{}, "too large"},
		"manifest larger than declared": {layoutOf(t, func(p layout.Path) {
			at := fmt.Sprintf("%x", sha256.Sum256(large))
			blob(t, p, at, large)
			index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"size":2,"digest":"sha256:%s"}]}`, types.OCIManifestSchema1, at)
			must.OK(t, os.WriteFile(filepath.Join(string(p), "index.json"), []byte(index), 0o600))
		}), setting.Workload{}, "too large"},
		"oversized configuration":                {layoutOf(t, add(t, changed(func(c *v1.ConfigFile) { c.Author = string(large) }))), setting.Workload{}, "too large"},
		"oversized configuration of docker save": {tarOf(t, file("manifest.json", `[{"Config":"config","Layers":[]}]`), file("config", string(large))), setting.Workload{}, "too large"},
		"empty manifest.json":                    {tarOf(t, file("manifest.json", "[]")), setting.Workload{}, "manifest.json"},
		"missing layer":                          {tarOf(t, file("manifest.json", `[{"Config":"c.json","Layers":["../../etc/passwd"]}]`), file("c.json", "{}")), setting.Workload{}, "not found"},
		"other architecture":                     {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Architecture = "s390x" })), setting.Workload{}, "this machine is linux/" + runtime.GOARCH},
		"two images":                             {layoutOf(t, func(p layout.Path) { add(t, good)(p); add(t, server(t))(p) }), setting.Workload{}, "it contains 2 images"},
		"image with /probe":                      {dockerOf(t, imageOf(t, tarOf(t, file("./probe", "x")))), setting.Workload{User: "0"}, "it already has a file /probe"},
		"unknown user":                           {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Config.User = "nobody" })), setting.Workload{}, "not in the image's /etc/passwd"},
		"unknown group":                          {dockerOf(t, good), setting.Workload{User: "0:wheel"}, "not in the image's /etc/group"},
		"no command":                             {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Config.Entrypoint, c.Config.Cmd = nil, nil })), setting.Workload{}, "has no command"},
		"NUL byte in the command":                {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Config.Cmd = []string{"/a", "b\x00c"} })), setting.Workload{}, "\"b\\x00c\" has a NUL byte"},
		"NUL byte in a variable":                 {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Config.Env = []string{"A=\x00"} })), setting.Workload{}, "has a NUL byte"},
		"NUL byte in the working folder":         {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Config.WorkingDir = "/\x00" })), setting.Workload{}, "has a NUL byte"},
		"NUL byte in the requested command":      {dockerOf(t, changed(func(*v1.ConfigFile) {})), setting.Workload{HostCommand: []string{"a\x00"}}, "has a NUL byte"},
		"invalid stop signal":                    {dockerOf(t, changed(func(c *v1.ConfigFile) { c.Config.StopSignal = "SIGNONE" })), setting.Workload{}, "stop signal"},
		"truncated layer":                        {dockerOf(t, imageOf(t, ok[:300])), setting.Workload{}, "unexpected EOF"},
		"layer with another digest":              {dockerOf(t, changed(func(c *v1.ConfigFile) { c.RootFS.DiffIDs[0].Hex = strings.Repeat("0", 64) })), setting.Workload{}, "but its configuration has"},
		"unset variable":                         {dockerOf(t, good), setting.Workload{Env: []setting.Variable{"TARE_NO_SUCH"}}, "TARE_NO_SUCH"},
		"missing folder":                         {dockerOf(t, good), setting.Workload{Mounts: []setting.Mount{"/no/such:/x"}}, "/no/such"},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			c.w.Image = inFile(t, c.archive)
			_, err := Make(t.Context(), c.w, t.TempDir(), nil)
			check.That(t, err != nil && strings.Contains(err.Error(), c.says), "%v; want %q", err, c.says)
		})
	}
	_, err := Make(t.Context(), setting.Workload{Image: "nonesuch:1"}, t.TempDir(), []Lender{{"docker", func(context.Context, string, string) error { return ErrNoImage }}})
	check.That(t, err != nil && strings.Contains(err.Error(), "docker: no such image") && strings.Contains(err.Error(), "--pull"),
		"missing image: %v", err)
}

// Several names per number are common (root and toor), and so are duplicate names.
func TestFirstMatchingAccountCounts(t *testing.T) {
	t.Parallel()
	var a accounts
	a.take("passwd", []byte("root:x:0:5::/:\ntoor:x:0:7::/:\nroot:x:1:1::/:\nshort:x:9\n"))
	a.take("group", []byte("web:x:20:\nweb:x:21:\n"))
	for written, want := range map[string][2]uint32{"0": {0, 5}, "root": {0, 5}, "toor": {0, 7}, "9": {9, 0}, "short": {9, 0}, "8": {8, 0}, "0:web": {0, 20}, "": {0, 0}} {
		for range 20 { // map order made the result random
			uid, gid, err := a.find(written)
			must.That(t, err == nil && uid == want[0] && gid == want[1], "%q: got %d:%d, %v, want %v", written, uid, gid, err, want)
		}
	}
}

// A registry may send an endless reply without a length. A repository may be named
// manifests.
func TestOnlyManifestRepliesAreBounded(t *testing.T) {
	for path, bound := range map[string]bool{"/v2/app/manifests/1": true, "/v2/manifests/app/manifests/sha256:0": true, "/v2/k8s/manifests/app/blobs/sha256:0": false} {
		r := httptest.NewRequest(http.MethodGet, "http://registry.invalid"+path, http.NoBody)
		reply := must.Get(smallManifests{answering{}}.RoundTrip(r))(t) //nolint:bodyclose // closed below
		_, is := reply.Body.(*Bounded)
		check.That(t, is == bound, "%s: bounded is %v", path, is)
		reply.Body.Close()
	}
}

// answering is a transport that returns an empty response to every request.
type answering struct{}

func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{Request: r, Body: http.NoBody}, nil
}

func TestOversizedRegistryRepliesAreRefused(t *testing.T) {
	t.Parallel()
	manifest := func(kind types.MediaType, rest string) string {
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,%s}`, kind, rest)
	}
	zero := "sha256:" + strings.Repeat("0", 64)
	config := func(size int) string {
		return manifest(types.OCIManifestSchema1, fmt.Sprintf(`"config":{"mediaType":%q,"size":%d,"digest":%q},"layers":[]`, types.OCIConfigJSON, size, zero))
	}
	index := manifest(types.OCIImageIndex, fmt.Sprintf(`"manifests":[{"mediaType":%q,"size":2,"digest":%q,"platform":{"os":"linux","architecture":%q}}]`, types.OCIManifestSchema1, zero, runtime.GOARCH))
	const endless = ""                                       // stands for an endless answer
	for what, answers := range map[string]map[string]string{ // answers by the suffix of the path
		"manifest":                           {"/manifests/1": endless},
		"redirected manifest":                {"/manifests/1": "/elsewhere", "/elsewhere": endless},
		"manifest of an index":               {"/manifests/1": index, "/manifests/" + zero: endless},
		"configuration":                      {"/manifests/1": config(maxJSON + 1), "/blobs/" + zero: endless},
		"configuration of negative size":     {"/manifests/1": config(-1), "/blobs/" + zero: endless},
		"configuration larger than declared": {"/manifests/1": config(100), "/blobs/" + zero: endless},
	} {
		var sent atomic.Int64
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for path, answer := range answers {
				switch {
				case !strings.HasSuffix(r.URL.Path, path):
				case strings.HasPrefix(answer, "/"):
					http.Redirect(w, r, answer, http.StatusTemporaryRedirect)
				case answer == endless:
					w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
					for some := bytes.Repeat([]byte(" "), 64<<10); sent.Load() < 1<<30; sent.Add(int64(len(some))) {
						if _, err := w.Write(some); err != nil {
							return
						}
					}
				default:
					w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
					if answer == index {
						w.Header().Set("Content-Type", string(types.OCIImageIndex))
					}
					_, _ = io.WriteString(w, answer)
				}
			}
		}))
		_, err := Make(t.Context(), setting.Workload{Image: strings.TrimPrefix(host.URL, "http://") + "/app:1", Pull: true}, t.TempDir(), nil)
		host.Close()
		says := "too large"
		if what == "configuration larger than declared" {
			says = "its configuration"
		}
		// The limit is generous, because socket buffers count as sent.
		check.That(t, err != nil && strings.Contains(err.Error(), says) && sent.Load() <= 64<<20,
			"%s: %d MiB were sent: %v", what, sent.Load()>>20, err)
	}
}

// Names and links of a layer must not leave the folder into which it is unpacked.
func TestLayerCannotWriteOutsideItsFolder(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	for how, layer := range map[string][]byte{
		"parent folders":     tarOf(t, file("../../../../../../../../../../.."+outside+"/x", "x")),
		"through a link":     tarOf(t, link(tar.TypeSymlink, "out", outside), file("out/x", "x")),
		"hard link":          tarOf(t, link(tar.TypeSymlink, "out", outside), link(tar.TypeLink, "x", "out/x")),
		"whiteout":           tarOf(t, link(tar.TypeSymlink, "out", outside), file("out/.wh.kept", "")),
		"opaque folder":      tarOf(t, link(tar.TypeSymlink, "out", outside), file("out/.wh..wh..opq", "")),
		"the folder itself":  tarOf(t, file(".wh...", ""), file(".wh..", "")),
		"link for the probe": tarOf(t, link(tar.TypeSymlink, "data", outside+"/data"), link(tar.TypeSymlink, "tmp", outside)),
	} {
		must.OK(t, os.WriteFile(filepath.Join(outside, "kept"), nil, 0o600))
		dir := t.TempDir()
		path := filepath.Join(dir, "layer.tar")
		must.OK(t, os.WriteFile(path, layer, 0o600))
		_, err := unpack(t.Context(), dir, []string{path}, "/out/a/b")
		left, _ := os.ReadDir(outside)
		check.That(t, len(left) == 1 && left[0].Name() == "kept", "%s: files outside: %v (%v)", how, left, err)
		_ = must.Get(os.Stat(path))(t) // in the folder above
	}
}

// A sparse file is small in an archive, but has its full length on the disk.
func TestOversizedLayerIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "layer.tar")
	must.OK(t, os.WriteFile(path, sparse(t, maxBytes+1), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // long before all bytes could be written
	defer cancel()
	if _, err := unpack(ctx, dir, []string{path}, "/"); err == nil || !strings.Contains(err.Error(), "its files exceed") {
		t.Errorf("%v", err)
	}
}

func TestImageLargerThanTheFreeSpaceIsRefused(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	if err := unix.Mount("tare-test", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("cannot mount a tmpfs: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	archive := filepath.Join(t.TempDir(), "image.tar")
	must.OK(t, os.WriteFile(archive, dockerOf(t, imageOf(t, tarOf(t, file("a", strings.Repeat("x", 1<<20))))), 0o600))
	_, err := Make(t.Context(), setting.Workload{Image: archive}, dir, nil)
	check.Error(t, err, "its files exceed 0 MiB, nine tenths of the free space in "+dir)
}

// docker and runc create the folder, too. Links in its path are resolved within the
// image.
func TestMissingWorkingFolderIsCreated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "layer.tar")
	must.OK(t, os.WriteFile(path, tarOf(t, link(tar.TypeSymlink, "srv", "/var/lib")), 0o600))
	root := must.Get(unpack(t.Context(), dir, []string{path}, "/srv/app"))(t)
	if info, err := os.Lstat(filepath.Join(root, "var", "lib", "app")); err != nil || info.Mode() != fs.ModeDir|0o755 {
		t.Errorf("%v %v", info, err)
	}
}

func TestUnpackingStopsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "layer.tar")
	must.OK(t, os.WriteFile(path, sparse(t, 1<<30), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := unpack(ctx, dir, []string{path}, "/"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// sparse returns a layer with one file that consists of a hole (PAX 1.0).
func sparse(t *testing.T, size int64) []byte {
	t.Helper()
	var b bytes.Buffer
	extended := ""
	for _, r := range []string{"GNU.sparse.major=1", "GNU.sparse.minor=0", "GNU.sparse.name=hole", fmt.Sprintf("GNU.sparse.realsize=%d", size)} {
		n := len(r) + 3
		n = len(fmt.Sprintf("%d %s\n", n, r))
		extended += fmt.Sprintf("%d %s\n", n, r)
	}
	sparseMap := "1\n" + fmt.Sprint(size) + "\n0\n"
	for _, part := range []struct {
		kind    byte
		content string
	}{{'x', extended}, {'0', sparseMap + strings.Repeat("\x00", 512-len(sparseMap))}} {
		one := bytes.Clone(tarOf(t, tar.Header{Name: "hole", Gname: part.content})) // tar.Writer does not support this type
		one[156] = part.kind
		sum := 0
		copy(one[148:156], "        ")
		for _, c := range one[:512] {
			sum += int(c)
		}
		copy(one[148:156], fmt.Sprintf("%06o\x00 ", sum))
		b.Write(one[:len(one)-1024])
	}
	b.Write(make([]byte, 1024))
	return b.Bytes()
}

func TestVariableValueIsNeverPrinted(t *testing.T) {
	t.Parallel()
	v := setting.Variable("TOKEN=secret")
	text, err := v.MarshalJSON()
	for _, s := range []string{string(text), fmt.Sprint(v), fmt.Sprintf("%v %s %q", v, v, []setting.Variable{v}), fmt.Sprint(setting.Variable("=secret").Check())} {
		check.That(t, !strings.Contains(s, "secret") && err == nil, "%s %v", s, err)
	}
}
