package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func archive(t *testing.T, i *Image) []byte {
	t.Helper()
	r := must.Get(i.Open())(t)
	defer r.Close()
	return must.Get(io.ReadAll(r))(t)
}

func TestProbeImageIsReproducible(t *testing.T) {
	a := must.Get(Probe())(t)
	b, _ := Probe()
	check.That(t, bytes.Equal(archive(t, a), archive(t, b)) && a.Ref == b.Ref, "two images of the same probe differ")
	check.That(t, strings.HasPrefix(a.Ref, Repository+":") && len(a.Ref) == len(Repository)+13, "image name %q", a.Ref)
}

func TestImageNameIsUniquePerRun(t *testing.T) {
	i := must.Get(Probe())(t)
	one, other := i.Of("abcdefgh"), i.Of("abcdefgi")
	check.That(t, one.Ref == i.Ref+"-abcdefgh" && one.ID == i.ID && one.Digest == i.Digest && i.Of("abcdefgh").Ref == one.Ref,
		"%+v of %+v", one, i)
	text := archive(t, one)
	check.Equal(t, "occurrences of the name in the archive", bytes.Count(text, []byte(one.Ref)), 3) // once in manifest.json and twice in index.json
	check.That(t, bytes.Equal(archive(t, other), bytes.ReplaceAll(text, []byte(one.Ref), []byte(other.Ref))),
		"images of two runs differ in more than the name")
}

func TestArchiveIsAlsoAnImageLayout(t *testing.T) {
	i := must.Get(Pause("registry.example/pause:3.9"))(t)
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive(t, i))); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		must.OK(t, err)
		files[h.Name], _ = io.ReadAll(r)
	}
	var saved []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	err := json.Unmarshal(files["manifest.json"], &saved)
	must.That(t, err == nil && len(saved) == 1 && len(saved[0].Layers) == 1 && saved[0].RepoTags[0] == i.Ref, "%v %+v", err, saved)
	check.That(t, digest.FromBytes(files[saved[0].Config]).String() == i.ID && files[saved[0].Layers[0]] != nil,
		"manifest.json refers to missing or wrong files")
	check.That(t, bytes.Contains(files["index.json"], []byte(i.Digest)) && files["blobs/sha256/"+i.Digest[7:]] != nil,
		"index.json does not refer to the manifest")
	var config struct{ Created string }
	err = json.Unmarshal(files[saved[0].Config], &config)
	check.That(t, err == nil && config.Created != "", "the configuration has no creation time, which engines require")
}

func TestSavedImageIsReadableByItsOwnerOnly(t *testing.T) {
	i := must.Get(Probe())(t)
	path := filepath.Join(t.TempDir(), "image.tar")
	must.OK(t, i.Save(path))
	info, err := os.Stat(path)
	check.That(t, err == nil && info.Mode().Perm() == 0o600, "%v %v", info.Mode(), err)
}
