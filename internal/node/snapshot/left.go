package snapshot

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

const maxFolders = 100_000 // folders searched for remaining groups

// Left implements overhead.Meter. Groups without processes, such as Kata's overhead groups
// on some machines, are in no reading. Left finds them by the ids in their names.
func (s *Reader) Left(of *record.Reading, ids []string) []string {
	var out []string
	for _, g := range of.Groups {
		if g.Charge != record.ChargeShared && g.Lane >= 0 && s.There(g.Path) {
			out = append(out, g.Path)
		}
	}
	found, _ := s.root.Cgroups()
	for _, h := range found {
		for _, path := range named(s.root, h, ids) {
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// There reports whether a cgroup exists.
func (s *Reader) There(path string) bool {
	g, err := s.groups.Group(path)
	if err == nil {
		g.Close()
	}
	return err == nil
}

// named returns the groups of a hierarchy with one of the ids in the name, without their
// descendants.
func named(root machine.Root, h machine.Hierarchy, ids []string) []string {
	base := filepath.Join(string(root), h.Mount)
	var out []string
	seen := 0
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // the group was removed during the walk
		}
		if seen++; seen > maxFolders {
			return fs.SkipAll
		}
		where := "/" + strings.Trim(strings.TrimPrefix(path, base), "/")
		if attribution.Names(where, ids) {
			out = append(out, where)
			return fs.SkipDir
		}
		return nil
	})
	return out
}

const mountsLimit = 16 << 20 // bytes; a node has a mount per layer and volume

// LeftBeside implements overhead.Meter. It looks for the ids in arguments and mount
// points, also in the mount namespaces of daemons.
func (s *Reader) LeftBeside(of *record.Reading, ids []string) *record.LeftBeside {
	left := &record.LeftBeside{Processes: []string{}, Mounts: []string{}}
	for _, p := range procs.Mentioning(ids) {
		left.Processes = append(left.Processes, fmt.Sprintf("%s (%d)", p.Name, p.Pid))
	}
	lists := []string{"/proc/thread-self/mountinfo"}
	for i := range of.Processes {
		if p := &of.Processes[i]; p.Role == record.RoleDaemon {
			lists = append(lists, fmt.Sprintf("/proc/%d/mountinfo", p.Pid))
		}
	}
	for i, list := range lists {
		text, err := s.root.Read(list, mountsLimit)
		if i > 0 && (procs.Gone(err) || errors.Is(err, unix.EINVAL)) {
			continue // the daemon has ended, or is a zombie
		}
		if err != nil {
			left.Mounts = nil // incomplete
			return left
		}
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) > 4 && attribution.Names(fields[4], ids) && !slices.Contains(left.Mounts, fields[4]) {
				left.Mounts = append(left.Mounts, fields[4])
			}
		}
	}
	return left
}
