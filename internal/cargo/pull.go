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

// pull is an image of a registry, as docker login and podman login left who may. What the
// library reads whole is bounded as that of an archive is: its own bound of a manifest is
// 100 MiB, which take many times that once they are parsed, and of a configuration it has
// none. Layers are bounded where they are read.
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
	// No more is read than the manifest says, unless that is less than nothing.
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
		reply.Body = &bounded{reply.Body, maxJSON}
	}
	return reply, err
}

// bounded is a reader that fails if the input is longer.
type bounded struct {
	io.ReadCloser
	left int
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left < 0 {
		return n, fmt.Errorf("its manifest is too large: more than %d MiB", maxJSON>>20)
	}
	return n, err
}
