package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// TestNoMountIsMissedWhileOthersMount reads the list while it constantly changes. A
// permanent mount must be in every reading.
func TestNoMountIsMissedWhileOthersMount(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	mount := func(name string) string {
		path := filepath.Join(dir, name)
		must.OK(t, os.MkdirAll(path, 0o755))
		check.Error(t, unix.Mount("tare-test", path, "tmpfs", 0, "size=4k"), "")
		return path
	}
	defer func() { _ = RemoveTree(dir) }()
	for i := range 50 { // some pages of lines
		mount(fmt.Sprint("filler", i))
	}
	stays := filepath.Join(dir, "stays")
	mount("stays")
	other := mount("other")
	end, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			default:
			}
			_ = unix.Unmount(other, unix.MNT_DETACH)
			_ = unix.Mount("tare-test", other, "tmpfs", 0, "size=4k")
		}
	}()
	for range 30 {
		check.Equal(t, "number of list", len(must.Get(Below(stays))(t)), 1)
	}
	close(end)
	<-ended
	must.OK(t, RemoveTree(dir))
	_, err := os.Stat(dir)
	check.That(t, err != nil, "it is still there")
}

func TestALinkIsRemovedAndWhatItLeadsToStaysMounted(t *testing.T) {
	need.Root(t)
	dir := t.TempDir()
	theirs, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "link")
	must.OK(t, errors.Join(os.Mkdir(theirs, 0o755), os.Symlink(theirs, link)))
	check.Error(t, unix.Mount("tare-test", theirs, "tmpfs", 0, "size=4k"), "")
	defer func() { _ = unix.Unmount(theirs, unix.MNT_DETACH) }()
	must.OK(t, RemoveTree(link))
	_, err := os.Lstat(link)
	check.That(t, err != nil, "the link is still there")
	check.Equal(t, "mounted", len(must.Get(Below(theirs))(t)), 1)
	// Links in parent folders are followed.
	must.OK(t, os.Symlink(dir, link))
	must.OK(t, RemoveTree(filepath.Join(link, "theirs")))
	_, err = os.Lstat(theirs)
	check.That(t, err != nil, "the folder is still there")
}

func TestBelowTheRootIsEveryMount(t *testing.T) {
	points, err := Below("/")
	check.That(t, err == nil && slices.Contains(points, "/proc"), "%q, %v", points, err)
}
