package hosttools

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/must"
)

// tree makes files, and links where there is an arrow.
func tree(t *testing.T, entries ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, e := range entries {
		name, to, link := strings.Cut(e, " -> ")
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if link {
			err = errors.Join(err, os.Symlink(to, path))
		} else {
			err = errors.Join(err, os.WriteFile(path, []byte("x"), 0o600))
		}
		must.OK(t, err)
	}
	return dir
}

func paths(files []probe.File) []string {
	var all []string
	for _, f := range files {
		all = append(all, f.Path)
	}
	return all
}

// rooted is Root in bounded time.
func rooted(t *testing.T, dir string) ([]probe.File, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return Root(ctx, dir)
}

func TestLinksWithinARootAreFollowedOnceAround(t *testing.T) {
	for name, test := range map[string]struct{ entries, want []string }{
		"to a file":                   {[]string{"bin/a", "bin/b -> a"}, []string{"/bin/a", "/bin/b"}},
		"to a folder":                 {[]string{"usr/bin/a", "bin -> usr/bin"}, []string{"/bin/a", "/usr/bin/a"}},
		"to the folder it is in":      {[]string{"bin/a", "bin/X11 -> ."}, []string{"/bin/a"}},
		"to the root":                 {[]string{"bin/a", "bin/all -> /"}, []string{"/bin/a"}},
		"between two folders":         {[]string{"a/x", "a/b -> ../b", "b/y", "b/a -> ../a"}, []string{"/a/b/y", "/a/x", "/b/a/x", "/b/y"}},
		"to nowhere":                  {[]string{"a", "b -> none"}, []string{"/a"}},
		"to itself":                   {[]string{"a", "b/c -> ../b"}, []string{"/a"}},
		"out of it, which stays in":   {[]string{"a", "b -> ../../../../a"}, []string{"/a", "/b"}},
		"a folder of the container's": {[]string{"a", "proc/x", "dev/y"}, []string{"/a"}},
	} {
		files, err := rooted(t, tree(t, test.entries...))
		if got := paths(files); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, %v; want %v", name, got, err, test.want)
		}
	}
}

// Each of ten folders leads to the nine others: the ways through them are
// millions, and no file counts them.
func TestLinksThatLeadEverywhereAreNotFollowedForEver(t *testing.T) {
	entries := []string{"file"}
	names := strings.Split("abcdefghij", "")
	for _, from := range names {
		for _, to := range names {
			entries = append(entries, from+"/"+to+" -> ../"+to)
		}
	}
	r := &root{dir: tree(t, entries...), within: map[place]bool{}, folders: maxFolders - 1000}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := r.walk(ctx, "/"); err == nil || !strings.Contains(err.Error(), "folders, with those that links lead to") {
		t.Errorf("got %v", err)
	}
}

func TestAWalkThroughARootCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if files, err := Root(ctx, tree(t, "a")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", files, err)
	}
}
