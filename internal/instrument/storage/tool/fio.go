package tool

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// file returns the path of the device, or of the file of a job with one file.
func (at Place) file() string { return cmp.Or(at.Device, path.Join(at.Dir, "test")) }

// fioReporting requests the quantiles of whole requests. With an engine that does not
// wait for a request they differ from those of its completion.
var fioReporting = []string{"--group_reporting=1", "--lat_percentiles=1", "--clat_percentiles=0", "--percentile_list=50:95:99:99.9"}

// openFiles is how many files fio may hold open over all threads. Containers may be
// limited to 1024 descriptors.
const openFiles = 512

// fioCommand returns a fio command with JSON output. All threads share a single file; with
// several files, each thread has its own.
func fioCommand(j storage.Job, at Place) ([]string, error) {
	if len(j.Options) > 0 {
		return jobFileCommand(j, at)
	}
	files, err := fioWhere(j, at)
	if err != nil {
		return nil, err
	}
	args := append([]string{at.Program, "--output-format=json"}, files...)
	args = append(args, option("direct", map[bool]int{true: 1}[at.Direct]), option("iodepth", max(j.IODepth, 1)), "--thread", option("rw", j.RW),
		option("ioengine", cmp.Or(j.Engine, storage.DefaultEngine)), option("bs", j.BS), option("numjobs", max(j.NumJobs, 1)), "--randrepeat=1")
	if j.Fsync > 0 {
		args = append(args, option("fsync", j.Fsync))
	}
	if j.EndFsync {
		args = append(args, "--end_fsync=1")
	}
	switch limit := shorter(j.Runtime, at.Limit); {
	case limit > 0:
		args = append(args, option("runtime", fioTime(limit)))
	case j.TimeBased:
		return nil, fmt.Errorf("job %q would never end: it starts over, and has no runtime", j.Name)
	}
	if j.TimeBased {
		args = append(args, "--time_based")
	}
	args = append(args, fioReporting...)
	return append(args, option("name", jobName(j.Name))), nil
}

// fioWhere returns the options for the names and sizes of the files.
func fioWhere(j storage.Job, at Place) ([]string, error) {
	files, err := fioFiles(j, at)
	switch {
	case err != nil:
		return nil, err
	case len(files) == 1:
		return []string{option("filename", files[0].Path), option("size", files[0].Size)}, nil
	}
	args := []string{option("directory", at.Dir), option("nrfiles", j.Files), option("filesize", files[0].Size), "--file_service_type=sequential"}
	if threads := max(j.NumJobs, 1); len(files) > openFiles {
		args = append(args, option("openfiles", max(openFiles/threads, 1)))
	}
	return args, nil
}

// fioFiles returns the files of a job. With a directory, fio names them by job, thread
// and file.
func fioFiles(j storage.Job, at Place) ([]File, error) {
	if len(j.Options) > 0 {
		return jobFileFiles(j, at)
	}
	size, err := fileSize(j)
	switch {
	case err != nil:
		return nil, err
	case at.Device != "" && j.Files > 1:
		return nil, fmt.Errorf("job %q has %d files: a device is one", j.Name, j.Files)
	case j.Files <= 1:
		return []File{{Path: at.file(), Size: size}}, nil
	}
	return numbered(at.Dir, jobName(j.Name), max(j.NumJobs, 1), j.Files, size)
}

// numbered returns files with fio's names.
func numbered(dir, name string, threads, files int, size int64) ([]File, error) {
	if err := tooMany(threads, files); err != nil {
		return nil, err
	}
	all := make([]File, 0, threads*files)
	for t := range threads {
		for f := range files {
			all = append(all, File{Path: path.Join(dir, fmt.Sprintf("%s.%d.%d", name, t, f)), Size: size})
		}
	}
	return all, nil
}

// tooMany returns an error if there are too many files.
func tooMany(threads, files int) error {
	if threads < 1 || files < 1 || files > storage.MaxJobFiles || threads > storage.MaxJobFiles/files {
		return fmt.Errorf("%d threads with %d files each are too many files: at most %d are allowed", threads, files, storage.MaxJobFiles)
	}
	return nil
}

// fileSize returns the size of each file in whole blocks: with O_DIRECT no tool reads or
// writes a partial block.
func fileSize(j storage.Job) (int64, error) {
	size := cmp.Or(j.FileSize, j.Size/int64(max(j.Files, 1)))
	if j.BS <= 0 || size < j.BS || j.Files > storage.MaxJobFiles || size > storage.MaxFile {
		return 0, fmt.Errorf("job %q: files of %d bytes for blocks of %d bytes cannot be", j.Name, size, j.BS)
	}
	return size / j.BS * j.BS, nil
}

// check rejects unknown tools and directories with a colon, where fio separates names.
func (at Place) check(j storage.Job) error {
	if _, ok := known[j.Tool]; !ok {
		return fmt.Errorf("unknown tool %q", j.Tool)
	}
	if len(j.Options) > 0 { // fio runs as root, so the rules apply to them here, too
		if wrong := j.Wrong(); len(wrong) > 0 {
			return fmt.Errorf("job %q: %w", j.Name, wrong)
		}
	}
	for _, p := range []string{at.Dir, at.Device} {
		if p == "" && (at.Device != "" || at.Dir != "") {
			continue
		}
		if !path.IsAbs(p) || path.Clean(p) != p || strings.ContainsAny(p, `:\`) || !printable(p) {
			return fmt.Errorf("the path %.200q of the files has to be absolute and plain, without a colon", p)
		}
	}
	if at.Program == "" {
		return errors.New("there is no program to run")
	}
	return nil
}

func option(name string, value any) string { return fmt.Sprintf("--%s=%v", name, value) }

// shorter returns the shorter of two durations; 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// fioTime formats a duration for fio: in seconds without a unit, or in ms.
func fioTime(d time.Duration) string {
	if d%time.Second == 0 {
		return strconv.FormatInt(int64(d/time.Second), 10)
	}
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms"
}

// jobName converts a job's name to one that fio can use in file names. "global" is not a
// job in fio.
func jobName(name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, name)
	clean = strings.TrimLeft(clean, "-.")
	clean = strings.TrimRight(clean[:min(len(clean), 60)], ".")
	if clean == "" || strings.HasPrefix(strings.ToLower(clean), "global") {
		clean = "job-" + clean
	}
	return clean
}
