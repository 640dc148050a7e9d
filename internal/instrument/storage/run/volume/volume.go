// Package volume makes the places ready where the files of storage jobs lie: a
// folder on a disk, an NFS mount, a size for a tmpfs, a block device that may be
// overwritten. What it makes is in the run's own folder and bears the run's id.
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

// Volume is a place that is ready.
type Volume struct {
	storage.Volume
	// Workload is the part that gives the volume to containers.
	Workload subject.Workload
	// On is what it lies on, nothing where each target has its own.
	On On
	// Own is a folder on the volume for the host's own measurements, which are
	// not any target's; "" where there is none. It lies on OwnOn; of rootfs that is
	// what tare's own folders lie on, which may be another than an engine's.
	Own   string
	OwnOn On
	// Size is that of a device, in bytes; 0 of other volumes.
	Size int64

	claim *claimed // of a device
	letGo []func() error
}

// On is what files lie on.
type On struct {
	Device string // by the name in /proc/diskstats, "" where there is none
	Type   string // of the file system on the host, "" where there is none
	// Answers is the device that answers in the end, see [disk.Below], and Memory and
	// Unknown why it is none.
	Answers, Memory, Unknown string
}

func lyingOn(device, fsType string) On {
	o := On{Device: device, Type: fsType, Answers: device}
	if device == "" {
		return o
	}
	answers, memory, err := disk.Below(device)
	if err != nil {
		o.Unknown = err.Error()
	} else {
		o.Answers, o.Memory = answers, memory
	}
	return o
}

// Asked says what is asked for.
type Asked struct {
	RunID    string
	Dir      string // the run's own folder for this volume
	Bytes    int64  // that the largest job needs
	Destroys []string
}

// errNotHere says that the machine cannot have the volume, with what to do.
type errNotHere struct {
	error
	advice string
}

func (e *errNotHere) Unwrap() error { return e.error }

// Advice is what would change that a volume cannot be had, "" where err is no
// such error.
func Advice(err error) string {
	if e, ok := errors.AsType[*errNotHere](err); ok {
		return e.advice
	}
	return ""
}

func notHere(advice, format string, args ...any) error {
	return &errNotHere{fmt.Errorf(format, args...), advice}
}

// Prepare makes a volume ready, in the time that ctx leaves. The error says why
// it cannot be had; nothing is left then.
func Prepare(ctx context.Context, v storage.Volume, a Asked) (*Volume, error) {
	out := &Volume{Volume: v}
	var err error
	switch v.Kind {
	case record.VolumeRootfs: // each container's own
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

// folder is a folder on a file system that is there.
type folder struct {
	lanes, own string
	on         On
}

func under(path string) (On, error) {
	device, fsType, err := disk.Under(path)
	return lyingOn(device, fsType), err
}

// makeFolder makes one. What is there is removed again if it fails.
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

// closing bounds the removal of one folder, which may be on a server that has
// fallen silent. Local files are removed far faster.
var closing = 2 * time.Minute

// removeTree is replaced by tests.
var removeTree = mounts.RemoveTree

// removing is the removal of a folder.
func removing(dir string, remove func(string) error) func() error {
	return func() error {
		if _, err := within(closing, func() (struct{}, error) { return struct{}{}, remove(dir) }); err != nil {
			return fmt.Errorf("remove %s: %w", dir, err)
		}
		return nil
	}
}

// Close removes what was made.
func (v *Volume) Close() error {
	var errs []error
	for _, f := range slices.Backward(v.letGo) {
		errs = append(errs, f())
	}
	v.letGo = nil
	return errors.Join(errs...)
}
