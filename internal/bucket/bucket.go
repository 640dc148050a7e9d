// Package bucket takes records out of an object store that speaks S3, and files into
// it. Which store, region and keys is said where the AWS command looks for them, too, so
// that nothing of it stands in a command line, a plan or a record.
//
// What a store says is a stranger's text: of its objects those are taken whose keys can
// be names of files below one folder, and how many, how long and how patiently is bounded.
package bucket

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/tare-bench/tare/internal/version"
)

const scheme = "s3://"

// Is tells whether a path is an address in a bucket.
func Is(path string) bool { return strings.HasPrefix(path, scheme) }

// URL is an address in a bucket: s3://BUCKET/KEY of an object, or of a folder of them.
type URL struct{ Bucket, Key string }

// Parse reads an address. Its errors do not repeat it: it may hold what should not be
// shown.
func Parse(text string) (URL, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(text, scheme), "/")
	if strings.ContainsAny(name, "@:") {
		return URL{}, errors.New("an address in a bucket is s3://BUCKET/KEY: keys are read from the environment and never from an address, see docs/kubernetes.md")
	}
	if err := s3utils.CheckValidBucketName(name); err != nil {
		return URL{}, fmt.Errorf("an address in a bucket is s3://BUCKET/KEY: %w", err)
	}
	if slices.ContainsFunc(strings.Split(key, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return URL{}, errors.New("an address in a bucket is s3://BUCKET/KEY: . and .. are no folders there")
	}
	return URL{name, key}, nil
}

func (u URL) String() string { return scheme + u.Bucket + "/" + u.Key }

// IsFolder tells whether it is of all objects whose keys begin so: it ends in /, or has
// no extension.
func (u URL) IsFolder() bool { return strings.HasSuffix(u.Key, "/") || path.Ext(u.Key) == "" }

// folder is the folder itself, or that in which the object is.
func (u URL) folder() URL {
	if u.IsFolder() {
		u.Key = strings.TrimSuffix(u.Key, "/") + "/"
	} else {
		u.Key = u.Key[:strings.LastIndex(u.Key, "/")+1]
	}
	if u.Key == "/" {
		u.Key = ""
	}
	return u
}

// name is what a file or folder of it is called.
func (u URL) name() string {
	if key := strings.Trim(u.Key, "/"); key != "" {
		return path.Base(key)
	}
	return u.Bucket
}

// Client speaks to a store.
type Client struct {
	store minio.Core
	at    string // the store's address
}

// silence is how long a store may take to say anything, or to take anything.
const silence = 30 * time.Second

// Connect makes a client, without a request, of the store that the environment says.
func Connect() (*Client, error) { return connect(silence) }

func connect(silence time.Duration) (*Client, error) {
	given := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	at, err := url.Parse(cmp.Or(given, "https://s3.amazonaws.com"))
	if err != nil || at.Host == "" || at.User != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("AWS_ENDPOINT_URL is no address of a store: write it as https://HOST:PORT, without keys")
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if given != "" {
		region = cmp.Or(region, "us-east-1") // what stores elsewhere are told by default, and need not be asked for
	}
	wire, err := transport(at.Scheme == "https", silence)
	if err != nil {
		return nil, fmt.Errorf("speak to %s: %w", at.Host, err)
	}
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}})
	}
	client, err := minio.New(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials(providers), Secure: at.Scheme == "https", Region: region, Transport: wire, MaxRetries: 3,
	})
	if err != nil {
		return nil, fmt.Errorf("speak to %s: %w", at.Host, err)
	}
	client.SetAppInfo("tare", version.String())
	return &Client{store: minio.Core{Client: client}, at: at.Host}, nil
}

// longestAnswer is how much a store may say beside what is in its objects; a page of a
// thousand keys is some 300 KiB.
const longestAnswer = 16 << 20

// transport ends connections on which nothing moves, and answers that do not end.
func transport(secure bool, silence time.Duration) (http.RoundTripper, error) {
	t, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	dial := (&net.Dialer{Timeout: silence}).DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		return watched{c, silence}, err
	}
	t.ResponseHeaderTimeout = silence
	return bounded{t}, nil
}

// watched is a connection that fails once nothing has moved on it for too long. What
// is written counts for both ways: the answer to something long comes late.
type watched struct {
	net.Conn
	most time.Duration
}

func (w watched) Read(p []byte) (int, error) {
	if err := w.SetReadDeadline(time.Now().Add(w.most)); err != nil {
		return 0, err
	}
	return w.Conn.Read(p)
}

func (w watched) Write(p []byte) (int, error) {
	if err := w.SetDeadline(time.Now().Add(w.most)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// bounded cuts answers that are no objects. An object is asked for without a query.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil && (r.URL.RawQuery != "" || answer.StatusCode >= http.StatusMultipleChoices) {
		answer.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(answer.Body, longestAnswer), answer.Body}
	}
	return answer, err
}

// explain says what was tried when a request failed, and what would change it.
func (c *Client) explain(err error, tried string, at URL) error {
	advice := ""
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		switch answer.Code {
		case minio.NoSuchBucket:
			advice = "; there is no such bucket at " + c.at + ", which AWS_ENDPOINT_URL can change"
		case minio.NoSuchKey:
			advice = "; the address of a folder ends in /"
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
			advice = "; the keys are those of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or of AWS_PROFILE in ~/.aws/credentials"
		case "AuthorizationHeaderMalformed", "PermanentRedirect":
			advice = "; AWS_REGION names the bucket's region"
		case minio.RequestTimeTooSkewed:
			advice = "; the clock here says " + time.Now().UTC().Format(time.RFC3339) + ", and that of " + c.at + " another time: set the wrong one"
		}
	} else if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		advice = "; SSL_CERT_FILE names the certificates of who vouches for " + c.at
	} else if _, wire := errors.AsType[net.Error](err); wire {
		advice = "; " + c.at + " is where AWS_ENDPOINT_URL says that the store is"
	}
	return fmt.Errorf("%s %s: %w%s", tried, at, err, advice)
}
