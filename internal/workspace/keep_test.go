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
	for _, m := range r.marks { // as if killed
		_ = m.Close()
	}
	left, _, err := Leftovers(roots)
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
}
