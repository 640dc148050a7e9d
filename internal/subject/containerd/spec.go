package containerd

import (
	"context"
	"fmt"

	"github.com/containerd/containerd/v2/core/containers"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/containerd/containerd/v2/pkg/oci"
	"github.com/containerd/typeurl/v2"
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/netns"
)

// specVersion is the newest runtime spec with a feature in use. crun before 1.9 refuses 1.2, which
// containerd would write.
const specVersion = "1.0.2"

// spec returns the spec of a container: containerd's default, the run's limits, and a cgroup
// below the run's own, by which the container can be found. It also returns the spec's process,
// which is the template for execs.
func (d *driver) spec(ctx context.Context, id string, place engine.Place) (typeurl.Any, *specs.Process, error) {
	opts := []oci.SpecOpts{
		oci.WithProcessArgs(append([]string{probe.Name}, d.env.Workload.Args(id)...)...),
		oci.WithEnv([]string{"PATH=" + image.Path}),
		oci.WithHostname("tare"),
		oci.WithCgroup(d.ground.Group(id)),
		limits(d.env.Limits),
	}
	if cgroup.ModeOf(d.hs) == cgroup.V2 {
		opts = append(opts, oci.WithNamespacedCgroup())
	}
	if d.network == subject.NetworkHost {
		opts = append(opts, oci.WithHostNamespace(specs.NetworkNamespace))
	}
	// Not rbind for a read-only one: mounts below it would stay writable.
	opts = append(opts, oci.WithMounts(place.SpecMounts([]string{"rbind", "rw"}, []string{"bind", "ro"})))
	if c := d.env.Workload.Cargo; c != nil {
		opts = append(opts, oci.WithEnv(c.Env), oci.WithProcessCwd(c.Dir), oci.WithUIDGID(c.UID, c.GID))
	}
	if place.Device.Node != "" {
		opts = append(opts, oci.WithDevices(place.Device.Node, subject.DevicePath, "rw"))
	}
	ctx = namespaces.WithNamespace(ctx, d.at.namespace)
	spec, err := oci.GenerateSpec(ctx, d.client, &containers.Container{ID: id}, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("make the spec of %s: %w", id, err)
	}
	spec.Version = specVersion
	if d.networks != nil {
		path, address, err := d.networks.For(id)
		if err != nil {
			return nil, nil, err
		}
		netns.Join(spec, path)
		d.containers[id].address = address
	}
	written, err := typeurl.MarshalAny(spec)
	return written, spec.Process, err
}

// limits returns the option for all limits above 0.
func limits(l subject.Limits) oci.SpecOpts {
	return func(_ context.Context, _ oci.Client, _ *containers.Container, spec *oci.Spec) error {
		r := engine.Resources(l)
		spec.Linux.Resources.Memory, spec.Linux.Resources.Pids, spec.Linux.Resources.CPU = r.Memory, r.Pids, r.CPU
		return nil
	}
}
