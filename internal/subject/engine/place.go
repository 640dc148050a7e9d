package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Places describes where the containers of a session keep the files of their workload. That
// is a folder of the host, a tmpfs, a device, or their root file system. Docker, podman and
// isula share it.
type Places struct {
	*Volumes
	All Place // of every lane, without its folder
}

// OpenPlaces makes the folders of the workload's volume and checks its device, see [FindDevice].
func OpenPlaces(env subject.Env, runtimes ...string) (p Places, err error) {
	if p.All.Device, err = FindDevice(env.Workload, runtimes...); err != nil {
		return p, err
	}
	if c := env.Workload.Cargo; c != nil {
		p.All.Mounts = c.Mounts
	}
	if env.Workload.Tmpfs > 0 {
		// Docker and podman default to noexec; a folder of the host allows exec.
		p.All.Tmpfs = append(TmpfsOptions(env.Workload), "exec")
	}
	p.Volumes, err = OpenVolumes(env)
	return p, err
}

// On returns the place of the container on a lane.
func (p Places) On(lane int) Place {
	place := p.All
	place.Folder = p.Volumes.Folder(lane)
	return place
}

// Place says where one container keeps its files. The zero Place is its root file system.
type Place struct {
	Folder string          // on the host, mounted at subject.VolumePath; "" for none
	Tmpfs  []string        // options of a tmpfs there; nil for none
	Device Device          // for subject.DevicePath
	Mounts []setting.Mount // further mounts that the user requested
}

// DeviceAccess is the access to a device in the devices cgroup's form: read, write, mknod.
const DeviceAccess = "rwm"

// Binds returns the mounts in the form of -v of docker, podman and isula. Z relabels the
// folder, which SELinux requires; without SELinux it has no effect.
func (p Place) Binds() (all []string) {
	if p.Folder != "" {
		all = append(all, p.Folder+":"+subject.VolumePath+":Z")
	}
	for _, m := range p.Mounts {
		all = append(all, string(m))
	}
	return all
}

// Flags returns the place as command-line options. tmpfs are the options of its tmpfs, if it
// has one.
func (p Place) Flags(tmpfs ...string) []string {
	var line []string
	if p.Tmpfs != nil {
		mount := subject.VolumePath
		if len(tmpfs) > 0 {
			mount += ":" + strings.Join(tmpfs, ",")
		}
		line = append(line, "--tmpfs", mount)
	}
	for _, bind := range p.Binds() {
		line = append(line, "--volume", bind)
	}
	if p.Device.Node != "" {
		line = append(line, "--device", p.Device.Node+":"+subject.DevicePath+":"+DeviceAccess)
	}
	return line
}

// Elsewhere returns the error of a workload that needs a folder or device of this machine if
// its engine is on another machine. called is the kind of engine ("daemon"). why is the
// reason for considering it remote; "" means that it is local.
func Elsewhere(w subject.Workload, called, why string) error {
	var errs []error
	mount := ""
	if w.Cargo != nil && len(w.Cargo.Mounts) > 0 {
		mount = string(w.Cargo.Mounts[0])
	}
	for _, need := range []struct{ path, one, all string }{{w.Volume, "volume", "folders"}, {w.Device, "device", "devices"}, {mount, "mount", "folders"}} {
		if need.path != "" && why != "" {
			errs = append(errs, fmt.Errorf("a %s on a %s elsewhere (%s), which does not have this machine's %s: %w", need.one, called, why, need.all, subject.ErrUnsupported))
		}
	}
	return errors.Join(errs...)
}

// LimitFlags returns the limits as options of docker, podman and isula. -1 removes a limit
// that an engine sets by default.
func LimitFlags(l subject.Limits) []string {
	var line []string
	quota := l.CPUQuota()
	for _, limit := range []struct {
		flag  string
		value int64
	}{
		{"--memory", l.Memory}, {"--pids-limit", l.Pids}, {"--cpu-shares", l.CPUShares},
		{"--cpu-period", subject.CPUPeriod * min(quota, 1)}, {"--cpu-quota", quota},
	} {
		if limit.value != 0 {
			line = append(line, limit.flag, strconv.FormatInt(limit.value, 10))
		}
	}
	return line
}
