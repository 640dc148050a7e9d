package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

func TestTheSameProbeGivesTheSameImage(t *testing.T) {
	a, err := Probe()
	if err != nil {
		t.Fatal(err)
	}
	b, _ := Probe()
	if !bytes.Equal(a.Archive, b.Archive) || a.Ref != b.Ref {
		t.Error("two images of one probe differ")
	}
	if !strings.HasPrefix(a.Ref, Repository+":") || len(a.Ref) != len(Repository)+13 {
		t.Errorf("the image is called %q", a.Ref)
	}
}

func TestAnImageIsBothAnArchiveAndALayout(t *testing.T) {
	i, err := Pause("registry.example/pause:3.9")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(i.Archive)); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name], _ = io.ReadAll(r)
	}
	var saved []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(files["manifest.json"], &saved); err != nil || len(saved) != 1 || len(saved[0].Layers) != 1 || saved[0].RepoTags[0] != i.Ref {
		t.Fatalf("%v %+v", err, saved)
	}
	if digest.FromBytes(files[saved[0].Config]).String() != i.ID || files[saved[0].Layers[0]] == nil {
		t.Error("manifest.json names files that are not there or not what they should be")
	}
	if !bytes.Contains(files["index.json"], []byte(i.Digest)) || files["blobs/sha256/"+i.Digest[7:]] == nil {
		t.Error("index.json does not lead to the manifest")
	}
	var config struct{ Created string }
	if err := json.Unmarshal(files[saved[0].Config], &config); err != nil || config.Created == "" {
		t.Error("the configuration has no time of creation, which engines refuse")
	}
}
