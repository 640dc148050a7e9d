package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/bucket"
	"github.com/tare-bench/tare/internal/core/page"
)

// readers maps each verb that reads records to the maximum number of record arguments.
var readers = map[string]int{"compare": math.MaxInt, "gate": math.MaxInt, "history": math.MaxInt, "join": math.MaxInt, "label": 1, "redact": 1, "render": 1, "report": math.MaxInt, "run": 1}

// withBuckets lets a command read records from buckets and write to one. Records are
// downloaded before the command runs, and its output is uploaded afterwards. So a record is
// complete on this machine first, and no verb handles buckets itself.
func (s *app) withBuckets(c *cobra.Command) *cobra.Command {
	for _, below := range c.Commands() {
		s.withBuckets(below)
	}
	if do := c.RunE; do != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			return s.uploading(c, func() error { return s.located(c, args, do) })
		}
		s.completing(c)
	}
	return c
}

// fetching runs a command after downloading the records that its arguments name in buckets.
func (s *app) fetching(c *cobra.Command, args []string, do func(*cobra.Command, []string) error) (err error) {
	if !slices.ContainsFunc(args, func(arg string) bool { return inBucket(arg) >= 0 }) {
		return do(c, args)
	}
	store, err := bucket.Connect()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "tare-s3-")
	if err != nil {
		return fmt.Errorf("create a folder for downloads: %w; set $TMPDIR to use another", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	args = slices.Clone(args)
	for i, arg := range args {
		if at := inBucket(arg); at >= 0 {
			path, err := s.fetch(c.Context(), store, arg[at:], filepath.Join(dir, strconv.Itoa(i)))
			if err != nil {
				return err
			}
			args[i] = arg[:at] + path
		}
	}
	own := s.Err
	s.Err = asGiven{own, s}
	err = do(c, args)
	s.Err = own
	if err != nil {
		return &givenError{err, s.given(err.Error())}
	}
	return nil
}

// inBucket returns the offset of a bucket address in an argument such as
// NAME=s3://BUCKET/KEY, or -1 if there is none.
func inBucket(arg string) int {
	if bucket.Is(arg) {
		return 0
	}
	if name, path, named := strings.Cut(arg, "="); named && bucket.Is(path) {
		return len(name) + 1
	}
	return -1
}

// fetch downloads the records at an address and returns the local path.
func (s *app) fetch(ctx context.Context, store *bucket.Client, address, dir string) (string, error) {
	from, err := bucket.Parse(address)
	if err != nil {
		return "", err
	}
	got, err := store.Fetch(ctx, from, dir)
	if err != nil {
		return "", err
	}
	fmt.Fprintf(s.Err, "%s: %s, %s\n", cleanLines(from.String()), page.Amount(got.Records, "file"), page.Size(float64(got.Bytes)))
	if got.Left != nil {
		fmt.Fprintf(s.Err, "tare: skipped: %s not valid as file names: %s\n", page.Amount(len(got.Left), "key"), cleanLines(page.Listed(got.Left)))
	}
	s.fetched = append(s.fetched, got.Path, strings.TrimSuffix(from.String(), "/"))
	return got.Path, nil
}

// given replaces local paths in text with the bucket addresses that the user passed.
func (s *app) given(text string) string { return strings.NewReplacer(s.fetched...).Replace(text) }

// asGiven is a writer that prints the addresses the user passed.
type asGiven struct {
	io.Writer
	*app
}

func (w asGiven) Write(text []byte) (int, error) {
	_, err := io.WriteString(w.Writer, w.given(string(text)))
	return len(text), err
}

// givenError is an error whose text has the addresses the user passed.
type givenError struct {
	error
	text string
}

func (e *givenError) Error() string { return e.text }
func (e *givenError) Unwrap() error { return e.error }

// lateUpload is the upload timeout of an interrupted run. A deleted pod has 30 s by
// default.
const lateUpload = 20 * time.Second

// uploading runs a command and uploads its output if --output is in a bucket.
func (s *app) uploading(c *cobra.Command, do func() error) error {
	output := c.Flags().Lookup("output")
	if output == nil || !bucket.Is(output.Value.String()) {
		return do()
	}
	to, err := bucket.Parse(output.Value.String())
	if err != nil {
		return err
	}
	store, err := bucket.Connect()
	if err != nil {
		return err
	}
	if err := store.Free(c.Context(), to); err != nil {
		return err
	}
	dir, err := s.stage(output, to)
	if err != nil {
		return err
	}
	failed := do()
	if os.Remove(dir) == nil { // nothing was written
		return failed
	}
	ctx := c.Context()
	if ctx.Err() != nil {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), lateUpload)
		defer cancel()
		ctx = late
	}
	files, bytes, err := store.Upload(ctx, dir, to)
	if err == nil {
		fmt.Fprintf(s.Err, "uploaded: %s, %s, to %s\n", page.Amount(files, "file"), page.Size(float64(bytes)), cleanLines(to.String()))
		return failed
	}
	err = fmt.Errorf("%w; the files are kept in %s; upload a record with tare join RECORD -o s3://…", err, dir)
	if failed == nil {
		return err
	}
	fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(err.Error()))
	return failed
}

// stage redirects a command's output to a new folder next to the stored records.
func (s *app) stage(output *pflag.Flag, to bucket.URL) (dir string, err error) {
	records, err := recordsFolder()
	if err == nil {
		err = os.MkdirAll(records, 0o755)
	}
	if err == nil {
		dir, err = os.MkdirTemp(records, time.Now().UTC().Format("20060102T150405Z-"))
	}
	if err != nil {
		return "", fmt.Errorf("create a folder for the upload to %s: %w; set $XDG_DATA_HOME to use another", to, err)
	}
	local := dir
	if !to.IsFolder() {
		local = filepath.Join(dir, path.Base(to.Key))
	}
	return dir, output.Value.Set(local)
}
