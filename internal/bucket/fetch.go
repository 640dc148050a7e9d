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

// Bounds of what is taken. What is beyond them is refused, never cut: a part of a history
// looks like a whole one.
const (
	maxRecords = 10_000
	maxKeys    = 100_000 // that are looked at
	maxObject  = 4 << 30 // bytes
	maxBytes   = 64 << 30
	atOnce     = 16
)

// sumKey is of the user's part of an object's head: the SHA-256 of a file that tare
// wrote, in hex. ETags are sums of some objects of some stores only.
const sumKey = "Sha256"

// Fetched is what was taken.
type Fetched struct {
	Path    string // the object's file, or the folder
	Records int
	Bytes   int64
	Left    []string // keys that cannot be names of files
}

// Fetch copies an object, or all records of a folder, below dir, under the names
// that they have in the bucket.
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
		return nil, fmt.Errorf("a place for what is in the bucket: %w; $TMPDIR names another", err)
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

// list are the records of a folder.
func (c *Client) list(ctx context.Context, folder URL) (out []minio.ObjectInfo, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // or it would go on listing
	seen, bytes := 0, int64(0)
	for o := range c.store.Client.ListObjects(ctx, folder.Bucket, minio.ListObjectsOptions{Prefix: folder.Key, Recursive: true}) {
		if o.Err != nil {
			return nil, c.explain(o.Err, "list", folder)
		}
		if seen++; seen > maxKeys {
			return nil, fmt.Errorf("%s: more than %d objects are there; name a folder below it", folder, maxKeys)
		}
		if !strings.HasPrefix(o.Key, folder.Key) || !record.IsName(o.Key) {
			continue
		}
		out = append(out, o)
		if bytes += max(0, o.Size); len(out) > maxRecords || bytes > maxBytes {
			return nil, fmt.Errorf("%s: more than %d records or %d GiB are there; name a folder below it", folder, maxRecords, maxBytes>>30)
		}
	}
	if out == nil {
		return nil, fmt.Errorf("%s: no record is there: they end in .jsonl or .jsonl.zst", folder)
	}
	return out, ctx.Err()
}

var errNoName = errors.New("this cannot be a file's name")

// fetch copies one object into a file of its name.
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
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENAMETOOLONG) { // of a and a/b only one can be a file
		return nil, errNoName
	}
	return file, err
}

// Bounds of how often one object is asked for.
const (
	tries = 5 // without a byte more
	pause = 100 * time.Millisecond
)

// read copies an object, and goes on behind what it has where a connection was cut.
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
			return at, fmt.Errorf("read %s: its SHA-256 is not the one that it was written with; it is damaged, or was changed", from)
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

// cutError is of a connection that broke in the midst of an object.
type cutError struct{ error }

// rest copies what follows at. Of an object that was listed, or of which a part was
// read, it takes no other than that one.
func (c *Client) rest(ctx context.Context, to io.Writer, sum hash.Hash, from URL, o *minio.ObjectInfo, at int64, want *string) (int64, error) {
	var opts minio.GetObjectOptions
	if o.ETag != "" {
		if err := opts.SetMatchETag(o.ETag); err != nil {
			return 0, c.explain(err, "read", from)
		}
	}
	if at > 0 {
		if err := opts.SetRange(at, 0); err != nil {
			return 0, c.explain(err, "read", from)
		}
	}
	body, info, head, err := c.store.GetObject(ctx, from.Bucket, from.Key, opts)
	if err != nil {
		return 0, c.explain(err, "read", from)
	}
	defer body.Close()
	if at == 0 {
		if o.Size >= 0 && info.Size != o.Size {
			return 0, fmt.Errorf("read %s: it has %d bytes and was listed with %d; it was changed meanwhile", from, info.Size, o.Size)
		}
		*o, *want = info, info.UserMetadata[sumKey]
	}
	if at > 0 && !strings.HasPrefix(head.Get("Content-Range"), fmt.Sprintf("bytes %d-", at)) {
		return 0, fmt.Errorf("read %s: the connection was cut after %d bytes, and the store does not send the rest alone", from, at)
	}
	if o.Size > maxObject {
		return 0, fmt.Errorf("read %s: it has %d bytes, and more than %d GiB are not taken", from, o.Size, maxObject>>30)
	}
	n, err := io.CopyN(io.MultiWriter(to, sum), body, o.Size-at)
	if _, local := errors.AsType[*fs.PathError](err); err == nil || local {
		return n, err
	}
	return n, &cutError{err}
}
