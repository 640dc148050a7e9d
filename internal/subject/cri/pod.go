package cri

import (
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// stopTimeout is the time (s) from SIGTERM to SIGKILL.
const stopTimeout = 10

// held is a lane's pod, with or without a container. Each new pod or container on a lane gets a
// new held, because an abandoned call may still write to the old one.
type held struct {
	config    *api.PodSandboxConfig
	pod       string // id
	container string // id
	request   *api.ContainerConfig
	// abandoned means that the call that creates the pod or the container was abandoned. The
	// engine may have created it, or may still do so.
	abandoned bool
}

// podConfig returns the configuration of a new pod.
func (d *driver) podConfig(name string) *api.PodSandboxConfig {
	return &api.PodSandboxConfig{
		Metadata:     &api.PodSandboxMetadata{Name: name, Uid: name, Namespace: "tare"},
		LogDirectory: d.ground.Logs(),
		Labels:       map[string]string{engine.RunLabel: d.env.RunID},
		// Without Linux, cri-dockerd gives the pod a network interface.
		Linux: &api.LinuxPodSandboxConfig{
			CgroupParent: d.cgroupParent(name),
			// A kubelet sets these since 1.22. They determine the size of a VM and limit nothing
			// otherwise.
			Resources: resources(d.env.Limits),
			Overhead:  resources(d.env.Limits.Overhead()),
			SecurityContext: &api.LinuxSandboxSecurityContext{
				NamespaceOptions: &api.NamespaceOption{Network: d.podNetwork(), Pid: api.NamespaceMode_CONTAINER},
				Seccomp:          unconfined(),
			},
		},
	}
}

// unconfined is a kubelet's default. Without it some engines apply their own profile.
func unconfined() *api.SecurityProfile {
	return &api.SecurityProfile{ProfileType: api.SecurityProfile_Unconfined}
}

// cgroupParent returns the parent of a pod's cgroups. With the cgroupfs driver it is a separate
// group below the run's, so that the whole group can be removed. With systemd it is an existing
// slice, because systemd removes the units of pods but not slices that were made for them. If
// the driver is unknown, the engine's default applies.
func (d *driver) cgroupParent(pod string) string {
	switch d.facts.cgroups {
	case "cgroupfs":
		return d.ground.Group(pod)
	case "systemd":
		return "system.slice"
	}
	return ""
}

// resources returns limits; 0: unlimited. The period is set only with a quota.
func resources(l subject.Limits) *api.LinuxContainerResources {
	r := &api.LinuxContainerResources{MemoryLimitInBytes: l.Memory, CpuShares: l.CPUShares}
	if quota := l.CPUQuota(); quota > 0 {
		r.CpuQuota, r.CpuPeriod = quota, subject.CPUPeriod
	}
	return r
}

// mounts returns the mounts that the user requested, and the container's volume or the pod's
// tmpfs. Without both, the workload makes subject.VolumePath in its writable root.
func (d *driver) mounts(pod string, place engine.Place) []*api.Mount {
	var all []*api.Mount
	for _, m := range place.Mounts {
		source, destination, readOnly := m.Parts()
		all = append(all, &api.Mount{ContainerPath: destination, HostPath: source, Readonly: readOnly, Propagation: api.MountPropagation_PROPAGATION_PRIVATE})
	}
	m := &api.Mount{ContainerPath: subject.VolumePath, Propagation: api.MountPropagation_PROPAGATION_PRIVATE}
	switch tmpfs := d.tmpfses.folder(pod); {
	case place.Folder != "":
		m.HostPath = place.Folder
	case tmpfs != "":
		m.HostPath, m.SelinuxRelabel = tmpfs, true // as a kubelet does for an emptyDir, unlike a hostPath
	default:
		return all
	}
	return append(all, m)
}

// containerConfig returns the configuration of a new container, which has its pod's name.
func (d *driver) containerConfig(name string, place engine.Place) *api.ContainerConfig {
	c := &api.ContainerConfig{
		Mounts:   d.mounts(name, place),
		Metadata: &api.ContainerMetadata{Name: name},
		// A kubelet also refers to the image by id, which saves a look-up by name.
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
	if place.Device.Node != "" { // as a kubelet does for a volume with the mode Block
		c.Devices = []*api.Device{{ContainerPath: subject.DevicePath, HostPath: place.Device.Node, Permissions: "rw"}}
	}
	return c
}

func (d *driver) podNetwork() api.NamespaceMode {
	if d.network == subject.NetworkBridge {
		return api.NamespaceMode_POD
	}
	return api.NamespaceMode_NODE
}
