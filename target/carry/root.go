package carry

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/tare-bench/tare/probe"
)

// mostFiles and mostBytes bound a root file system that is carried: it is copied
// for every container that has no image.
const (
	mostFiles = 50_000
	mostBytes = 4 << 30
)

// Root lists the files of a root file system in a folder. Links are followed
// within it, as they would be by whoever has it as its root: a link becomes
// another copy of what it leads to. Devices, sockets and pipes are left out, and
// what leads nowhere.
func Root(dir string) ([]probe.File, error) {
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
	r := &root{dir: dir}
	if err := r.walk("/", 0); err != nil {
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
}

// deepest bounds links to folders that lead around in a circle.
const deepest = 40

// walk takes the folder at a path inside.
func (r *root) walk(at string, depth int) error {
	if depth > deepest {
		return nil
	}
	real, err := securejoin.SecureJoin(r.dir, at)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := r.entry(filepath.Join(at, e.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

func (r *root) entry(at string, depth int) error {
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
		return r.walk(at, depth+1)
	case !info.Mode().IsRegular():
		return nil
	}
	r.bytes += info.Size()
	if len(r.files) == mostFiles || r.bytes > mostBytes {
		return fmt.Errorf("%s has more than %d files or %d GiB", r.dir, mostFiles, mostBytes>>30)
	}
	r.files = append(r.files, probe.File{Path: at, Source: real, Mode: info.Mode().Perm()})
	return nil
}

// Holds tells whether a path is among files.
func Holds(files []probe.File, path string) bool {
	for _, f := range files {
		if clean(f.Path) == clean(path) {
			return true
		}
	}
	return false
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
