// Package teststore is an object store for tests. It speaks S3 to any client and verifies
// signatures. A proxy in front of it simulates network and server failures.
package teststore

import (
	"crypto/rand"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/tare-bench/tare/internal/testing/must"
)

// Bucket is the only bucket.
const Bucket = "tare"

// Store is a running store behind its proxy.
type Store struct {
	*minio.Client
	Key, Secret string
	URL         string
	Requests    atomic.Int64

	handler http.Handler
	before  atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	after   atomic.Pointer[func(*http.Response) error]
}

// Start starts a store with an empty bucket and sets the environment variables for it.
func Start(t *testing.T) *Store {
	t.Helper()
	s := &Store{Key: "key-" + rand.Text(), Secret: "secret-" + rand.Text()}
	wire := &http.Transport{DialContext: serve(t, s.Key, s.Secret), MaxIdleConnsPerHost: 16}
	t.Cleanup(wire.CloseIdleConnections)
	proxy := &httputil.ReverseProxy{
		Transport: wire,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "store"})
			r.Out.Host = r.In.Host // part of the signature
		},
		ModifyResponse: func(answer *http.Response) error {
			if after := s.after.Load(); after != nil { //nolint:bodyclose // the proxy closes it
				return (*after)(answer)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	s.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if before := s.before.Load(); before == nil || !(*before)(w, r) {
			proxy.ServeHTTP(w, r)
		}
	})
	front := httptest.NewServer(s.handler)
	t.Cleanup(front.Close)
	s.URL = front.URL
	s.Use(t, s.Key, s.Secret)
	var err error
	if s.Client, err = minio.New(front.Listener.Addr().String(), &minio.Options{Creds: credentials.NewStaticV4(s.Key, s.Secret, ""), Region: "us-east-1"}); err == nil {
		err = s.MakeBucket(t.Context(), Bucket, minio.MakeBucketOptions{})
	}
	must.OK(t, err)
	return s
}

// Use sets the environment variables for the store with the given keys.
func (s *Store) Use(t *testing.T, key, secret string) {
	t.Helper()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": s.URL, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
		"AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

// Secure sets the environment variables for the store over TLS and returns the path of
// the certificate.
func (s *Store) Secure(t *testing.T) string {
	t.Helper()
	front := httptest.NewTLSServer(s.handler)
	t.Cleanup(front.Close)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	path := filepath.Join(t.TempDir(), "ca.pem")
	must.OK(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}), 0o600))
	t.Setenv("AWS_ENDPOINT_URL", front.URL)
	return path
}

// Before sets a function that handles requests first. It reports whether it has sent the
// response.
func (s *Store) Before(do func(http.ResponseWriter, *http.Request) bool) { s.before.Store(&do) }

// After sets a function that modifies responses.
func (s *Store) After(do func(*http.Response) error) { s.after.Store(&do) }
