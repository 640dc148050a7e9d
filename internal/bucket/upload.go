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

// Free checks that nothing exists at an address, before a run of hours. Keys that may write
// but not read pass the check.
func (c *Client) Free(ctx context.Context, at URL) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	taken, err := false, error(nil)
	if at.IsFolder() {
		for o := range c.store.Client.ListObjects(ctx, at.Bucket, minio.ListObjectsOptions{Prefix: at.folder().Key, MaxKeys: 1}) {
			taken, err = o.Err == nil, o.Err
			break
		}
	} else { // a GET, since the answer to a HEAD has no error message
		var body io.ReadCloser
		if body, _, _, err = c.store.GetObject(ctx, at.Bucket, at.Key, minio.GetObjectOptions{}); err == nil {
			taken = true
			body.Close()
		}
	}
	switch code := minio.ToErrorResponse(err).Code; {
	case taken:
		return fmt.Errorf("%s already exists and is not overwritten: name another", at)
	case err == nil, code == minio.NoSuchKey, code == minio.AccessDenied:
		return nil
	}
	return c.explain(err, "look for", at)
}

// Upload copies the files below a folder to a folder of a bucket. It overwrites nothing.
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

// onePart is the maximum size of an object that is uploaded in one request.
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
		ContentType:  "application/octet-stream", // prevents display in a browser
		UserMetadata: map[string]string{sumKey: hex.EncodeToString(sum.Sum(nil))}, SendContentMd5: true, DisableMultipart: size <= onePart,
	}
	opts.SetMatchETagExcept("*")
	_, err = c.store.Client.PutObject(ctx, to.Bucket, to.Key, file, size, opts)
	var answer minio.ErrorResponse
	switch {
	case err == nil:
		return size, nil
	case errors.As(err, &answer) && answer.Code == "PreconditionFailed":
		return 0, fmt.Errorf("write %s: it already exists and is not overwritten", to)
	}
	return 0, c.explain(err, "write", to)
}
