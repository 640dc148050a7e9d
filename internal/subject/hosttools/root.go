package hosttools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
)

// What a root file system that is carried may have: it is copied for every
// container that has no image. Links to folders count again each time that they
// are followed.
const (
	maxFiles   = 50_000
	maxFolders = 20_000
	maxBytes   = 4 << 30
)

// Root lists the files of a root file system in a folder. Links are followed
// within it, as they would be by whoever has it as its root: a link becomes
// another copy of what it leads to. Devices, sockets and pipes are left out, and
// what leads nowhere or back to a folder that it is in.
func Root(ctx context.Context, dir string) ([]probe.File, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder: unpack an archive first, with tar -xf FILE -C FOLDER", dir)
	}
	r := &root{dir: dir, within: map[place]bool{}}
	if err := r.walk(ctx, "/"); err != nil {
		return nil, err
	}
	if len(r.files) == 0 {
		return nil, fmt.Errorf("there is no file in %s", dir)
	}
	return r.files, nil
}

type root struct {
	dir   string
	files []probe.File
	bytes int64
	// folders is how many were walked, and within those that lead to where the
	// walk is: a link to one of them would be followed for ever.
	folders int
	within  map[place]bool
}

// place is a folder, wherever links to it are.
type place struct{ device, inode uint64 }

// walk takes the folder at a path inside.
func (r *root) walk(ctx context.Context, at string) error {
	real, err := securejoin.SecureJoin(r.dir, at)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Stat(real, &st); err != nil {
		return fmt.Errorf("look at %s: %w", real, os.NewSyscallError("stat", err))
	}
	here := place{st.Dev, st.Ino}
	if r.within[here] {
		return nil
	}
	if r.folders++; r.folders > maxFolders {
		return fmt.Errorf("%s has more than %d folders, with those that links lead to", r.dir, maxFolders)
	}
	r.within[here] = true
	defer delete(r.within, here)
	entries, err := os.ReadDir(real)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.entry(ctx, filepath.Join(at, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (r *root) entry(ctx context.Context, at string) error {
	switch at { // a container has its own
	case "/proc", "/sys", "/dev":
		return nil
	}
	real, err := securejoin.SecureJoin(r.dir, at)
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a link that leads nowhere
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return r.walk(ctx, at)
	case !info.Mode().IsRegular():
		return nil
	}
	r.bytes += info.Size()
	if len(r.files) == maxFiles || r.bytes > maxBytes {
		return fmt.Errorf("%s has more than %d files or %d GiB", r.dir, maxFiles, maxBytes>>30)
	}
	r.files = append(r.files, probe.File{Path: at, Source: real, Mode: info.Mode().Perm()})
	return nil
}

// Holds tells whether a path is among files.
func Holds(files []probe.File, path string) bool {
	return slices.ContainsFunc(files, func(f probe.File) bool { return clean(f.Path) == clean(path) })
}

// Together adds files to others. Where both have the same path from different
// sources, nothing is replaced: that is an error.
func Together(files, more []probe.File) ([]probe.File, error) {
	sources := map[string]string{}
	for _, f := range files {
		sources[clean(f.Path)] = f.Source
	}
	for _, f := range more {
		switch source, there := sources[clean(f.Path)]; {
		case !there:
			files = append(files, f)
			sources[clean(f.Path)] = f.Source
		case source != f.Source:
			return nil, fmt.Errorf("%s is there already, from %s", f.Path, source)
		}
	}
	return files, nil
}

func clean(path string) string { return filepath.Clean("/" + strings.TrimPrefix(path, "/")) }
