package cli

import (
	"archive/tar"
	"bytes"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// imageOfUser returns an archive of an image with a non-root user. No layer has entries
// for the parent folders of the program, or for the working folder.
func imageOfUser(t *testing.T) string {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	must.OK(t, image.WriteFile(w, "opt/app/run", 0o755, probe.Program(), time.Unix(0, 0)))
	must.OK(t, w.Close())
	img := must.Get(mutate.AppendLayers(empty.Image, static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer)))(t)
	file := must.Get(img.ConfigFile())(t)
	file.OS, file.Architecture = "linux", runtime.GOARCH
	file.Config = v1.Config{User: "1000:1000", WorkingDir: "/srv/app", Cmd: []string{"/opt/app/run", "pause"}}
	img = must.Get(mutate.ConfigFile(img, file))(t)
	path := filepath.Join(t.TempDir(), "user.tar")
	must.OK(t, tarball.WriteToFile(path, must.Get(name.NewTag("example.com/user:1"))(t), img))
	return path
}

func TestImageWithUserRunsUnderAnyUmask(t *testing.T) {
	needRunc(t)
	archive := imageOfUser(t)
	targets := []string{"floor", "runc"}
	if _, err := exec.LookPath("crun"); err == nil {
		targets = append(targets, "crun")
	}
	for _, mask := range []int{0o077, 0o027, 0} {
		place(t)
		was := unix.Umask(mask)
		ends(t, ExitDone, "", append([]string{"lifecycle", "--image", archive, "--rounds", "1", "--warmup", "0", "-o", "r.jsonl"}, targets...)...)
		unix.Umask(was)
		for _, target := range targets {
			n, failures := times(t, "r.jsonl", target)
			if n == 0 || len(failures) > 0 {
				t.Errorf("umask %o: %s: %d operations, failures %v", mask, target, n, failures)
			}
		}
		check.Equal(t, "its folder", loaded(t).Header.Workload.Dir, "/srv/app")
	}
}
