package bpfstat

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// shortName is the length of names in the kernel, BPF_OBJ_NAME_LEN - 1.
const shortName = 15

// Empty reports whether the filter matches all programs.
func (f *Filter) Empty() bool {
	return !f.Kmesh && len(f.Names)+len(f.Pins)+len(f.Owners)+len(f.Cgroups)+len(f.IDs) == 0
}

// choose returns the programs that match the filter.
func (m *Meter) choose(f Filter, l *Listing) ([]*program, error) {
	chosen := slices.Clone(m.programs)
	keep := func(right func(p *program) bool) {
		chosen = slices.DeleteFunc(chosen, func(p *program) bool { return !right(p) })
	}
	if len(f.IDs) > 0 {
		keep(func(p *program) bool { return slices.Contains(f.IDs, p.ID) })
	}
	if len(f.Names) > 0 {
		for _, glob := range f.Names {
			if _, err := path.Match(glob, ""); err != nil {
				return nil, fmt.Errorf("the pattern %q of names: %w; see path.Match: * ? [a-z] \\x", glob, err)
			}
		}
		keep(func(p *program) bool { return m.named(f.Names, p) })
	}
	for _, by := range []struct {
		any bool
		ids func() (map[uint32]bool, error)
	}{
		{len(f.Pins) > 0, func() (map[uint32]bool, error) { return m.pinnedAt(f.Pins, l) }},
		{len(f.Owners) > 0, func() (map[uint32]bool, error) { return m.ownedBy(f.Owners, l) }},
		{len(f.Cgroups) > 0, func() (map[uint32]bool, error) { return m.attachedTo(f.Cgroups) }},
		{f.Kmesh, func() (map[uint32]bool, error) { return m.recognised("kmesh", l), nil }},
	} {
		if !by.any {
			continue
		}
		ids, err := by.ids()
		if err != nil {
			return nil, err
		}
		keep(func(p *program) bool { return ids[p.ID] })
	}
	return chosen, nil
}

// named reports whether a glob matches a name of the program.
func (m *Meter) named(globs []string, p *program) bool {
	m.fullName(p)
	return slices.ContainsFunc(globs, func(glob string) bool { return matches(glob, p.Name, p.Full) })
}

// longestName is the maximum length of a function name, KSYM_NAME_LEN.
const longestName = 512

// fullName sets the full name of a program's first function. It applies only if the
// short name may be truncated and the program was loaded with BTF.
func (m *Meter) fullName(p *program) {
	if p.named {
		return
	}
	p.named = true
	if len(p.Name) < shortName {
		return
	}
	same, err := ebpf.NewProgramFromID(ebpf.ProgramID(p.ID))
	if err != nil {
		return
	}
	defer same.Close()
	info, err := same.Info()
	if err == nil && len(info.Name) > len(p.Name) && len(info.Name) <= longestName && strings.HasPrefix(info.Name, p.Name) {
		p.Full = info.Name
	}
}

// matches compares a glob with both names. A truncated name without a known full name
// also matches a prefix of a longer glob: "cgroup_connect4_prog" finds
// "cgroup_connect4".
func matches(glob, name, full string) bool {
	if full != "" && globbed(glob, full) || globbed(glob, name) {
		return true
	}
	if full != "" || len(name) < shortName || len(glob) <= shortName {
		return false
	}
	for end := range glob {
		if globbed(glob[:end], name) {
			return true
		}
	}
	return false
}

func globbed(glob, name string) bool {
	ok, err := path.Match(glob, name)
	return ok && err == nil
}

// recognised returns the programs of a known owner, by their maps, pins and names.
func (m *Meter) recognised(owner string, l *Listing) map[uint32]bool {
	ids := map[uint32]bool{}
	pins, problems := allPins()
	l.Problems = append(l.Problems, problems...)
	for _, p := range m.programs {
		x := p.Program
		x.Maps, x.Pins = m.usedBy(p), pinsOf(p, pins)
		ids[p.ID] = ownerOf(&x) == owner
	}
	return ids
}
