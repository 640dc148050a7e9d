package engine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
)

func volumes(t *testing.T, dir string) *Volumes {
	t.Helper()
	v, err := OpenVolumes(subject.Env{Lanes: 2, Workload: subject.Workload{Volume: dir}})
	must.OK(t, err)
	return v
}

func TestEachLaneHasAFolderThatAnybodyMayWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	first, second := volumes(t, dir), volumes(t, dir)
	for n, name := range []string{"0", "1"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o777 || first.Folder(n) != filepath.Join(dir, name) {
			t.Errorf("%v, %v, %s", info, err, first.Folder(n))
		}
	}
	must.OK(t, os.WriteFile(filepath.Join(dir, "0", "file"), nil, 0o600))
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "0", "file")); err != nil {
		t.Errorf("a folder that another session uses is gone: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestNobodyElseReachesTheFolderOfALane(t *testing.T) {
	dir := t.TempDir() // others may pass through it
	defer volumes(t, dir).Close()
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestAFolderThatWasThereStays(t *testing.T) {
	dir := t.TempDir()
	must.OK(t, os.Mkdir(filepath.Join(dir, "1"), 0o700))
	if err := volumes(t, dir).Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "1" {
		t.Errorf("left: %v", left)
	}
}

func TestAVolumeThatCannotBeMountedIsRefused(t *testing.T) {
	dir := t.TempDir()
	linked := filepath.Join(dir, "linked")
	must.OK(t, os.Mkdir(linked, 0o700))
	must.OK(t, os.Symlink("/etc", filepath.Join(linked, "0")))
	for _, volume := range []string{"relative", filepath.Join(dir, "a:b"), filepath.Join(dir, "a,b"), linked} {
		if _, err := OpenVolumes(subject.Env{Lanes: 1, Workload: subject.Workload{Volume: volume}}); err == nil {
			t.Errorf("%s: no error", volume)
		}
	}
	if v, err := OpenVolumes(subject.Env{Lanes: 1}); v != nil || err != nil || v.Folder(0) != "" || v.Close() != nil {
		t.Errorf("no volume: %v, %v", v, err)
	}
}
