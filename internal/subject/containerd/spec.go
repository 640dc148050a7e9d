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
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// specVersion is the newest version of the runtime spec whose features are
// used. crun before 1.9 refuses 1.2, which containerd itself would write.
const specVersion = "1.0.2"

// spec is the configuration of a container, ready for its record: what
// containerd gives to every container, the run's limits, and a cgroup below the
// run's own, so that it can be found when everything else is lost. The process
// is what commands that are run in it go by.
func (s *session) spec(ctx context.Context, n int, id string) (typeurl.Any, *specs.Process, error) {
	opts := []oci.SpecOpts{
		oci.WithProcessArgs(probe.Name, id),
		oci.WithEnv([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}),
		oci.WithHostname("tare"),
		oci.WithCgroup(s.groupOf(id)),
		limits(s.env.Limits),
	}
	if cgroup.ModeOf(s.hs) == cgroup.V2 {
		opts = append(opts, oci.WithNamespacedCgroup())
	}
	if s.network == subject.NetworkHost {
		opts = append(opts, oci.WithHostNamespace(specs.NetworkNamespace))
	}
	opts = append(opts, oci.WithMounts(s.mounts(n)))
	if s.device.Node != "" {
		opts = append(opts, oci.WithDevices(s.device.Node, subject.DevicePath, "rw"))
	}
	ctx = namespaces.WithNamespace(ctx, s.place.namespace)
	spec, err := oci.GenerateSpec(ctx, s.client, &containers.Container{ID: id}, opts...)
	if err != nil {
		return nil, nil, fmt.Errorf("make the spec of %s: %w", id, err)
	}
	spec.Version = specVersion
	written, err := typeurl.MarshalAny(spec)
	return written, spec.Process, err
}

// mounts are what is at subject.VolumePath on a lane. Without any, that is for
// the workload to make in its snapshot, which is writable. Kata and gVisor make
// a tmpfs inside the guest, of the guest's memory.
func (s *session) mounts(n int) []specs.Mount {
	m := specs.Mount{Destination: subject.VolumePath}
	switch dir := s.volumes.Folder(n); {
	case dir != "":
		m.Type, m.Source, m.Options = "bind", dir, []string{"rbind", "rw"}
	case s.env.Workload.Tmpfs > 0:
		m.Type, m.Source, m.Options = "tmpfs", "tmpfs", engine.TmpfsOptions(s.env.Workload)
	default:
		return nil
	}
	return []specs.Mount{m}
}

// limits sets those that are given.
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
