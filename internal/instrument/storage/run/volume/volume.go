// Package volume prepares the places for the files of storage jobs. A place is a
// directory on a disk, an NFS mount, a tmpfs size, or a block device that may be
// overwritten. What it creates is in the run's own directory and bears the run's id.
package volume

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/disk"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Volume is a volume that is ready for use.
type Volume struct {
	storage.Volume
	// Workload is the configuration that mounts the volume in containers.
	Workload subject.Workload
	// On is the storage below the volume; empty if each target has its own.
	On record.Place
	// Own is a directory on the volume for measurements of the host, or "". It is
	// stored on OwnOn. For rootfs that is the storage of tare's own directories,
	// which may differ from an engine's.
	Own   string
	OwnOn record.Place
	// Size is the size of a device in bytes; 0 for other volumes.
	Size int64

	claim *claimed // of a device
	letGo []func() error
}

// lyingOn returns the storage below files. Answers is set even if it is Device.
func lyingOn(device, fsType string) record.Place {
	p := record.Place{Device: device, HostType: fsType, Answers: device}
	if device == "" {
		return p
	}
	answers, memory, err := disk.Below(device)
	if err != nil {
		p.Unknown = err.Error()
	} else {
		p.Answers, p.Memory = answers, memory
	}
	return p
}

// Asked is a request for a volume.
type Asked struct {
	RunID    string
	Dir      string // the run's own directory for this volume
	Bytes    int64  // needed by the largest job
	Destroys []string
}

// errNotHere means that the volume is unavailable on this machine, and what to do.
type errNotHere struct {
	error
	advice string
}

func (e *errNotHere) Unwrap() error { return e.error }

// Advice returns how to make the volume available, or "" for other errors.
func Advice(err error) string {
	if e, ok := errors.AsType[*errNotHere](err); ok {
		return e.advice
	}
	return ""
}

func notHere(advice, format string, args ...any) error {
	return &errNotHere{fmt.Errorf(format, args...), advice}
}

// Prepare makes a volume ready before ctx ends. If the volume is unavailable, it returns the reason
// and leaves nothing behind.
func Prepare(ctx context.Context, v storage.Volume, a Asked) (*Volume, error) {
	out := &Volume{Volume: v}
	var err error
	switch v.Kind {
	case record.VolumeRootfs: // each container has its own
		out.Own = filepath.Join(a.Dir, "own")
		if err = os.MkdirAll(out.Own, 0o700); err == nil {
			out.OwnOn, err = under(out.Own)
		}
	case record.VolumeBind:
		var f folder
		if f, err = makeFolder(a.Dir); err == nil {
			out.take(f)
		}
	case record.VolumeTmpfs:
		err = out.tmpfs(a.Bytes)
	case record.VolumeNFS:
		err = out.nfs(ctx, a)
	case record.VolumeDevice:
		err = out.device(a)
	default:
		err = fmt.Errorf("unknown volume %q", v.Kind)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("volume %s: %w", v.Name, err), out.Close())
	}
	return out, nil
}

// folder is a directory on an existing file system.
type folder struct {
	lanes, own string
	on         record.Place
}

func under(path string) (record.Place, error) {
	device, fsType, err := disk.Under(path)
	return lyingOn(device, fsType), err
}

// makeFolder creates the directories, and removes them again if it fails.
func makeFolder(dir string) (folder, error) {
	f := folder{lanes: filepath.Join(dir, "lanes"), own: filepath.Join(dir, "own")}
	err := errors.Join(os.MkdirAll(f.lanes, 0o755), os.MkdirAll(f.own, 0o700))
	if err == nil {
		f.on, err = under(f.own)
	}
	if err != nil {
		return folder{}, errors.Join(err, os.RemoveAll(f.lanes), os.RemoveAll(f.own))
	}
	return f, nil
}

func (v *Volume) take(f folder) {
	v.Workload.Volume, v.Own, v.On, v.OwnOn = f.lanes, f.own, f.on, f.on
	v.letGo = append(v.letGo, removing(f.lanes, removeTree), removing(f.own, removeTree))
}

// closing limits the removal of one directory, which may be on a server that stopped
// answering. Local files are removed far faster.
var closing = 2 * time.Minute

// removeTree is replaced by tests.
var removeTree = mounts.RemoveTree

// removing returns a function that removes a directory.
func removing(dir string, remove func(string) error) func() error {
	return func() error {
		if _, err := within(closing, func() (struct{}, error) { return struct{}{}, remove(dir) }); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		return nil
	}
}

// Close removes everything that Prepare created.
func (v *Volume) Close() error {
	var errs []error
	for _, f := range slices.Backward(v.letGo) {
		errs = append(errs, f())
	}
	v.letGo = nil
	return errors.Join(errs...)
}
