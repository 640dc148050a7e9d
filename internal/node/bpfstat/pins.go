package bpfstat

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	bpfpin "github.com/cilium/ebpf/pin"
	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// Limits of a walk over pins.
const (
	maxPins     = 20000
	longestWalk = 500 * time.Millisecond
)

// pin is the path of a pinned program, link or map. For a link, program is the link's
// program.
type pin struct {
	path          string
	program, aMap uint32
}

// pinned opens a file on a bpffs and returns the object behind it.
func pinned(name string) (pin, error) {
	object, err := bpfpin.Load(name, nil)
	if err != nil {
		return pin{}, err
	}
	defer object.Close()
	p := pin{path: name}
	switch one := object.(type) {
	case *ebpf.Program:
		var info *ebpf.ProgramInfo
		if info, err = one.Info(); err == nil {
			id, _ := info.ID()
			p.program = uint32(id)
		}
	case link.Link:
		var info *link.Info
		if info, err = one.Info(); err == nil {
			p.program = uint32(info.Program)
		}
	case *ebpf.Map:
		var info *ebpf.MapInfo
		if info, err = one.Info(); err == nil {
			id, _ := info.ID()
			p.aMap = uint32(id)
		}
	}
	return p, err
}

// pinnedAt returns the programs of paths. A path is the pin of a program or link, the
// pin of a map (which selects all of its users), or a directory (which selects all pins
// below it).
func (m *Meter) pinnedAt(paths []string, l *Listing) (map[uint32]bool, error) {
	ids := map[uint32]bool{}
	for _, path := range paths {
		named := path
		path, err := filepath.EvalSymlinks(path) // WalkDir does not follow symlinks
		var st fs.FileInfo
		if err == nil {
			st, err = os.Stat(path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s is not a pin of a BPF program: %w", named, err)
		}
		var at unix.Statfs_t
		if err := unix.Statfs(path, &at); err != nil {
			return nil, fmt.Errorf("ask for the file system of %s: %w", path, err)
		}
		if at.Type != unix.BPF_FS_MAGIC {
			return nil, fmt.Errorf("%s is not a pin of a BPF program: it is not in a file system of type bpf; they are mounted at %s", path, mounted("bpf"))
		}
		if st.IsDir() {
			pins, problems := walkPins(path, time.Now().Add(longestWalk))
			l.Problems = append(l.Problems, problems...)
			for _, p := range pins {
				if p.program != 0 {
					ids[p.program] = true
				}
			}
			continue
		}
		p, err := pinned(path)
		if err != nil {
			return nil, fmt.Errorf("open the pin %s: %w", path, err)
		}
		ids[p.program] = true
		for _, user := range m.programs {
			if p.aMap != 0 && slices.Contains(user.maps, p.aMap) {
				ids[user.ID] = true
			}
		}
	}
	return ids, nil
}

// bpffs returns the mount points of bpf file systems, each file system once.
func bpffs() ([]string, error) {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("bpf"))
	if err != nil {
		return nil, fmt.Errorf("read where file systems of type bpf are mounted: %w", err)
	}
	seen := map[string]bool{}
	var out []string
	for _, one := range mounts {
		key := fmt.Sprintf("%d:%d %s", one.Major, one.Minor, one.Root)
		if !seen[key] {
			seen[key] = true
			out = append(out, one.Mountpoint)
		}
	}
	return out, nil
}

// allPins returns the pins of all bpf file systems.
func allPins() (pins []pin, problems []string) {
	places, err := bpffs()
	if err != nil {
		return nil, []string{err.Error()}
	}
	until := time.Now().Add(longestWalk)
	for _, place := range places {
		more, wrong := walkPins(place, until)
		pins, problems = append(pins, more...), append(problems, wrong...)
	}
	return pins, problems
}

// walkPins finds the pins in a directory and below it.
func walkPins(folder string, until time.Time) (pins []pin, problems []string) {
	seen, err := walkBelow(folder, maxPins, until, func(path string, e fs.DirEntry) bool {
		if e.Type().IsRegular() {
			// Skip removed files and unknown kinds of objects.
			if p, err := pinned(path); err == nil {
				pins = append(pins, p)
			}
		}
		return true
	})
	switch {
	case errors.Is(err, errMore):
		problems = append(problems, fmt.Sprintf("only the first %d files of %s were checked for pins", seen, folder))
	case err != nil:
		problems = append(problems, fmt.Sprintf("look for pins in %s: %v", folder, err))
	}
	return pins, problems
}

// pinsOf returns the paths of a program's pins, sorted.
func pinsOf(p *program, pins []pin) (paths []string) {
	for _, one := range pins {
		if one.program == p.ID {
			paths = append(paths, one.path)
		}
	}
	slices.Sort(paths)
	return paths
}

var errMore = errors.New("there is more")

// walkBelow calls look for each entry below a directory and counts the entries for
// which it returns true. It returns [errMore] when it exceeds the maximum number or
// time.
func walkBelow(folder string, most int, until time.Time, look func(path string, e fs.DirEntry) bool) (seen int, err error) {
	err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case seen >= most || time.Now().After(until):
			return errMore
		}
		if look(path, e) {
			seen++
		}
		return nil
	})
	return seen, err
}
