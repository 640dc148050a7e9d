package engine

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Places are where the containers of a session have the files of their workload:
// a folder of the host, a tmpfs, a device, or nothing but their own root file
// system. Docker, podman and isula know the same ones.
type Places struct {
	volumes *Volumes
	all     Place // but for the folder
}

// OpenPlaces makes the folders of the workload's volume, and looks whether its
// device is one.
func OpenPlaces(env subject.Env) (*Places, error) {
	device, err := FindDevice(env.Workload)
	if err != nil {
		return nil, err
	}
	p := &Places{all: Place{Device: device.Node}}
	if c := env.Workload.Cargo; c != nil {
		p.all.Mounts = c.Mounts
	}
	if env.Workload.Tmpfs > 0 {
		// Docker and podman have noexec where nothing is said, a folder of the
		// host has not.
		p.all.Tmpfs = append(TmpfsOptions(env.Workload), "exec")
	}
	p.volumes, err = OpenVolumes(env)
	return p, err
}

// On is the place of the container on a lane.
func (p *Places) On(lane int) Place {
	place := p.all
	place.Folder = p.volumes.Folder(lane)
	return place
}

// Close removes the folders that were made.
func (p *Places) Close() error {
	if p == nil {
		return nil
	}
	return p.volumes.Close()
}

// Place is where one container has its files. The zero Place is its own root
// file system.
type Place struct {
	Folder string          // of the host, at subject.VolumePath; "" for none
	Tmpfs  []string        // the options of a tmpfs there, nil for none
	Device string          // the node of a block device, for subject.DevicePath; "" for none
	Mounts []setting.Mount // what the user wants in every container
}

// DeviceAccess is what a container may do with its device, in a cgroup's words:
// read, write and make a node of it.
const DeviceAccess = "rwm"

// Binds are the mounts as docker's, podman's and isula's -v have them. Z gives the folder
// the container's own label where SELinux would deny it else; elsewhere it does nothing.
func (p Place) Binds() (all []string) {
	if p.Folder != "" {
		all = append(all, p.Folder+":"+subject.VolumePath+":Z")
	}
	for _, m := range p.Mounts {
		all = append(all, string(m))
	}
	return all
}

// Flags are the place on a command line; the tmpfs of one that has one is given
// these options.
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
	if p.Device != "" {
		line = append(line, "--device", p.Device+":"+subject.DevicePath+":"+DeviceAccess)
	}
	return line
}

// Elsewhere is the error of a workload that needs something of this machine, on
// an engine ("daemon") of which why says that it is on another one. A why of ""
// says that it is on this one.
func Elsewhere(w subject.Workload, called, why string) error {
	var errs []error
	for _, need := range []struct{ path, one, all string }{{w.Volume, "volume", "folders"}, {w.Device, "device", "devices"}, {mounted(w), "mount", "folders"}} {
		if need.path != "" && why != "" {
			errs = append(errs, fmt.Errorf("a %s on a %s elsewhere (%s), which does not have this machine's %s: %w", need.one, called, why, need.all, subject.ErrUnsupported))
		}
	}
	return errors.Join(errs...)
}

// mounted is a folder of this machine that the user wants in containers, "" for none.
func mounted(w subject.Workload) string {
	if w.Cargo == nil || len(w.Cargo.Mounts) == 0 {
		return ""
	}
	return string(w.Cargo.Mounts[0])
}

// LimitFlags are the limits that are given, on the command lines of docker,
// podman and isula, which agree on them. -1 is none where an engine has one of its
// own.
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
