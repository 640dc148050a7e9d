package cargo

import (
	"archive/tar"
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// Limits of an archive. A larger one is rejected, since it could fill the disk or keep tare
// busy forever.
const (
	maxBytes    = 32 << 30 // of an archive, and of all its layers unpacked; see room
	maxMembers  = 1 << 20  // of an archive, and of all its layers
	maxJSON     = 4 << 20  // of a manifest, an index or a configuration
	maxLayers   = 512
	maxNesting  = 4 // nesting depth of indexes
	maxZstdSize = 128 << 20
)

// platform is the platform of containers on this machine.
var platform = v1.Platform{OS: "linux", Architecture: runtime.GOARCH}

// room is the number of bytes that may be written to a folder, until ctx ends.
type room struct {
	ctx  context.Context
	left int64
	err  error // error if the room is exceeded
}

// roomIn returns the room for one unpacking: nine tenths of the free space, at most maxBytes.
func roomIn(ctx context.Context, dir string) room {
	left, most := int64(maxBytes), "the limit"
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) == nil {
		if free := int64(st.Bavail) * st.Bsize / 10 * 9; free < left {
			left, most = free, "nine tenths of the free space in "+dir+"; free space, or set TARE_DATA_DIR to a larger disk"
		}
	}
	return room{ctx, left, fmt.Errorf("its files exceed %d MiB, %s", left>>20, most)}
}

func (r *room) take(n int64) error {
	if r.left -= n; r.left < 0 {
		return r.err
	}
	return nil
}

// Write takes the room of b.
func (r *room) Write(b []byte) (int, error) {
	return len(b), cmp.Or(r.take(int64(len(b))), r.ctx.Err())
}

// walk calls each for every file of a tar, until ctx ends.
func walk(ctx context.Context, in io.Reader, each func(h *tar.Header, content io.Reader) error) error {
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = cmp.Or(err, ctx.Err()); err == nil {
			err = each(h, r)
		}
		if err != nil {
			return err
		}
	}
}

// open opens the image in an archive: an OCI layout or the output of `docker save`,
// plain or compressed. It unpacks the needed files into the folder.
func open(ctx context.Context, file, dir string) (v1.Image, error) {
	in, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	plain, err := decompressed(in)
	if err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	defer plain.Close()
	blobs := filepath.Join(dir, "archive")
	if err := os.Mkdir(blobs, 0o700); err != nil {
		return nil, err
	}
	if err := spread(ctx, plain, blobs); err != nil {
		return nil, fmt.Errorf("read the archive: %w", err)
	}
	root, err := os.OpenRoot(blobs)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if _, err := root.Stat("index.json"); err == nil {
		if err := small(root, "index.json"); err != nil {
			return nil, err
		}
		index, err := layout.ImageIndexFromPath(blobs)
		if err != nil {
			return nil, fmt.Errorf("its index.json: %w", err)
		}
		return choose(root, index, 0)
	}
	if _, err := root.Stat("manifest.json"); err != nil {
		return nil, errors.New("it has neither an index.json (OCI layout) nor a manifest.json (docker save)")
	}
	// The library reads by name from one tar, so pack the extracted files again.
	opener := func() (io.ReadCloser, error) { return retar(blobs), nil }
	if err := smallConfigs(root, opener); err != nil {
		return nil, err
	}
	img, err := tarball.Image(opener, nil)
	if err != nil {
		return nil, fmt.Errorf("its manifest.json: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("its configuration: %w", err)
	}
	return img, fits(config)
}

// small rejects a file of the archive that is too large, since the libraries read it into
// memory. The libraries report missing files.
func small(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err == nil && info.Size() > maxJSON {
		return fmt.Errorf("its %.200q of %d bytes is too large", name, info.Size())
	}
	return nil
}

func smallBlob(root *os.Root, h v1.Hash) error {
	return small(root, path.Join("blobs", h.Algorithm, h.Hex))
}

// smallConfigs checks the configurations named in the manifest.json of docker save.
func smallConfigs(root *os.Root, opener tarball.Opener) error {
	if err := small(root, "manifest.json"); err != nil {
		return err
	}
	manifest, err := tarball.LoadManifest(opener)
	if err != nil {
		return fmt.Errorf("its manifest.json: %w", err)
	}
	for _, d := range manifest {
		if err := small(root, d.Config); err != nil {
			return err
		}
	}
	return nil
}

func fits(config *v1.ConfigFile) error {
	if config.OS != "" && config.OS != platform.OS || config.Architecture != "" && config.Architecture != platform.Architecture {
		return fmt.Errorf("the image is for %.40q, but this machine is %s", config.OS+"/"+config.Architecture, platform)
	}
	return nil
}

// decompressed returns a reader that decompresses gzip and zstd.
func decompressed(in io.Reader) (io.ReadCloser, error) {
	b := bufio.NewReaderSize(in, 64<<10)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case len(magic) >= 2 && magic[0] == 0x1f && magic[1] == 0x8b:
		return gzip.NewReader(b)
	case string(magic) == "\x28\xb5\x2f\xfd":
		z, err := zstd.NewReader(b, zstd.WithDecoderMaxMemory(maxZstdSize), zstd.WithDecoderMaxWindow(maxZstdSize), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	}
	return io.NopCloser(b), nil
}

// spread writes the regular files of an archive below a folder. A blob must match its
// digest. Links become copies of their targets, which must exist.
func spread(ctx context.Context, in io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	room, n := roomIn(ctx, dir), 0
	return walk(ctx, in, func(h *tar.Header, content io.Reader) error {
		if n++; n > maxMembers {
			return fmt.Errorf("more than %d files", maxMembers)
		}
		name := path.Clean(h.Name)
		if !filepath.IsLocal(name) {
			return fmt.Errorf("its file %.200q is outside of the archive", h.Name)
		}
		switch h.Typeflag {
		case tar.TypeReg:
			if err := room.take(h.Size); err != nil {
				return err
			}
			return member(root, name, content, h.Size)
		case tar.TypeSymlink, tar.TypeLink:
			// docker save wrote a layer that equals an earlier one as a link.
			to := path.Clean(h.Linkname)
			if h.Typeflag == tar.TypeSymlink {
				to = path.Join(path.Dir(name), h.Linkname) //nolint:gosec // G305: what leads out is refused below, and the kernel follows it from the root only
			}
			if !filepath.IsLocal(to) {
				return fmt.Errorf("its link %.200q points outside of the archive", h.Name)
			}
			if err := parents(root, name); err != nil {
				return err
			}
			if err := root.Link(to, name); err != nil {
				return fmt.Errorf("its link %.200q: %w", h.Name, err)
			}
		}
		return nil
	})
}

func parents(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return fmt.Errorf("its file %.200q: %w", name, err)
	}
	return nil
}

func member(root *os.Root, name string, in io.Reader, size int64) error {
	if strings.HasSuffix(name, ".json") && size > maxJSON {
		return fmt.Errorf("its %.200q of %d bytes is too large", name, size)
	}
	if err := parents(root, name); err != nil {
		return err
	}
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("its file %.200q: %w", name, err)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), in)
	if err = errors.Join(err, out.Close()); err != nil {
		return fmt.Errorf("its file %.200q: %w", name, err)
	}
	if is := hex.EncodeToString(sum.Sum(nil)); strings.HasPrefix(name, "blobs/sha256/") && path.Base(name) != is {
		return fmt.Errorf("its blob %.200q has another digest than its name: sha256:%s", name, is)
	}
	return nil
}

// retar returns the folder's files as a tar.
func retar(dir string) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		t := tar.NewWriter(w)
		err := t.AddFS(os.DirFS(dir))
		_ = w.CloseWithError(errors.Join(err, t.Close()))
	}()
	return r
}

// choose returns the image of an index for this machine.
func choose(root *os.Root, index v1.ImageIndex, depth int) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("its index: %w", err)
	}
	if depth > maxNesting {
		return nil, errors.New("its indexes are nested too deeply")
	}
	var other []string
	var found []v1.Image
	for _, d := range manifest.Manifests {
		if d.Platform != nil && d.Platform.OS != "" && !(d.Platform.OS == platform.OS && d.Platform.Architecture == platform.Architecture) {
			other = append(other, fmt.Sprintf("%.40q", d.Platform.String()))
			continue
		}
		img, err := one(root, index, d, depth)
		if err != nil {
			return nil, err
		}
		if img != nil {
			found = append(found, img)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("it contains %d images for %s: save only one of them", len(found), platform)
	case len(other) > 0:
		return nil, fmt.Errorf("it contains no image for %s, only for %s", platform, strings.Join(other, ", "))
	}
	return nil, errors.New("it contains no image")
}

// one returns the image of an entry of an index, or nil for something else, such as an
// attestation.
func one(root *os.Root, index v1.ImageIndex, d v1.Descriptor, depth int) (v1.Image, error) {
	if err := smallBlob(root, d.Digest); err != nil {
		return nil, err
	}
	switch {
	case d.MediaType.IsIndex():
		next, err := index.ImageIndex(d.Digest)
		if err != nil {
			return nil, fmt.Errorf("its index %s: %w", d.Digest, err)
		}
		return choose(root, next, depth+1)
	case d.MediaType.IsImage():
		img, err := index.Image(d.Digest)
		if err != nil {
			return nil, fmt.Errorf("its manifest %s: %w", d.Digest, err)
		}
		if manifest, err := img.Manifest(); err == nil {
			if err := smallBlob(root, manifest.Config.Digest); err != nil {
				return nil, err
			}
		}
		config, err := img.ConfigFile()
		if err != nil {
			return nil, fmt.Errorf("its configuration: %w", err)
		}
		if d.Platform == nil {
			err = fits(config)
		}
		return img, err
	}
	return nil, nil
}
