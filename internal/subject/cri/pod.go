package cri

import (
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// stopTimeout is how long (s) a container may take to end on SIGTERM before the
// engine kills it.
const stopTimeout = 10

// held is a pod, and maybe a container in it. A lane gets a new one with every pod
// and every container: a call that was given up may still write into the old one.
type held struct {
	config    *api.PodSandboxConfig
	pod       string // id
	container string // id
	making    *api.ContainerConfig
	// unsure tells that the call for the pod or the container was given up: the
	// engine may have made it, or be about to.
	unsure bool
}

// podConfig is that of a new pod.
func (d *driver) podConfig(name string) *api.PodSandboxConfig {
	return &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: name, Uid: name, Namespace: "tare"},
		LogDirectory: d.ground.Logs(),
		Labels:       map[string]string{engine.RunLabel: d.env.RunID},
		// Without this part cri-dockerd gives the pod a network card.
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent: d.cgroupParent(name),
			// As a kubelet has them since 1.22: runtimes with a VM make it that
			// large. They limit nothing by themselves.
			Resources: resources(d.env.Limits),
			Overhead:  resources(d.env.Limits.Overhead()),
			SecurityContext: &api.LinuxSandboxSecurityContext{
				NamespaceOptions: &api.NamespaceOption{Network: d.podNetwork(), Pid: api.NamespaceMode_CONTAINER},
				Seccomp:          unconfined(),
			},
		},
	}
}

// unconfined is what a kubelet asks for by default. Without it some engines put
// a profile of their own in its place.
func unconfined() *api.SecurityProfile {
	return &api.SecurityProfile{ProfileType: api.SecurityProfile_Unconfined}
}

// cgroupParent is where a pod has its cgroups. With the cgroupfs driver that
// is a group of its own below the run's, so that nothing of it stays. systemd takes the units
// of pods away itself, but slices that were made for them would stay: there it
// is one that it always has. An engine that does not tell keeps its default.
func (d *driver) cgroupParent(pod string) string {
	switch d.facts.cgroups {
	case "cgroupfs":
		return d.ground.Group(pod)
	case "systemd":
		return "system.slice"
	}
	return ""
}

// resources are limits. What is 0 is not limited, for engines too; a period stands
// with a quota only.
func resources(l subject.Limits) *api.LinuxContainerResources {
	r := &api.LinuxContainerResources{MemoryLimitInBytes: l.Memory, CpuShares: l.CPUShares}
	if quota := l.CPUQuota(); quota > 0 {
		r.CpuQuota, r.CpuPeriod = quota, subject.CPUPeriod
	}
	return r
}

// mounts are what the user wants, and a container's volume or its pod's tmpfs. Without those, what is at
// subject.VolumePath is for the workload to make in its root file system, which is
// writable.
func (d *driver) mounts(pod, volume string) []*api.Mount {
	var all []*api.Mount
	if c := d.env.Workload.Cargo; c != nil {
		for _, m := range c.Mounts {
			source, destination, readOnly := m.Parts()
			all = append(all, &api.Mount{ContainerPath: destination, HostPath: source, Readonly: readOnly, Propagation: api.MountPropagation_PROPAGATION_PRIVATE})
		}
	}
	m := &api.Mount{ContainerPath: subject.VolumePath, Propagation: api.MountPropagation_PROPAGATION_PRIVATE}
	switch tmpfs := d.tmpfses.folder(pod); {
	case volume != "":
		m.HostPath = volume
	case tmpfs != "":
		m.HostPath, m.SelinuxRelabel = tmpfs, true // as a kubelet asks for an emptyDir, and not for a path of the host
	default:
		return all
	}
	return append(all, m)
}

// containerConfig is that of a new container in a pod, whose name it has.
func (d *driver) containerConfig(name string, place engine.Place) *api.ContainerConfig {
	c := &api.ContainerConfig{
		Mounts:   d.mounts(name, place.Folder),
		Metadata: &api.ContainerMetadata{Name: name},
		// Like a kubelet: by its id, so that no name is looked up.
		Image:   &api.ImageSpec{Image: d.imageID, UserSpecifiedImage: d.probe.Ref},
		Args:    d.env.Workload.Args(name),
		Labels:  map[string]string{engine.RunLabel: d.env.RunID},
		LogPath: engine.LogName(name),
		Linux: &api.LinuxContainerConfig{
			Resources: resources(d.env.Limits),
			SecurityContext: &api.LinuxContainerSecurityContext{
				NamespaceOptions: &api.NamespaceOption{Network: d.podNetwork(), Pid: api.NamespaceMode_CONTAINER},
				Seccomp:          unconfined(),
			},
		},
	}
	if place.Device != "" { // what a kubelet gives a container as a volume with the mode Block
		c.Devices = []*api.Device{{ContainerPath: subject.DevicePath, HostPath: place.Device, Permissions: "rw"}}
	}
	return c
}

func (d *driver) podNetwork() api.NamespaceMode {
	if d.network == subject.NetworkBridge {
		return api.NamespaceMode_POD
	}
	return api.NamespaceMode_NODE
}
