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
	opts = append(opts, oci.WithMounts(mounts(place)))
	if c := d.env.Workload.Cargo; c != nil {
		opts = append(opts, oci.WithEnv(c.Env), oci.WithProcessCwd(c.Dir), oci.WithUIDGID(c.UID, c.GID))
	}
	if place.Device != "" {
		opts = append(opts, oci.WithDevices(place.Device, subject.DevicePath, "rw"))
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

// mounts returns the mounts that the user requested, and the one at subject.VolumePath. Without one,
// the workload makes it in its writable snapshot. Kata and gVisor make a tmpfs inside the guest, in
// the guest's memory.
func mounts(place engine.Place) []specs.Mount {
	var all []specs.Mount
	for _, wanted := range place.Mounts {
		source, destination, readOnly := wanted.Parts()
		options := []string{"rbind", "rw"}
		if readOnly {
			options = []string{"bind", "ro"} // mounts below it would stay writable
		}
		all = append(all, specs.Mount{Destination: destination, Type: "bind", Source: source, Options: options})
	}
	m := specs.Mount{Destination: subject.VolumePath}
	switch {
	case place.Folder != "":
		m.Type, m.Source, m.Options = "bind", place.Folder, []string{"rbind", "rw"}
	case place.Tmpfs != nil:
		m.Type, m.Source, m.Options = "tmpfs", "tmpfs", place.Tmpfs
	default:
		return all
	}
	return append(all, m)
}

// limits returns the options for all limits above 0.
func limits(l subject.Limits) oci.SpecOpts {
	var opts []oci.SpecOpts
	if l.Memory > 0 {
		opts = append(opts, oci.WithMemoryLimit(uint64(l.Memory)))
	}
	if l.Pids > 0 {
		opts = append(opts, oci.WithPidsLimit(l.Pids))
	}
	if l.CPUShares > 0 {
		opts = append(opts, oci.WithCPUShares(uint64(l.CPUShares)))
	}
	if quota := l.CPUQuota(); quota > 0 {
		opts = append(opts, oci.WithCPUCFS(quota, subject.CPUPeriod))
	}
	return oci.Compose(opts...)
}
