package cargo

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
)

// Whiteouts of the OCI image specification, which remove files of lower layers.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// unpacking is the state of unpacking an image.
type unpacking struct {
	ctx  context.Context
	root *os.Root
	mine map[string]bool // files of this layer, which its whiteouts do not touch
	room room
}

// cancellable is a reader that ends with its context. A small archive can have a huge
// sparse file.
type cancellable struct {
	io.Reader
	ctx context.Context
}

func (c cancellable) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.Reader.Read(b)
}

// unpack unpacks the layers in order into a new folder. The kernel resolves names and links
// below it, whatever the archive has. Like docker and runc, unpack creates the working
// folder if no layer has it.
func unpack(ctx context.Context, dir string, layers []string, work string) (string, error) {
	at := filepath.Join(dir, "root")
	if err := os.Mkdir(at, 0o755); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return "", err
	}
	defer root.Close()
	u := &unpacking{ctx: ctx, root: root, room: roomIn(dir)}
	for i, file := range layers {
		if err := u.layer(file); err != nil {
			return "", fmt.Errorf("unpack layer %d of the workload's image: %w", i+1, err)
		}
	}
	for _, dir := range probe.Folders {
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	work, err = securejoin.SecureJoin(at, work)
	if err == nil {
		err = os.MkdirAll(work, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("create the working folder: %w", err)
	}
	return at, os.Chmod(at, 0o755)
}

func (u *unpacking) layer(file string) error {
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	u.mine = map[string]bool{}
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := u.ctx.Err(); err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name == "" {
			continue
		}
		if err := u.place(name, h, r); err != nil {
			return fmt.Errorf("%.200q: %w", h.Name, err)
		}
	}
}

// place writes one file to the root. It skips devices, pipes and other special files, which
// the container's runtime creates.
func (u *unpacking) place(name string, h *tar.Header, in io.Reader) error {
	root, mine := u.root, u.mine
	dir, base := path.Split(name)
	dir = path.Clean(dir)
	if base == opaque {
		return clear(root, dir, mine)
	}
	if gone, is := strings.CutPrefix(base, whiteout); is {
		if gone == "" || gone == "." || gone == ".." || mine[path.Join(dir, gone)] {
			return nil
		}
		return root.RemoveAll(path.Join(dir, gone))
	}
	for p := name; p != "."; p = path.Dir(p) {
		mine[p] = true
	}
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	was, err := root.Lstat(name)
	if err == nil && !(was.IsDir() && h.Typeflag == tar.TypeDir) {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case tar.TypeReg:
		return u.regular(name, h, in)
	case tar.TypeLink:
		return root.Link(strings.TrimPrefix(path.Clean("/"+h.Linkname), "/"), name)
	case tar.TypeSymlink:
		if err := root.Symlink(h.Linkname, name); err != nil {
			return err
		}
		return root.Lchown(name, h.Uid, h.Gid)
	default:
		return nil
	}
	return errors.Join(root.Chown(name, h.Uid, h.Gid), root.Chmod(name, h.FileInfo().Mode()))
}

// clear removes the files of lower layers in a folder.
func clear(root *os.Root, dir string, mine map[string]bool) error {
	d, err := root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, n := range names {
		if !mine[path.Join(dir, n)] {
			err = errors.Join(err, root.RemoveAll(path.Join(dir, n)))
		}
	}
	return err
}

// regular writes a regular file with its capabilities (setcap).
func (u *unpacking) regular(name string, h *tar.Header, in io.Reader) error {
	if err := u.room.take(h.Size); err != nil {
		return err
	}
	out, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, cancellable{in, u.ctx})
	err = errors.Join(err, out.Chown(h.Uid, h.Gid), out.Chmod(h.FileInfo().Mode()))
	if caps := h.PAXRecords["SCHILY.xattr.security.capability"]; caps != "" && err == nil {
		err = unix.Fsetxattr(int(out.Fd()), "security.capability", []byte(caps), 0)
	}
	return errors.Join(err, out.Close())
}
