// Package teststore is for tests: an object store in memory, which speaks S3 to any
// client, and a proxy before it that does what networks and strangers do.
package teststore

import (
	"crypto/rand"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Bucket is the one that is there.
const Bucket = "tare"

// Store is a running store, reached through its proxy.
type Store struct {
	*minio.Client
	Key, Secret string
	URL         string
	Requests    atomic.Int64

	before atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	after  atomic.Pointer[func(*http.Response) error]
}

// Start starts a store with an empty bucket, and has the environment name it.
func Start(t *testing.T) *Store {
	t.Helper()
	s := &Store{Key: "key-" + rand.Text(), Secret: "secret-" + rand.Text()}
	store := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	t.Cleanup(store.Close)
	to, err := url.Parse(store.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }, // which is signed
		ModifyResponse: func(answer *http.Response) error {
			if after := s.after.Load(); after != nil { //nolint:bodyclose // the proxy closes it
				return (*after)(answer)
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if before := s.before.Load(); (before == nil || !(*before)(w, r)) && s.knows(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(before.Close)
	s.URL = before.URL
	s.Use(t, s.Key, s.Secret)
	if s.Client, err = minio.New(to.Host, &minio.Options{Creds: credentials.NewStaticV4(s.Key, s.Secret, ""), Region: "us-east-1"}); err == nil {
		err = s.MakeBucket(t.Context(), Bucket, minio.MakeBucketOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// knows refuses other keys than the store's. It looks at no signature.
func (s *Store) knows(w http.ResponseWriter, r *http.Request) bool {
	switch signed := r.Header.Get("Authorization"); {
	case signed == "":
		Refuse(w, http.StatusForbidden, "AccessDenied")
	case !strings.Contains(signed, "Credential="+s.Key+"/"):
		Refuse(w, http.StatusForbidden, "InvalidAccessKeyId")
	default:
		return true
	}
	return false
}

// Refuse answers as stores do.
func Refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>it is refused</Message></Error>", code)
}

// Use has the environment name the store, with some keys.
func (s *Store) Use(t *testing.T, key, secret string) {
	t.Helper()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": s.URL, "AWS_ENDPOINT_URL_S3": "", "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
		"AWS_SESSION_TOKEN": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "", "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
}

// Before has a function look at requests first, which says whether it has answered.
func (s *Store) Before(do func(http.ResponseWriter, *http.Request) bool) { s.before.Store(&do) }

// After has a function change answers.
func (s *Store) After(do func(*http.Response) error) { s.after.Store(&do) }
