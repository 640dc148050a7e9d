package cargo

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/containerd/containerd/v2/pkg/archive"

	"github.com/tare-bench/tare/internal/probe"
)

// unpack lays the layers over each other in a new folder, as containerd does: what is
// written goes below it, whatever names and links an archive has.
func unpack(ctx context.Context, dir string, layers []string) (string, error) {
	at := filepath.Join(dir, "root")
	if err := os.Mkdir(at, 0o755); err != nil {
		return "", err
	}
	taken := archive.WithFilter(files(maxBytes))
	for i, file := range layers {
		if err := lay(ctx, at, file, taken); err != nil {
			return "", fmt.Errorf("unpack layer %d of the workload's image: %w", i+1, err)
		}
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return "", err
	}
	defer root.Close()
	for _, dir := range probe.Folders {
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	return at, os.Chmod(at, 0o755)
}

func lay(ctx context.Context, at, file string, taken archive.ApplyOpt) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = archive.Apply(ctx, at, in, taken)
	return err
}

// files takes as many bytes of files and links. Devices, pipes and what else is no file are
// left out: whoever makes a container makes those. What a file may do beyond its owner
// (setcap) stays with it, and no other attribute.
func files(left int64) archive.Filter {
	return func(h *tar.Header) (bool, error) {
		maps.DeleteFunc(h.PAXRecords, func(key, _ string) bool { return key != "SCHILY.xattr.security.capability" })
		switch h.Typeflag {
		case tar.TypeReg:
			if left -= h.Size; left < 0 {
				return false, fmt.Errorf("its layers hold more than %d GiB", maxBytes>>30)
			}
			return true, nil
		case tar.TypeDir, tar.TypeLink, tar.TypeSymlink:
			return true, nil
		}
		return false, nil
	}
}
