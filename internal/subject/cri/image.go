package cri

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe/image"
)

// key is the name by which the sessions of this process share an image.
func (d *driver) key(img *image.Image) string { return "cri " + d.socket + " " + img.Ref }

// find asks CRI for an image; "" when it has none of that name.
func (c *connection) find(ctx context.Context, ref string) (id string, err error) {
	reply, err := ask(ctx, "ImageStatus "+ref, c.images.ImageStatus, &api.ImageStatusRequest{Image: &api.ImageSpec{Image: ref}})
	return reply.GetImage().GetId(), err
}

// Import implements engine.Driver.
func (d *driver) Import(ctx context.Context) (made bool, err error) {
	d.imageID, made, err = d.give(ctx, d.probe, func(context.Context) error { return nil })
	return made, err
}

// give gives the engine an image by its own way, unless it has it, and waits
// until CRI knows it: CRI itself can only pull. may returns why it must not.
func (d *driver) give(ctx context.Context, img *image.Image, may func(ctx context.Context) error) (id string, made bool, err error) {
	if id, err = d.conn.find(ctx, img.Ref); err != nil || id != "" {
		return id, false, err
	}
	if err = may(ctx); err == nil {
		made, err = true, d.load(ctx, img)
	}
	if err != nil {
		return "", made, fmt.Errorf("import the image %s: %w", img.Ref, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if id, err = d.conn.find(ctx, img.Ref); err != nil || id != "" {
			return id, true, err
		}
		if time.Now().After(deadline) {
			return "", true, fmt.Errorf("the image %s was imported, and CRI does not know it %v later", img.Ref, patience)
		}
	}
}

// Drop implements engine.Driver, through CRI.
func (d *driver) Drop(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	// CRI-O refuses while something of its last container is still being
	// removed, after the call for that has replied, or was given up.
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		_, err := d.conn.images.RemoveImage(ctx, &api.RemoveImageRequest{Image: &api.ImageSpec{Image: ref}})
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil || status.Code(err) == codes.Unavailable || time.Now().After(deadline):
			return fmt.Errorf("RemoveImage %s: %w", ref, err)
		}
	}
}
