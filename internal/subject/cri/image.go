package cri

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// imported is an image that an engine has while it is needed.
type imported struct {
	id    string // as the engine calls it
	image *image.Image
	key   string // by which the sessions of this process share it
	ref   string
	// may returns why the image must not be made; nil where it always may.
	may   func(ctx context.Context) error
	letGo func(remove func() error) error
}

// find asks CRI for an image; "" when it has none of that name.
func (c *connection) find(ctx context.Context, ref string) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	reply, err := c.images.ImageStatus(ctx, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: ref}})
	if err != nil {
		return "", fmt.Errorf("ImageStatus %s: %w", ref, err)
	}
	return reply.GetImage().GetId(), nil
}

// ensure gives the engine an image by its own way, unless it has it, and waits
// until CRI knows it. CRI itself can only pull.
func (s *session) ensure(ctx context.Context, img *image.Image, may func(ctx context.Context) error) (*imported, error) {
	i := &imported{ref: img.Ref, image: img, key: "cri " + s.socket + " " + img.Ref, may: may}
	var err error
	if i.letGo, err = engine.Hold(i.key, func() (bool, error) { return s.give(ctx, i) }); err != nil {
		return nil, err
	}
	if err := s.await(ctx, i); err != nil {
		return nil, errors.Join(err, i.release(context.WithoutCancel(ctx), s.conn))
	}
	return i, nil
}

// give loads an image unless the engine has it.
func (s *session) give(ctx context.Context, i *imported) (made bool, err error) {
	id, err := s.conn.find(ctx, i.ref)
	if err != nil || id != "" {
		i.id = id
		return false, err
	}
	if i.may != nil {
		err = i.may(ctx)
	}
	if err == nil {
		err = s.load(ctx, i.image)
	}
	if err != nil {
		return false, fmt.Errorf("import the image %s: %w", i.ref, err)
	}
	i.id = ""
	return true, nil
}

// await waits until CRI knows an image that was loaded.
func (s *session) await(ctx context.Context, i *imported) error {
	for deadline := time.Now().Add(patience); i.id == ""; time.Sleep(10 * time.Millisecond) {
		var err error
		if i.id, err = s.conn.find(ctx, i.ref); err != nil {
			return err
		}
		if i.id == "" && time.Now().After(deadline) {
			return fmt.Errorf("the image %s was imported, and CRI does not know it %v later", i.ref, patience)
		}
	}
	return nil
}

// renew brings back the images that somebody took away since: CRI does not tell
// whose they are, so whoever cleans up after another run may take those of this
// one too.
func (s *session) renew(ctx context.Context) error {
	for _, i := range []*imported{s.pause, s.image} {
		if i == nil {
			continue
		}
		if err := engine.Renew(i.key, func() (bool, error) { return s.give(ctx, i) }); err != nil {
			return err
		}
		if err := s.await(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// release removes the image if a session of this process imported it, and no
// other one needs it.
func (i *imported) release(ctx context.Context, c *connection) error {
	return i.letGo(func() error { return c.drop(ctx, i.ref) })
}

// drop removes an image through CRI. One that is not there is no error.
func (c *connection) drop(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	// CRI-O refuses while something of its last container is still being
	// removed, after the call for that has replied, or was given up.
	var err error
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err = c.images.RemoveImage(ctx, &api.RemoveImageRequest{Image: &api.ImageSpec{Image: ref}})
		if err == nil || ctx.Err() != nil || status.Code(err) == codes.Unavailable || time.Now().After(deadline) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("RemoveImage %s: %w", ref, err)
	}
	return nil
}
