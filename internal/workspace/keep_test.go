package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/untouched"
)

func TestWhatARunKeptIsReadOnceItIsDead(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cgroups need root")
	}
	untouched.Alone(t)
	dir := t.TempDir()
	roots := Roots{Data: filepath.Join(dir, "data"), State: filepath.Join(dir, "state")}
	r, err := New(roots)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Keep("engines.json", []byte("[]")); err != nil {
		t.Fatal(err)
	}
	own, theirs := t.TempDir(), t.TempDir()
	if err := os.Chmod(theirs, 0o777); err != nil {
		t.Fatal(err)
	}
	if at, err := r.Elsewhere(theirs); err == nil || at != "" {
		t.Errorf("a folder that others can write is used: %s", at)
	}
	for _, below := range []string{own, dir} {
		at, err := r.Elsewhere(below)
		if err == nil {
			err = os.WriteFile(filepath.Join(at, "f"), nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range r.marks { // as if killed
		_ = m.Close()
	}
	left, _, err := Leftovers(roots)
	if len(left) == 1 && (len(left[0].Folders) != 4 || left[0].Folders[2] != filepath.Join(own, "tare-"+r.ID)) {
		t.Errorf("folders %v", left[0].Folders)
	}
	if err != nil || len(left) != 1 {
		t.Fatalf("%v %v", left, err)
	}
	if b, err := left[0].Kept("engines.json"); string(b) != "[]" || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if b, err := left[0].Kept("other.json"); b != nil || err != nil {
		t.Errorf("%q %v", b, err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(r.dataDir(), "link")); err != nil {
		t.Fatal(err)
	}
	if b, err := left[0].Kept("link"); b != nil || err == nil {
		t.Error("a link was followed")
	}
	if err := left[0].Remove(); err != nil {
		t.Fatal(err)
	}
	if b, _ := left[0].Kept("engines.json"); b != nil {
		t.Error("what was removed is still read")
	}
	for _, below := range []string{own, dir} {
		if all, _ := filepath.Glob(filepath.Join(below, "tare-*")); len(all) > 0 {
			t.Errorf("left: %v", all)
		}
	}
}
