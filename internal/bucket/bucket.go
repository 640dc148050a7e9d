// Package bucket downloads records from an S3-compatible object store and uploads files to
// it. The store, region and keys come from the same environment and files as for the AWS
// CLI, so they are not in a command line, a plan or a record.
//
// Data from a store is untrusted. Only objects with valid file names below one folder are
// downloaded. Their number, their size and the time are limited.
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

// Is reports whether a path is an address in a bucket.
func Is(path string) bool { return strings.HasPrefix(path, scheme) }

// URL is the address of an object or of a folder in a bucket: s3://BUCKET/KEY.
type URL struct{ Bucket, Key string }

// Parse parses an address. Its errors do not contain the address, which may contain
// secrets.
func Parse(text string) (URL, error) {
	name, key, _ := strings.Cut(strings.TrimPrefix(text, scheme), "/")
	if strings.ContainsAny(name, "@:") {
		return URL{}, errors.New("invalid bucket address, want s3://BUCKET/KEY: keys are only read from the environment, see docs/kubernetes.md")
	}
	if err := s3utils.CheckValidBucketName(name); err != nil {
		return URL{}, fmt.Errorf("invalid bucket address, want s3://BUCKET/KEY: %w", err)
	}
	if slices.ContainsFunc(strings.Split(key, "/"), func(part string) bool { return part == "." || part == ".." }) {
		return URL{}, errors.New("invalid bucket address, want s3://BUCKET/KEY: . and .. are not allowed")
	}
	return URL{name, key}, nil
}

func (u URL) String() string { return scheme + u.Bucket + "/" + u.Key }

// IsFolder reports whether the address is that of a folder: it ends in /, or has no
// extension.
func (u URL) IsFolder() bool { return strings.HasSuffix(u.Key, "/") || path.Ext(u.Key) == "" }

// folder returns the address of the folder, or of the object's folder.
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

// name returns the local name of the object or folder.
func (u URL) name() string {
	if key := strings.Trim(u.Key, "/"); key != "" {
		return path.Base(key)
	}
	return u.Bucket
}

// Client is a client of an object store.
type Client struct {
	store minio.Core
	at    string // the store's address
}

// silence is the timeout for a store that neither sends nor receives data.
const silence = 30 * time.Second

// Connect returns a client of the store in the environment. It makes no request.
func Connect() (*Client, error) { return connect(silence) }

func connect(silence time.Duration) (*Client, error) {
	given := cmp.Or(os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	at, err := url.Parse(cmp.Or(given, "https://s3.amazonaws.com"))
	if err != nil || at.Host == "" || at.User != nil || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("AWS_ENDPOINT_URL is invalid: write https://HOST:PORT, without keys")
	}
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	if given != "" {
		region = cmp.Or(region, "us-east-1") // default region of other stores; saves a request
	}
	wire, err := transport(at.Scheme == "https", silence)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", at.Host, err)
	}
	providers := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	if os.Getenv("AWS_EC2_METADATA_DISABLED") != "true" {
		providers = append(providers, &credentials.IAM{Client: &http.Client{Timeout: 3 * time.Second}})
	}
	client, err := minio.New(at.Host, &minio.Options{
		Creds: credentials.NewChainCredentials(providers), Secure: at.Scheme == "https", Region: region, Transport: wire, MaxRetries: 3,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", at.Host, err)
	}
	client.SetAppInfo("tare", version.String())
	return &Client{store: minio.Core{Client: client}, at: at.Host}, nil
}

// longestAnswer limits answers other than objects. A page of a thousand keys has about 300
// KiB.
const longestAnswer = 16 << 20

// transport limits the idle time of connections and the size of answers.
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

// watched is a connection with an idle timeout. A write also extends the read deadline,
// since the answer to a long request comes late.
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

// bounded limits answers that are not objects. Requests for objects have no query.
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

// explain adds the failed operation and advice to an error.
func (c *Client) explain(err error, tried string, at URL) error {
	advice := ""
	if answer, ok := errors.AsType[minio.ErrorResponse](err); ok {
		switch answer.Code {
		case minio.NoSuchBucket:
			advice = "; there is no such bucket at " + c.at + "; AWS_ENDPOINT_URL selects the store"
		case minio.NoSuchKey:
			advice = "; the address of a folder ends in /"
		case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
			advice = "; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE in ~/.aws/credentials"
		case "AuthorizationHeaderMalformed", "PermanentRedirect":
			advice = "; set AWS_REGION to the bucket's region"
		case minio.RequestTimeTooSkewed:
			advice = "; the local clock is " + time.Now().UTC().Format(time.RFC3339) + " and differs from that of " + c.at + ": fix the wrong one"
		}
	} else if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		advice = "; set SSL_CERT_FILE to the CA certificates of " + c.at
	} else if _, wire := errors.AsType[net.Error](err); wire {
		advice = "; check AWS_ENDPOINT_URL, which selects " + c.at + ""
	}
	return fmt.Errorf("%s %s: %w%s", tried, at, err, advice)
}
