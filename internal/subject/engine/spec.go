package engine

import (
	specs "github.com/opencontainers/runtime-spec/specs-go"

	"github.com/tare-bench/tare/internal/subject"
)

// Resources returns the limits above 0 in the form of a runtime's spec: runtimes differ on the
// meaning of a limit of 0.
func Resources(l subject.Limits) *specs.LinuxResources {
	r := &specs.LinuxResources{}
	if l.Memory > 0 {
		r.Memory = &specs.LinuxMemory{Limit: &l.Memory}
	}
	if l.Pids > 0 {
		r.Pids = &specs.LinuxPids{Limit: &l.Pids}
	}
	shares, quota, period := uint64(l.CPUShares), l.CPUQuota(), uint64(subject.CPUPeriod)
	if shares > 0 || quota > 0 {
		r.CPU = &specs.LinuxCPU{}
	}
	if shares > 0 {
		r.CPU.Shares = &shares
	}
	if quota > 0 {
		r.CPU.Quota, r.CPU.Period = &quota, &period
	}
	return r
}

// SpecMounts returns the mounts that the user requested and the one at subject.VolumePath, if there
// is one, in the form of a runtime's spec. writable and readOnly are the options of binds.
func (p Place) SpecMounts(writable, readOnly []string) (all []specs.Mount) {
	for _, m := range p.Mounts {
		source, destination, protected := m.Parts()
		options := writable
		if protected {
			options = readOnly
		}
		all = append(all, specs.Mount{Destination: destination, Type: "bind", Source: source, Options: options})
	}
	switch {
	case p.Folder != "":
		all = append(all, specs.Mount{Destination: subject.VolumePath, Type: "bind", Source: p.Folder, Options: writable})
	case p.Tmpfs != nil:
		all = append(all, specs.Mount{Destination: subject.VolumePath, Type: "tmpfs", Source: "tmpfs", Options: p.Tmpfs})
	}
	return all
}
