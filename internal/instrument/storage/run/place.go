package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// shm is the mount of POSIX shared memory. Runtimes choose its size.
const shm = "/dev/shm"

// look determines the place of the volume on a target, unless it is recorded already.
func (v *visit) look(ctx context.Context, at tool.Place) error {
	if v.placed[v.Target.Info.Name] {
		return nil
	}
	paths := []string{"/", shm}
	if path := v.mountPoint(); at.Device == "" && path != "/" {
		paths = append(paths, path)
	}
	list, err := v.fileSystems(ctx, paths...)
	if err != nil {
		return err
	}
	p := v.lies()
	p.Target, p.Volume, p.Mounts = v.Target.Info.Name, v.volume.Name, []record.FileSystem{}
	if p.Answers == p.Device {
		p.Answers = ""
	}
	for _, fs := range list {
		m := record.FileSystem{Path: fs.Path, Size: fs.Size, Free: fs.Free}
		if fs.Errno != 0 {
			m.Problem = fs.Errno.Error()
		} else {
			m.Type = cmp.Or(names[fs.Type], fmt.Sprintf("0x%x", fs.Type))
		}
		p.Mounts = append(p.Mounts, m)
	}
	v.looked[v.Target.Info.Name] = &p
	return nil
}

// restOfPlaces records the places that are not recorded yet. They are of targets whose
// jobs all failed before the test of O_DIRECT.
func (s *stage) restOfPlaces() error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.looked)) {
		errs = append(errs, s.Line(*s.looked[name]))
	}
	clear(s.looked)
	return errors.Join(errs...)
}

// mountPoint returns a path in the sandbox on the volume's file system. The host has no
// root file system per sandbox. Its files are in a directory of the run, which may be on
// another disk than /.
func (v *visit) mountPoint() string {
	if v.volume.Kind == record.VolumeRootfs && v.Target.Info.Kind != "host" {
		return "/"
	}
	return subject.VolumePath
}

// fileSystems runs the probe inside and returns one file system per path.
func (v *visit) fileSystems(ctx context.Context, paths ...string) ([]probe.FileSystem, error) {
	list, e, err := probed(ctx, v.schedule, v.inside, probe.FileSystemArgs(paths...), probe.ParseFileSystems)
	if err == nil && len(list) != len(paths) {
		err = fmt.Errorf("the probe reported %d paths instead of %d", len(list), len(paths))
	}
	if err != nil {
		return nil, fail(record.FailError, &e, "the file systems of the sandbox are unknown: %v", err)
	}
	for i := range list {
		list[i].Path = paths[i] // the host has another path for it
	}
	return list, nil
}

// directBlock is the size of the read that tests O_DIRECT, in bytes.
const directBlock = 4096

// tryDirect adds to the place how the file system handles O_DIRECT, and records the
// place. If a job failed before this test, the next job tries again.
func (v *visit) tryDirect(ctx context.Context, files []tool.File) error {
	name := v.Target.Info.Name
	if v.looked[name] == nil {
		return nil
	}
	v.found = v.looked[name]
	delete(v.looked, name)
	file := subject.VolumePath + "/tare-direct"
	if v.volume.Workload.Device != "" {
		file = subject.DevicePath // it has data to read, whatever the job lays out
	} else if len(files) > 0 {
		file = files[0].Path
	} else if e, err := v.inTime(ctx, v.inside, probe.FillArgs(directBlock, file)); err != nil || e.Exit != 0 {
		return ctx.Err() // the job reports the cause
	}
	switch d, _, err := probed(ctx, v.schedule, v.inside, probe.DirectArgs(file), probe.ParseDirect); {
	case err != nil: // unknown
	case d.Taken:
		v.found.Direct = record.DirectTaken
	case d.Errno == syscall.EINVAL:
		v.found.Direct = record.DirectRefused
	}
	return ctx.Err()
}

// names are the file systems by the type of statfs(2), from linux/magic.h and the headers of
// the file systems.
var names = map[uint64]string{
	0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x794c7630: "overlay", 0x01021994: "tmpfs", 0x858458f6: "ramfs",
	0x6969: "nfs", 0x01021997: "9p", 0x65735546: "fuse", 0x2fc12fc1: "zfs", 0xf2f52010: "f2fs", 0x73717368: "squashfs",
	0xe0f5e1e2: "erofs", 0xff534d42: "cifs", 0xfe534d42: "smb2", 0x00c36400: "ceph", 0x61756673: "aufs",
	0x0bd00bd0: "lustre", 0xca451a4e: "bcachefs", 0x4d44: "vfat",
}
