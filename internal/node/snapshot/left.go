package snapshot

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// maxFolders bounds the search for groups that stayed: a node with a hundred
// thousand cgroups has other troubles.
const maxFolders = 100_000

// Left implements overhead.Meter. Groups in which nobody was left when they were
// looked at, such as Kata's overhead groups on some machines, are in no reading:
// they are found by the ids in their names.
func (s *Reader) Left(of *record.Reading, ids []string) []string {
	var out []string
	for _, g := range of.Groups {
		if g.Charge == record.ChargeShared || g.Lane < 0 {
			continue
		}
		if there, err := s.groups.Group(g.Path); err == nil {
			there.Close()
			out = append(out, g.Path)
		}
	}
	found, err := s.root.Cgroups()
	if err != nil {
		return out
	}
	for _, h := range found {
		for _, path := range named(s.root, h, ids) {
			if !slices.Contains(out, path) {
				out = append(out, path)
			}
		}
	}
	return out
}

// named are the groups of a hierarchy that bear one of the ids, without those
// below them.
func named(root machine.Root, h machine.Hierarchy, ids []string) []string {
	base := filepath.Join(string(root), h.Mount)
	var out []string
	seen := 0
	_ = filepath.WalkDir(base, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil // it was removed meanwhile
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
