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
	"slices"
	"strings"

	"github.com/containerd/containerd/v2/pkg/archive"
	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/tare-bench/tare/internal/probe"
)

// unpack unpacks the layers in order into a new folder. Names and links are resolved below
// it, whatever the archive has. Like docker and runc, unpack creates the working folder if no
// layer has it.
func unpack(ctx context.Context, dir string, layers []string, work string) (string, error) {
	at := filepath.Join(dir, "root")
	if err := os.Mkdir(at, 0o755); err != nil {
		return "", err
	}
	room := roomIn(ctx, dir)
	for i, file := range layers {
		if err := apply(ctx, at, file, &room); err != nil {
			return "", fmt.Errorf("unpack layer %d of the workload's image: %w", i+1, err)
		}
	}
	for _, dir := range probe.Folders {
		if err := os.Mkdir(filepath.Join(at, dir), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	work, err := securejoin.SecureJoin(at, work)
	if err == nil {
		err = os.MkdirAll(work, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("create the working folder: %w", err)
	}
	return at, os.Chmod(at, 0o755)
}

// Whiteouts of the OCI image specification, which remove files of lower layers.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// capabilities is the one extended attribute that is unpacked (setcap).
const capabilities = "SCHILY.xattr.security.capability"

// apply unpacks a layer over those below. It skips devices, pipes and other special files, which
// the container's runtime creates.
func apply(ctx context.Context, at, layer string, room *room) error {
	in, err := os.Open(layer)
	if err != nil {
		return err
	}
	defer in.Close()
	mine := map[string]bool{} // files of this layer, which its whiteouts do not touch
	_, err = archive.Apply(ctx, at, in, archive.WithFilter(func(h *tar.Header) (bool, error) {
		maps.DeleteFunc(h.PAXRecords, func(key, _ string) bool { return key != capabilities })
		return slices.Contains([]byte{tar.TypeDir, tar.TypeReg, tar.TypeLink, tar.TypeSymlink}, h.Typeflag), room.take(h.Size)
	}), archive.WithConvertWhiteout(func(_ *tar.Header, file string) (isFile bool, err error) {
		dir, base := filepath.Split(file)
		gone, is := strings.CutPrefix(base, whiteout)
		switch {
		case !is:
			for p := file; p != at; p = filepath.Dir(p) {
				mine[p] = true
			}
			return true, nil
		case base == opaque:
			err = clear(dir, mine)
		case !mine[dir+gone]:
			err = os.RemoveAll(dir + gone)
		}
		return false, err
	}))
	return err
}

// clear removes the files of lower layers in a folder.
func clear(dir string, mine map[string]bool) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if p := filepath.Join(dir, e.Name()); !mine[p] {
			err = errors.Join(err, os.RemoveAll(p))
		}
	}
	return err
}
