package containerd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/opencontainers/image-spec/identity"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// importing bounds the import of an image of a few MB.
const importing = time.Minute

// leaseTime is the time after which containerd itself removes the remains of a run that was
// lost.
const leaseTime = 24 * time.Hour

// Image is an imported image in one namespace, with a lease that protects it from removal by others.
type Image struct {
	Ref   string
	Chain string // snapshot of its root file system

	client *client.Client
	runID  string
	lease  leases.Lease
}

// imports makes the names of leases unique in this process.
var imports atomic.Int64

// Import loads an image into the client's namespace and unpacks it for a snapshotter. It reuses
// existing content after a check. An image that it loads is labelled with the run's id, and
// [Image.Release] removes it.
func Import(ctx context.Context, c *client.Client, img *image.Image, snapshotter, runID string) (*Image, error) {
	ctx, cancel := context.WithTimeout(ctx, importing)
	defer cancel()
	i := &Image{Ref: img.Ref, client: c, runID: runID}
	var err error
	i.lease, err = c.LeasesService().Create(ctx, leases.WithID(fmt.Sprintf("tare-%s-image-%d", runID, imports.Add(1))),
		leases.WithLabel(engine.RunLabel, runID), leases.WithExpiration(leaseTime))
	if err != nil {
		return nil, fmt.Errorf("make a lease for the image: %w", err)
	}
	if err := i.load(leases.WithLease(ctx, i.lease.ID), img, snapshotter); err != nil {
		return nil, errors.Join(fmt.Errorf("import the image %s: %w", img.Ref, err), i.Release(context.WithoutCancel(ctx)))
	}
	return i, nil
}

func (i *Image) load(ctx context.Context, img *image.Image, snapshotter string) error {
	if there, err := i.client.ImageService().Get(ctx, img.Ref); err != nil || there.Target.Digest.String() != img.Digest {
		archive, err := img.Open()
		if err != nil {
			return err
		}
		defer archive.Close()
		_, err = i.client.Import(ctx, archive, client.WithImageLabels(map[string]string{engine.RunLabel: i.runID}))
		if err != nil {
			return err
		}
	}
	got, err := i.client.GetImage(ctx, img.Ref)
	if err != nil {
		return fmt.Errorf("find it after the import: %w", err)
	}
	if d := got.Target().Digest.String(); d != img.Digest {
		return fmt.Errorf("containerd has %s under that name, expected %s", d, img.Digest)
	}
	if err := got.Unpack(ctx, snapshotter); err != nil {
		return fmt.Errorf("unpack it with %s: %w", snapshotter, err)
	}
	layers, err := got.RootFS(ctx)
	if err != nil {
		return fmt.Errorf("read its layers: %w", err)
	}
	i.Chain = identity.ChainID(layers).String()
	if err := i.client.LeasesService().AddResource(ctx, i.lease, leases.Resource{ID: i.Chain, Type: "snapshots/" + snapshotter}); err != nil {
		return fmt.Errorf("add its snapshot to the lease: %w", err)
	}
	if _, err := i.client.SnapshotService(snapshotter).Stat(ctx, i.Chain); err != nil {
		return fmt.Errorf("find its snapshot: %w", err)
	}
	return nil
}

// Leave deletes the lease and keeps the image.
func (i *Image) Leave(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return removeError("lease of the image "+i.Ref, i.client.LeasesService().Delete(ctx, i.lease))
}

// Release deletes the lease, and the image if the run loaded it. Other leases keep their content.
func (i *Image) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	there, err := i.client.ImageService().Get(ctx, i.Ref)
	if err == nil && there.Labels[engine.RunLabel] == i.runID {
		err = i.client.ImageService().Delete(ctx, i.Ref)
	}
	return errors.Join(removeError("image "+i.Ref, err), removeError("lease of the image "+i.Ref, i.client.LeasesService().Delete(ctx, i.lease, leases.SynchronousDelete)))
}
