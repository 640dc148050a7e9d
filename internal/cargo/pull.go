package cargo

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pull returns an image from a registry, with the credentials of docker login or podman
// login. Manifests and configurations have the same size limits as in an archive. The
// library itself accepts manifests of 100 MiB, which need many times more memory when
// parsed, and has no limit for configurations. Layers are limited when they are read.
func pull(ctx context.Context, ref string) (v1.Image, error) {
	r, err := name.ParseReference(ref)
	if err != nil {
		return nil, fmt.Errorf("image: %w", err)
	}
	img, err := remote.Image(r, remote.WithContext(ctx), remote.WithPlatform(platform), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(smallManifests{remote.DefaultTransport}))
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", ref, err)
	}
	manifest, err := img.Manifest()
	if err != nil {
		return nil, fmt.Errorf("pull %s: its manifest: %w", ref, err)
	}
	// The library reads at most this size, unless it is negative.
	if n := manifest.Config.Size; n < 0 || n > maxJSON {
		return nil, fmt.Errorf("pull %s: its configuration of %d bytes is too large", ref, n)
	}
	return img, nil
}

// smallManifests limits the size of manifests and indexes from any host that the
// registry redirects to.
type smallManifests struct{ http.RoundTripper }

func (t smallManifests) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := t.RoundTripper.RoundTrip(r)
	for r.Response != nil && r.Response.Request != nil {
		r = r.Response.Request
	}
	if err == nil && path.Base(path.Dir(r.URL.Path)) == "manifests" {
		reply.Body = &Bounded{reply.Body, maxJSON, fmt.Errorf("its manifest is too large: more than %d MiB", maxJSON>>20)}
	}
	return reply, err
}

// Bounded is a reader that fails with Err after Left bytes. A truncated reply could pass for
// complete.
type Bounded struct {
	io.ReadCloser
	Left int
	Err  error
}

func (b *Bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.Left+1)])
	if b.Left -= n; b.Left < 0 {
		return n, b.Err
	}
	return n, err
}
