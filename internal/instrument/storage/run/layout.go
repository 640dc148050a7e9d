package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tare-bench/tare/internal/instrument/storage/tool"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// layOut writes the files that a job expects. If the volume outlives sandboxes, the
// host's probe writes them once for all targets. All targets then use the same blocks of
// the device, and no sandbox has them in its cache. Otherwise the probe inside writes.
func (v *visit) layOut(ctx context.Context, files []tool.File) error {
	v.step("laying out files")
	began := machine.Now()
	defer func() { v.busy += machine.Now() - began }()
	if err := v.volume.Check(); err != nil {
		return fail(record.FailState, nil, "nothing was written: %v", err)
	}
	if v.lasts() {
		if len(files) > 0 && slices.Equal(files, v.laid) {
			v.cell.Layout = layoutOf(files, 0)
			return nil
		}
		v.laid = nil
		if err := v.sweep(); err != nil {
			return err
		}
	}
	bySize := map[int64][]string{}
	for _, f := range files {
		bySize[f.Size] = append(bySize[f.Size], f.Path)
	}
	for size, paths := range bySize {
		if err := v.fill(ctx, size, paths); err != nil {
			return err
		}
	}
	if v.lasts() {
		v.laid = files
	}
	if len(files) > 0 {
		v.cell.Layout = layoutOf(files, machine.Now()-began)
	}
	return nil
}

func layoutOf(files []tool.File, took int64) *record.Layout {
	return &record.Layout{Files: len(files), Bytes: total(files), Took: took}
}

// fill runs the probe to write files of the same size.
func (v *visit) fill(ctx context.Context, size int64, paths []string) error {
	run := v.inside
	if v.lasts() {
		run, paths = v.options.Run, v.onHost(paths)
	}
	filled, e, err := probed(ctx, v.schedule, run, probe.FillArgs(size, paths...), probe.ParseFilled)
	var file *probe.FileError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fail(record.FailTimeout, &e, "the files were not laid out within --timeout %v", v.options.Plan.Timeout)
	case errors.As(err, &file):
		return fail(record.FailError, &e, "the files could not be laid out: %s: %s", file.Path, cmp.Or(meanings[file.Errno], file.Errno.Error()))
	case err != nil:
		return fail(record.FailError, &e, "the files could not be laid out: %v", err)
	case filled.Files != len(paths) || filled.Bytes != size:
		return fail(record.FailError, &e, "the probe laid out %d files of %d bytes instead of %d of %d", filled.Files, filled.Bytes, len(paths), size)
	}
	return nil
}

// meanings are the errors of a volume that is too small or read-only.
var meanings = map[syscall.Errno]string{
	syscall.ENOSPC: "no space left on the volume", syscall.EDQUOT: "no space left on the volume",
	syscall.EROFS: "the volume is read-only",
}

// onHost translates a sandbox's paths on the volume to paths on the host.
func (s *stage) onHost(paths []string) []string {
	out := slices.Clone(paths)
	for i, p := range paths {
		if rest, ok := strings.CutPrefix(p, subject.VolumePath+"/"); ok {
			out[i] = filepath.Join(s.volume.Workload.Volume, "0", rest)
		} else if p == subject.DevicePath {
			out[i] = s.volume.Workload.Device
		}
	}
	return out
}

// sweep removes files of earlier jobs from a volume that outlives sandboxes.
func (s *stage) sweep() error {
	if s.volume.Workload.Volume == "" {
		return nil
	}
	folder := filepath.Join(s.volume.Workload.Volume, "0")
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(folder, e.Name())))
	}
	if err != nil {
		return fail(record.FailError, nil, "files of an earlier job could not be removed from the volume: %v", err)
	}
	return nil
}

// MaxOfDisk is the share of the free space that a job may use.
const MaxOfDisk = 0.9

// room returns a failure if a job's files would fill the volume, as the sandbox sees it.
func (v *visit) room(ctx context.Context, at tool.Place, files []tool.File) error {
	need := max(total(files), v.pair.Job.Bytes())
	if at.Device != "" || need == 0 || v.lasts() && v.laid != nil && need <= total(v.laid) {
		return nil
	}
	list, err := v.fileSystems(ctx, v.mountPoint())
	if err != nil || list[0].Errno != 0 || list[0].Size <= 0 || list[0].Free < 0 {
		return err // the file system does not report it; the write will fail if needed
	}
	free := list[0].Free
	if v.lasts() {
		free += total(v.laid) // removed first
	}
	if v.volume.Kind == record.VolumeTmpfs { // the job may use all of it
		if need > free {
			return fail(record.FailError, nil, "the files of %s do not fit in the %s that are free on the tmpfs: use a smaller --size or --scale", mib(need), mib(free))
		}
		return nil
	}
	if float64(need) > MaxOfDisk*float64(free) {
		return fail(record.FailError, nil, "the files of %s do not fit in 90 %% of the %s that are free on the volume: use a smaller --size or --scale, or a larger disk", mib(need), mib(free))
	}
	return nil
}

// mib formats a size precisely enough that two similar sizes look different.
func mib(bytes int64) string {
	if bytes%(1<<20) == 0 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.2f MiB", float64(bytes)/(1<<20))
}

func total(files []tool.File) int64 {
	var sum int64
	for _, f := range files {
		sum += f.Size
	}
	return sum
}
