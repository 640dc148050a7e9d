package containerd

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAVolumeRemovesOnlyWhatItMade(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := MakeVolume(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	for n, mode := range []os.FileMode{0o777, 0o700, 0o777} {
		if info, err := os.Stat(v.Of(n)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%v, %v", info, err)
		}
	}
	if err := v.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "1" {
		t.Errorf("%v", left)
	}
}

func TestAFileInPlaceOfALanesFolderIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := MakeVolume(dir, 2)
	if err == nil {
		t.Error("no error")
	}
	if err := v.Remove(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("%v", left)
	}
}
