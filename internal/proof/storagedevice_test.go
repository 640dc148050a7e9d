//go:build prove

package proof

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/instrument/storage"
)

// In the containers of engines, too, a cache is told from the disk, wherever their
// files are.
func TestACacheIsToldFromADiskInEngines(t *testing.T) {
	docker, podman, containerd := engines.Docker(t), engines.Podman(t), engines.Containerd(t, engines.V1)
	bin := t.TempDir()
	if err := os.Symlink(podman.Command, filepath.Join(bin, "podman")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	tellCaches(t, []string{"docker/runc", "podman/crun", "containerd/runc", "cri+containerd/runc"},
		"--docker-host", docker.Host, "--containerd-address", containerd.Address, "--cri", "containerd=unix://"+containerd.Address)
}

// What goes to the disk for long enough is the device's.
func TestADirectReadOfAFileIsTheDevices(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	text := `version: 1
measure:
  - storage:
      targets: [host, runc]
      volumes: [rootfs, bind]
      cache: [direct]
      jobs: [{name: read, rw: read, bs: 512k, size: 16M, time_based: true, runtime: 1500ms}]
      rounds: 1
      ceiling: 200ms
`
	if err := os.WriteFile(plan, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	recs, judged, _ := tare(folders(t), storage.Judge, "run", plan)
	rec, j := recs[0], judged[0]
	for _, table := range j.Tables {
		for _, c := range table.Cells {
			if c.Verdict != storage.Device {
				t.Errorf("%s on %s, %s: %s: %s", c.Target, table.Volume, table.Cache, c.Verdict, strings.Join(c.Because, "; "))
			}
		}
	}
	if len(rec.Ceilings) != 4 {
		t.Errorf("%d ceilings", len(rec.Ceilings))
	}
}
