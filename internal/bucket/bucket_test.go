package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/minio/minio-go/v7"
	"golang.org/x/sync/errgroup"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/teststore"
)

func TestAddressIsBucketAndKeyWithoutSecrets(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/addresses.txt", func(t *testing.T, line string) (any, error) {
		u, err := Parse(line)
		check.That(t, err == nil || !strings.Contains(err.Error(), "hidden"), "%v", err)
		return map[bool]string{true: "folder ", false: "file "}[u.IsFolder()] + u.String() + " in " + u.folder().String(), err
	})
}

func TestEndpointVariableIsValidated(t *testing.T) {
	for endpoint, ok := range map[string]bool{
		"": true, "https://s3.example": true, "http://127.0.0.1:9000": true, "http://[::1]:9000": true,
		"s3.example": false, "ftp://s3.example": false, "https://key:hidden@s3.example": false, "https://": false,
	} {
		t.Setenv("AWS_ENDPOINT_URL", endpoint)
		t.Setenv("AWS_ENDPOINT_URL_S3", "")
		_, err := Connect()
		check.That(t, (err == nil) == ok && (err == nil || !strings.Contains(err.Error(), "hidden")), "%q: %v", endpoint, err)
	}
}

// put writes objects with a separate client.
func put(t *testing.T, s *teststore.Store, objects map[string]string) {
	t.Helper()
	var several errgroup.Group
	several.SetLimit(16)
	for key, text := range objects {
		several.Go(func() error {
			_, err := s.PutObject(t.Context(), teststore.Bucket, key, strings.NewReader(text), int64(len(text)), minio.PutObjectOptions{})
			return err
		})
	}
	must.OK(t, several.Wait())
}

// folder creates a folder with files of these names.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Write(t, filepath.Join(dir, name), text)
	}
	return dir
}

func client(t *testing.T, silence time.Duration) *Client {
	t.Helper()
	return must.Get(connect(silence))(t)
}

// files returns the files below a folder with their content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var text []byte
			text, err = os.ReadFile(filepath.Join(dir, name))
			out[name] = string(text)
		}
		return err
	})
	must.OK(t, err)
	return out
}

func fetched(t *testing.T, c *Client, address string) (*Fetched, map[string]string, error) {
	t.Helper()
	from := must.Get(Parse(address))(t)
	dir := t.TempDir()
	got, err := c.Fetch(t.Context(), from, dir)
	return got, files(t, dir), err
}

func TestUploadedFilesAreFetched(t *testing.T) {
	teststore.Start(t)
	long := strings.Repeat("a line of a record\n", 1<<18)
	c, dir := client(t, silence), folder(t, map[string]string{"run.jsonl": "one", "figures/a.svg": "a picture", "deep/er/run.jsonl.zst": long})
	to := URL{teststore.Bucket, "nightly/1/"}
	for _, at := range []URL{to, {to.Bucket, "nightly/1/run.jsonl"}, {to.Bucket, ""}} {
		check.Error(t, c.Free(t.Context(), at), "")
	}
	n, bytes, err := c.Upload(t.Context(), dir, to)
	must.That(t, n == 3 && bytes == int64(len("one"+"a picture"+long)) && err == nil, "%d files, %d bytes, %v", n, bytes, err)
	for _, at := range []URL{to, {to.Bucket, "nightly"}, {to.Bucket, "nightly/1/run.jsonl"}} {
		err := c.Free(t.Context(), at)
		check.That(t, err != nil && strings.Contains(err.Error(), "already exists"), "%s: %v", at, err)
	}
	for address, want := range map[string]map[string]string{
		"s3://tare/nightly":             {"nightly/1/run.jsonl": "one", "nightly/1/deep/er/run.jsonl.zst": long},
		"s3://tare/nightly/1/deep/":     {"deep/er/run.jsonl.zst": long},
		"s3://tare/nightly/1/run.jsonl": {"run.jsonl": "one"},
		"s3://tare":                     {"tare/nightly/1/run.jsonl": "one", "tare/nightly/1/deep/er/run.jsonl.zst": long},
	} {
		got, there, err := fetched(t, c, address)
		check.That(t, err == nil && got.Records == len(want) && got.Left == nil, "%s: %+v, %v", address, got, err)
		for name, text := range want {
			check.That(t, there[name] == text && len(there) == len(want), "%s: %s is wrong or missing; got %d files", address, name, len(there))
		}
	}
}

func TestStoreErrorsIncludeAdvice(t *testing.T) {
	s := teststore.Start(t)
	put(t, s, map[string]string{"a/run.jsonl": "one", "a/notes.txt": "no record"})
	for _, tt := range []struct{ what, key, secret, region, address, says string }{
		{"missing bucket", s.Key, s.Secret, "", "s3://nowhere/a/", "there is no such bucket at 127.0.0.1"},
		{"missing bucket, address of an object", s.Key, s.Secret, "", "s3://nowhere/a.jsonl", "there is no such bucket at 127.0.0.1"},
		{"missing object", s.Key, s.Secret, "", "s3://tare/b.jsonl", "the address of a folder ends in /"},
		{"empty folder", s.Key, s.Secret, "", "s3://tare/b/", "no records"},
		{"wrong access key", "key-wrong", s.Secret, "", "s3://tare/a/", "AWS_ACCESS_KEY_ID"},
		{"wrong access key, address of an object", "key-wrong", s.Secret, "", "s3://tare/a/run.jsonl", "AWS_ACCESS_KEY_ID"},
		{"wrong secret key", s.Key, "secret-wrong", "", "s3://tare/a/", "AWS_SECRET_ACCESS_KEY"},
		{"wrong secret key, address of an object", s.Key, "secret-wrong", "", "s3://tare/a/run.jsonl", "AWS_SECRET_ACCESS_KEY"},
		{"wrong region", s.Key, s.Secret, "eu-central-1", "s3://tare/a/", "AWS_REGION"},
		{"wrong region, address of an object", s.Key, s.Secret, "eu-central-1", "s3://tare/a/run.jsonl", "AWS_REGION"},
		{"no keys", "", "", "", "s3://tare/a/", "AWS_PROFILE"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s.Use(t, tt.key, tt.secret)
			t.Setenv("AWS_REGION", tt.region)
			c := client(t, silence)
			_, _, err := fetched(t, c, tt.address)
			must.That(t, err != nil && strings.Contains(err.Error(), tt.says), "%v", err)
			s := tt.secret
			check.That(t, s == "" || !strings.Contains(err.Error(), s), "the error contains the secret: %v", err)
			from, _ := Parse(tt.address)
			err = c.Free(t.Context(), from)
			check.That(t, strings.HasPrefix(tt.says, "there is no such bucket") == strings.Contains(fmt.Sprint(err), "no such bucket"), "check before a run: %v", err)
		})
	}
}

// An upload has another signature than a download: it includes the content.
func TestRefusedUploadIncludesAdvice(t *testing.T) {
	s := teststore.Start(t)
	path := filepath.Join(folder(t, map[string]string{"run.jsonl": "one"}), "run.jsonl")
	s.Use(t, s.Key, "secret-wrong")
	_, err := client(t, silence).write(t.Context(), path, URL{teststore.Bucket, "run.jsonl"})
	check.Error(t, err, "AWS_SECRET_ACCESS_KEY")
}

func TestWrongClockIsReported(t *testing.T) {
	s := teststore.Start(t)
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Connection", "close") // otherwise the reading goroutine would outlive the bubble
		return false
	})
	synctest.Test(t, func(t *testing.T) { // the clock of a bubble starts in the year 2000
		for _, at := range []URL{{teststore.Bucket, "a/"}, {teststore.Bucket, "a.jsonl"}} {
			_, err := client(t, silence).Fetch(t.Context(), at, t.TempDir())
			check.That(t, err != nil && strings.Contains(err.Error(), "the local clock is 2000-01-01T00:00:00Z"), "%s: %v", at, err)
		}
	})
}

func TestTLSCertificateIsVerified(t *testing.T) {
	s := teststore.Start(t)
	put(t, s, map[string]string{"a/run.jsonl": "one"})
	certificate := s.Secure(t)
	// The order matters: a process loads the system's root certificates only once.
	_, _, err := fetched(t, client(t, silence), "s3://tare/a/")
	check.That(t, err != nil && strings.Contains(err.Error(), "SSL_CERT_FILE"), "without the certificate: %v", err)
	t.Setenv("SSL_CERT_FILE", certificate)
	_, _, err = fetched(t, client(t, silence), "s3://tare/a/")
	check.Error(t, err, "")
}

// A signature covers the escaped key, so client and store must escape it alike.
func TestKeysMayContainAnyCharacter(t *testing.T) {
	teststore.Start(t)
	names := []string{"a b+c.jsonl", "100%25.jsonl", "what?x=1&y#z.jsonl", "ünï—😀.jsonl", "~!@$'()*,;:=[]{}|^`<>\\.jsonl", "deep er/+/run.jsonl.zst"}
	here, want := map[string]string{}, map[string]string{}
	for _, name := range names {
		here[name], want["odd +%/"+name] = name, name
	}
	c, dir := client(t, silence), folder(t, here)
	n, _, err := c.Upload(t.Context(), dir, URL{teststore.Bucket, "odd +%/"})
	must.That(t, n == len(names) && err == nil, "%d files, %v", n, err)
	_, there, err := fetched(t, c, "s3://tare/odd +%/")
	check.That(t, err == nil && maps.Equal(there, want), "%v, %q", err, slices.Collect(maps.Keys(there)))
	for _, name := range names {
		err := c.Free(t.Context(), URL{teststore.Bucket, "odd +%/" + name})
		check.That(t, err != nil && strings.Contains(err.Error(), "already exists"), "%s: %v", name, err)
	}
}

func TestInterruptedDownloadIsResumed(t *testing.T) {
	s := teststore.Start(t)
	text := strings.Repeat("0123456789", 10_000)
	put(t, s, map[string]string{"a/run.jsonl": text})
	var most atomic.Int64
	s.After(func(answer *http.Response) error {
		if answer.Request.Method == http.MethodGet && strings.HasSuffix(answer.Request.URL.Path, ".jsonl") {
			answer.Body = &cut{answer.Body, most.Load()}
		}
		return nil
	})
	c := client(t, silence)
	most.Store(30_000)
	_, there, err := fetched(t, c, "s3://tare/a/")
	check.That(t, err == nil && there["a/run.jsonl"] == text, "%v, %d bytes", err, len(there["a/run.jsonl"]))
	n := s.Requests.Load()
	check.That(t, n >= 5, "only %d requests", n)
	most.Store(0)
	_, _, err = fetched(t, c, "s3://tare/a/")
	check.That(t, err != nil && strings.Contains(err.Error(), "read s3://tare/a/run.jsonl"), "a download that is always interrupted: %v", err)
}

// cut is a response body that ends early.
type cut struct {
	io.ReadCloser
	left int64
}

func (c *cut) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := c.ReadCloser.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}

func TestUnresponsiveStoreTimesOut(t *testing.T) {
	s := teststore.Start(t)
	put(t, s, map[string]string{"a/run.jsonl": "one"})
	c := client(t, 100*time.Millisecond)
	s.Before(func(_ http.ResponseWriter, r *http.Request) bool {
		<-r.Context().Done()
		return true
	})
	_, _, err := fetched(t, c, "s3://tare/a/")
	check.Error(t, err, "AWS_ENDPOINT_URL")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = c.Fetch(ctx, URL{teststore.Bucket, "a/"}, t.TempDir())
	check.That(t, errors.Is(err, context.Canceled), "interrupted: %v", err)
}

func TestDamagedObjectIsRefused(t *testing.T) {
	s := teststore.Start(t)
	c, dir := client(t, silence), folder(t, map[string]string{"run.jsonl": "one"})
	_, _, err := c.Upload(t.Context(), dir, URL{teststore.Bucket, "a/"})
	must.OK(t, err)
	for what, change := range map[string]func(*http.Response){
		"SHA-256 mismatch": func(answer *http.Response) { answer.Body = io.NopCloser(strings.NewReader("two")) },
		"it was changed in the meantime": func(answer *http.Response) {
			answer.Body, answer.ContentLength = io.NopCloser(strings.NewReader("longer")), 6
			answer.Header.Set("Content-Length", "6")
		},
	} {
		s.After(func(answer *http.Response) error {
			if strings.HasSuffix(answer.Request.URL.Path, ".jsonl") {
				change(answer)
			}
			return nil
		})
		_, _, err := fetched(t, c, "s3://tare/a/")
		check.That(t, err != nil && strings.Contains(err.Error(), what), "%s: %v", what, err)
	}
}

// listing returns a list response with the given keys.
func listing(more bool, keys ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><ListBucketResult><Name>tare</Name><EncodingType>url</EncodingType><IsTruncated>%t</IsTruncated><NextContinuationToken>x</NextContinuationToken>`, more)
	for _, key := range keys {
		fmt.Fprintf(&b, `<Contents><Key>%s</Key><Size>3</Size><ETag>"e"</ETag></Contents>`, key)
	}
	b.WriteString("</ListBucketResult>")
	return b.String()
}

func TestMaliciousKeysAreSkipped(t *testing.T) {
	s := teststore.Start(t)
	long := strings.Repeat("x", 300) + ".jsonl"
	strange := []string{"a/../../out.jsonl", "a//rooted.jsonl", "a/./b.jsonl", "a/x%1B%5B2J.jsonl", "a/%00.jsonl", "a/good.jsonl/under.jsonl", "a/" + long}
	s.Before(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("list-type") {
			_, _ = io.WriteString(w, listing(false, append([]string{"a/good.jsonl", "b/elsewhere.jsonl", "a/notes.txt", "a/"}, strange...)...))
		} else {
			w.Header().Set("ETag", `"e"`)
			w.Header().Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
			_, _ = io.WriteString(w, "one")
		}
		return true
	})
	got, there, err := fetched(t, client(t, silence), "s3://tare/a/")
	must.OK(t, err)
	// Whether good.jsonl or a key below it becomes a file depends on timing.
	check.That(t, len(there) == 1 && got.Records == 1 && len(got.Left) == len(strange), "%v, %+v", there, got)
	for name := range there {
		check.That(t, strings.HasPrefix(name, "a/good.jsonl"), "%q", name)
	}
}

func TestEndlessListingIsRefused(t *testing.T) {
	s := teststore.Start(t)
	page := 0
	s.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		keys := make([]string, 1000)
		for i := range keys {
			keys[i] = fmt.Sprintf("a/%d-%d.jsonl", page, i)
		}
		page++
		_, _ = io.WriteString(w, listing(true, keys...))
		return true
	})
	_, _, err := fetched(t, client(t, silence), "s3://tare/a/")
	check.Error(t, err, "more than 10000 records")
	s.Before(func(w http.ResponseWriter, r *http.Request) bool { // a single page without an end
		text := bytes.Repeat([]byte(" "), 1<<20)
		for r.Context().Err() == nil {
			_, _ = w.Write(text)
		}
		return true
	})
	_, _, err = fetched(t, client(t, silence), "s3://tare/a/")
	check.That(t, err != nil, "a page without an end was accepted")
}

func TestSeveralPagesOfObjectsAreFetched(t *testing.T) {
	s := teststore.Start(t)
	objects := map[string]string{}
	for i := range 1001 { // a page has at most 1000 keys
		objects[fmt.Sprintf("a/%d/run.jsonl", i)] = fmt.Sprint(i)
	}
	put(t, s, objects)
	got, there, err := fetched(t, client(t, silence), "s3://tare/a/")
	must.That(t, err == nil && got.Records == len(objects) && len(there) == len(objects), "%+v, %d files, %v", got, len(there), err)
	for name, text := range objects {
		check.Equal(t, name, there[name], text)
	}
}
