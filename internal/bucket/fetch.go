package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/record"
)

// Limits of a download. A larger folder is rejected instead of truncated, because a partial
// history looks complete.
const (
	maxRecords = 10_000
	maxKeys    = 100_000 // listed keys
	maxObject  = 4 << 30 // bytes
	maxBytes   = 64 << 30
	atOnce     = 16
)

// sumKey is the user metadata of an object with the SHA-256 (hex) of a file that tare
// wrote. ETags are checksums only for some objects of some stores.
const sumKey = "Sha256"

// Fetched is the result of a download.
type Fetched struct {
	Path    string // the object's file, or the folder
	Records int
	Bytes   int64
	Left    []string // keys that are not valid file names
}

// Fetch downloads an object, or all records of a folder, below dir. They keep their names.
func (c *Client) Fetch(ctx context.Context, from URL, dir string) (*Fetched, error) {
	out := &Fetched{Path: filepath.Join(dir, from.name())}
	objects := []minio.ObjectInfo{{Key: from.Key, Size: -1}}
	into := dir
	if from.IsFolder() {
		var err error
		if objects, err = c.list(ctx, from.folder()); err != nil {
			return nil, err
		}
		into = out.Path
	}
	if err := os.MkdirAll(into, 0o700); err != nil {
		return nil, fmt.Errorf("create a folder for downloads: %w; set $TMPDIR to use another", err)
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // its files were closed
	several, ctx := errgroup.WithContext(ctx)
	several.SetLimit(atOnce)
	var mu sync.Mutex
	for _, o := range objects {
		several.Go(func() error {
			n, err := c.fetch(ctx, root, strings.TrimPrefix(o.Key, from.folder().Key), URL{from.Bucket, o.Key}, o)
			mu.Lock()
			defer mu.Unlock()
			if errors.Is(err, errNoName) {
				out.Left = append(out.Left, o.Key)
				return nil
			}
			out.Records, out.Bytes = out.Records+1, out.Bytes+n
			return err
		})
	}
	err = several.Wait()
	slices.Sort(out.Left)
	return out, err
}

// list returns the records of a folder.
func (c *Client) list(ctx context.Context, folder URL) (out []minio.ObjectInfo, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // stops the listing
	seen, bytes := 0, int64(0)
	for o := range c.store.Client.ListObjects(ctx, folder.Bucket, minio.ListObjectsOptions{Prefix: folder.Key, Recursive: true}) {
		if o.Err != nil {
			return nil, c.explain(o.Err, "list", folder)
		}
		if seen++; seen > maxKeys {
			return nil, fmt.Errorf("%s: more than %d objects; name a subfolder", folder, maxKeys)
		}
		if !strings.HasPrefix(o.Key, folder.Key) || !record.IsName(o.Key) {
			continue
		}
		out = append(out, o)
		if bytes += max(0, o.Size); len(out) > maxRecords || bytes > maxBytes {
			return nil, fmt.Errorf("%s: more than %d records or %d GiB; name a subfolder", folder, maxRecords, maxBytes>>30)
		}
	}
	if out == nil {
		return nil, fmt.Errorf("%s: no records: they end in .jsonl or .jsonl.zst", folder)
	}
	return out, ctx.Err()
}

var errNoName = errors.New("not a valid file name")

// fetch downloads one object to a file with its name.
func (c *Client) fetch(ctx context.Context, root *os.Root, name string, from URL, o minio.ObjectInfo) (int64, error) {
	file, err := create(root, name)
	if err != nil {
		return 0, err
	}
	n, err := c.read(ctx, file, from, o)
	return n, errors.Join(err, file.Close())
}

func create(root *os.Root, name string) (*os.File, error) {
	if !filepath.IsLocal(name) || path.Clean(name) != name || strings.ContainsFunc(name, unicode.IsControl) {
		return nil, errNoName
	}
	err := root.MkdirAll(path.Dir(name), 0o700)
	var file *os.File
	if err == nil {
		file, err = root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENAMETOOLONG) { // a and a/b cannot both be files
		return nil, errNoName
	}
	return file, err
}

// Limits on retries of one object.
const (
	tries = 5 // without progress
	pause = 100 * time.Millisecond
)

// read downloads an object and resumes after a broken connection.
func (c *Client) read(ctx context.Context, to io.Writer, from URL, o minio.ObjectInfo) (at int64, err error) {
	sum, want := sha256.New(), ""
	for failed := 0; ; {
		n, err := c.rest(ctx, to, sum, from, &o, at, &want)
		if at += n; n > 0 {
			failed = 0
		}
		failed++
		var cut *cutError
		switch {
		case err == nil && want != "" && want != hex.EncodeToString(sum.Sum(nil)):
			return at, fmt.Errorf("read %s: SHA-256 mismatch; the object is damaged or was changed", from)
		case err == nil || !errors.As(err, &cut):
			return at, err
		case failed == tries:
			return at, c.explain(cut.error, "read", from)
		}
		select {
		case <-ctx.Done():
			return at, ctx.Err()
		case <-time.After(pause << failed):
		}
	}
}

// cutError means that the connection broke during an object.
type cutError struct{ error }

// rest downloads an object from offset at. If the object was listed or partly read before,
// it must be unchanged.
func (c *Client) rest(ctx context.Context, to io.Writer, sum hash.Hash, from URL, o *minio.ObjectInfo, at int64, want *string) (int64, error) {
	var opts minio.GetObjectOptions
	if o.ETag != "" {
		_ = opts.SetMatchETag(o.ETag) // fails only for ""
	}
	if at > 0 {
		_ = opts.SetRange(at, 0) // fails only for an end before the start
	}
	body, info, head, err := c.store.GetObject(ctx, from.Bucket, from.Key, opts)
	if err != nil {
		return 0, c.explain(err, "read", from)
	}
	defer body.Close()
	if at == 0 {
		if o.Size >= 0 && info.Size != o.Size {
			return 0, fmt.Errorf("read %s: it has %d bytes but was listed with %d; it was changed in the meantime", from, info.Size, o.Size)
		}
		*o, *want = info, info.UserMetadata[sumKey]
	}
	if at > 0 && !strings.HasPrefix(head.Get("Content-Range"), fmt.Sprintf("bytes %d-", at)) {
		return 0, fmt.Errorf("read %s: the connection broke after %d bytes, and the store does not support ranges", from, at)
	}
	if o.Size > maxObject {
		return 0, fmt.Errorf("read %s: it has %d bytes, more than the limit of %d GiB", from, o.Size, maxObject>>30)
	}
	n, err := io.CopyN(io.MultiWriter(to, sum), body, o.Size-at)
	if _, local := errors.AsType[*fs.PathError](err); err == nil || local {
		return n, err
	}
	return n, &cutError{err}
}
