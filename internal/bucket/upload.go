package bucket

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/minio-go/v7"
)

// Free makes sure that nothing is at an address yet, before it takes hours to know
// what would be written there. Keys that may write and not look are taken at their word.
func (c *Client) Free(ctx context.Context, at URL) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken, err := false, error(nil)
	if at.IsFolder() {
		for o := range c.store.Client.ListObjects(ctx, at.Bucket, minio.ListObjectsOptions{Prefix: at.folder().Key, MaxKeys: 1}) {
			taken, err = o.Err == nil, o.Err
			break
		}
	} else { // by a GET, since the answer to a HEAD does not say what is wrong
		var body io.ReadCloser
		if body, _, _, err = c.store.GetObject(ctx, at.Bucket, at.Key, minio.GetObjectOptions{}); err == nil {
			taken = true
			body.Close()
		}
	}
	switch code := minio.ToErrorResponse(err).Code; {
	case taken:
		return fmt.Errorf("%s: something is there already, and nothing is written over: name another", at)
	case err == nil, code == minio.NoSuchKey, code == minio.AccessDenied:
		return nil
	}
	return c.explain(err, "look for", at)
}

// Upload copies the files of a folder, and of those in it, into a folder of a bucket.
// Nothing that is there is written over.
func (c *Client) Upload(ctx context.Context, dir string, to URL) (files int, bytes int64, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		n, err := c.write(ctx, name, URL{to.Bucket, to.folder().Key + filepath.ToSlash(below)})
		files, bytes = files+1, bytes+n
		return err
	})
	return files, bytes, err
}

// onePart is how long an object may be that is written at once.
const onePart = 5 << 30

func (c *Client) write(ctx context.Context, name string, to URL) (int64, error) {
	file, err := os.Open(name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", name, err)
	}
	opts := minio.PutObjectOptions{
		ContentType:  "application/octet-stream", // no browser is to show it
		UserMetadata: map[string]string{sumKey: hex.EncodeToString(sum.Sum(nil))}, SendContentMd5: true, DisableMultipart: size <= onePart,
	}
	opts.SetMatchETagExcept("*")
	_, err = c.store.Client.PutObject(ctx, to.Bucket, to.Key, file, size, opts)
	var answer minio.ErrorResponse
	switch {
	case err == nil:
		return size, nil
	case errors.As(err, &answer) && answer.Code == "PreconditionFailed":
		return 0, fmt.Errorf("write %s: something is there already, and nothing is written over", to)
	}
	return 0, c.explain(err, "write", to)
}
