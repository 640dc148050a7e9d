package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// ensureImage makes sure that the daemon has the workload's image, and tells
// whether it had to be loaded. Nothing is pulled: what the daemon has afterwards
// under the image's name is the image, or it is an error.
func (c *connection) ensureImage(ctx context.Context, i *image.Image) (loaded bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	has, err := c.hasImage(ctx, i)
	if has || err != nil {
		return false, err
	}
	reply, err := c.ImageLoad(ctx, bytes.NewReader(i.Archive), client.ImageLoadWithQuiet(true))
	if err != nil {
		return false, fmt.Errorf("load the image %s: %w", i.Ref, c.plain(err))
	}
	defer reply.Close()
	said, err := loadReply(reply)
	if err != nil {
		return false, fmt.Errorf("load the image %s: %w", i.Ref, err)
	}
	has, err = c.hasImage(ctx, i)
	if err == nil && !has {
		err = fmt.Errorf("load the image %s: the daemon has none of that name afterwards; it said %q", i.Ref, said)
	}
	return true, err
}

// hasImage looks for the image. Another one under its name is an error.
func (c *connection) hasImage(ctx context.Context, i *image.Image) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := c.ImageInspect(ctx, i.Ref)
	switch {
	case cerrdefs.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the image %s: %w", i.Ref, c.plain(err))
	// The classic store calls an image by its configuration, the one of
	// containerd by its manifest.
	case found.ID != i.ID && found.ID != i.Digest:
		return false, fmt.Errorf("the daemon has another image under the name %s (%s instead of %s); remove it: docker rmi %s", i.Ref, found.ID, i.ID, i.Ref)
	}
	return true, nil
}

// loadReply reads the messages of a load, one of which may be an error though
// the status was 200.
func loadReply(r io.Reader) (said string, err error) {
	messages := json.NewDecoder(io.LimitReader(r, 1<<20))
	for {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return said, nil
		case err != nil:
			return said, fmt.Errorf("unreadable reply: %w", err)
		case m.Error != "":
			return said, errors.New(m.Error)
		}
		if said += m.Stream; len(said) > 1024 {
			said = said[:1024]
		}
	}
}

// dropImage removes the image unless a container uses it.
func (c *connection) dropImage(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	_, err := c.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true})
	if cerrdefs.IsNotFound(err) || cerrdefs.IsConflict(err) {
		return nil // gone already, or in use by another run, which removes it
	}
	if err != nil {
		return fmt.Errorf("remove the image %s: %w", ref, c.plain(err))
	}
	return nil
}

// ownImages names the workload's images that the daemon has, whatever files they
// carry: a run that was interrupted does not say which it had.
func (c *connection) ownImages(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := c.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("label", engine.ImageFilter)})
	if err != nil {
		return nil, fmt.Errorf("list the workload's images: %w", c.plain(err))
	}
	var refs []string
	for _, i := range found.Items {
		refs = append(refs, engine.OwnImages(i.RepoTags, i.Labels)...)
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}
