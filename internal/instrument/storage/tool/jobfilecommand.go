package tool

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// aliases are fio's other names of options that are looked at here.
var aliases = map[string]string{
	"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "timeout": "runtime", "io_limit": "io_size",
}

// fileJob is a job of a job file with all that it has from global sections.
type fileJob struct {
	name    string
	options map[string]string // by the first of its names; "1" for one without a value
}

func (j fileJob) value(name string) string { return j.options[name] }

// jobsOf are the jobs, as fio has them: each with the options of all global
// sections before it, and its own.
func jobsOf(sections []storage.Section) []fileJob {
	common := map[string]string{}
	var jobs []fileJob
	for _, s := range sections {
		into := common
		if s.Name != global {
			into = make(map[string]string, len(common)+len(s.Options))
			for name, value := range common {
				into[name] = value
			}
			jobs = append(jobs, fileJob{name: s.Name, options: into})
		}
		for _, o := range s.Options {
			name := o.Name
			if other, ok := aliases[name]; ok {
				name = other
			}
			into[name] = given(o.Value)
		}
	}
	return jobs
}

// jobFileCommand gives fio the sections as options, and at the end of each job what
// tare sets: of most options the last one counts.
func jobFileCommand(j storage.Job, at Place) ([]string, error) {
	return jobFileArgs(j, at, func(job fileJob) ([]string, error) {
		ours := append([]string{option("direct", digit(at.Direct))}, fioReporting...)
		own, err := job.runtime()
		if err != nil {
			return nil, err
		}
		switch limit := shorter(own, at.Limit); {
		case limit > 0:
			ours = append(ours, option("runtime", fioTime(limit)))
		case job.on("time_based"):
			return nil, fmt.Errorf("section %q would never end: it has time_based, and no runtime", job.name)
		}
		return ours, nil
	})
}

// FioLayout is the command that lays out the files of a job with a job file's
// options, of which fio itself knows names and sizes; false where there is
// nothing to lay out. Files that are only written are laid out as well.
func FioLayout(j storage.Job, at Place) ([]string, bool) {
	if len(j.Options) == 0 || at.Device != "" || at.check() != nil {
		return nil, false
	}
	args, err := jobFileArgs(j, at, func(fileJob) ([]string, error) {
		return []string{"--direct=0", "--overwrite=1", "--create_only=1"}, nil
	})
	return args, err == nil
}

func jobFileArgs(j storage.Job, at Place, ours func(fileJob) ([]string, error)) ([]string, error) {
	if err := checkSections(j.Options); err != nil {
		return nil, fmt.Errorf("job %q: %w", j.Name, err)
	}
	jobs := jobsOf(j.Options)
	args := []string{at.Program, "--output-format=json"}
	for _, s := range j.Options {
		args = append(args, option("name", s.Name))
		if at.Device == "" {
			// First of all: fio puts a file into the folder that it knows of when
			// it reads the file's name.
			args = append(args, option("directory", at.Dir))
		}
		for _, o := range s.Options {
			if !slices.Contains(ourOptions, o.Name) && (at.Device == "" || o.Name != "filename") {
				args = append(args, option(o.Name, given(o.Value)))
			}
		}
		if s.Name == global {
			continue
		}
		job := jobs[0]
		jobs = jobs[1:]
		if at.Device != "" {
			if err := job.checkOnDevice(); err != nil {
				return nil, fmt.Errorf("job %q: section %q: %w", j.Name, s.Name, err)
			}
			args = append(args, option("filename", at.Device))
		}
		set, err := ours(job)
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", j.Name, err)
		}
		args = append(args, set...)
	}
	return args, nil
}

// checkOnDevice wants a job to say how much of a device it takes.
func (j fileJob) checkOnDevice() error {
	if j.value("size") == "" {
		return errors.New("it has no size: on a device it would take all of it")
	}
	if n := j.value("nrfiles"); n != "" && n != "1" || j.value("filesize") != "" {
		return errors.New("it has several files or a size of each: a device is one")
	}
	return nil
}

func (j fileJob) on(name string) bool { return j.value(name) != "" && j.value(name) != "0" }

// runtime is 0 for none.
func (j fileJob) runtime() (time.Duration, error) {
	if j.value("runtime") == "" {
		return 0, nil
	}
	return storage.ParseFioTime(j.value("runtime"))
}

// jobFileFiles are the files that fio makes of the sections.
func jobFileFiles(j storage.Job, at Place) ([]File, error) {
	if err := checkSections(j.Options); err != nil {
		return nil, fmt.Errorf("job %q: %w", j.Name, err)
	}
	largest := map[string]int64{}
	var paths []string
	for _, job := range jobsOf(j.Options) {
		files, err := job.files(at)
		if err != nil {
			return nil, fmt.Errorf("job %q: section %q: %w", j.Name, job.name, err)
		}
		for _, f := range files {
			if _, there := largest[f.Path]; !there {
				paths = append(paths, f.Path)
			}
			largest[f.Path] = max(largest[f.Path], f.Size)
		}
		if len(paths) > storage.MaxJobFiles {
			return nil, fmt.Errorf("job %q has more than %d files", j.Name, storage.MaxJobFiles)
		}
	}
	all := make([]File, len(paths))
	for i, p := range paths {
		all[i] = File{Path: p, Size: largest[p]}
	}
	return all, nil
}

func (j fileJob) files(at Place) ([]File, error) {
	threads, count := max(numberOrNone(j.value("numjobs")), 1), max(numberOrNone(j.value("nrfiles")), 1)
	if err := tooMany(threads, count); err != nil {
		return nil, err
	}
	names := strings.Split(j.value("filename"), ":")
	if j.value("filename") != "" {
		count = len(names) // at most as many as a line has bytes
	}
	size, err := j.extent(int64(threads), int64(count))
	switch {
	case err != nil:
		return nil, err
	case at.Device != "":
		return []File{{Path: at.Device, Size: size}}, nil
	case j.value("filename") == "":
		return numbered(at.Dir, j.name, threads, count, size)
	}
	var all []File
	for _, name := range names {
		all = append(all, File{Path: path.Join(at.Dir, name), Size: size})
	}
	return all, nil
}

// extent is how far into each of its files a job goes, at most: each thread
// begins offset_increment after the one before.
func (j fileJob) extent(threads, files int64) (int64, error) {
	var n struct{ size, each, offset, step int64 }
	for _, o := range []struct {
		name string
		to   *int64
	}{{"size", &n.size}, {"filesize", &n.each}, {"offset", &n.offset}, {"offset_increment", &n.step}} {
		value := j.value(o.name)
		if value == "" {
			continue
		}
		var err error
		if *o.to, err = storage.ParseFioSize(value); err != nil {
			return 0, fmt.Errorf("%s=%.100q cannot be used: %w", o.name, value, err)
		}
	}
	if n.each == 0 {
		n.each = n.size / files
	}
	if n.each == 0 && n.size > 0 {
		return 0, fmt.Errorf("size=%.100q leaves no byte for each of %d files: write more, or filesize=1M", j.value("size"), files)
	}
	if n.each == 0 {
		return 0, errors.New("it has no size: how much room it takes cannot be told before; write size=1G or filesize=1G")
	}
	if n.step > storage.MaxFile/threads {
		return 0, fmt.Errorf("offset_increment=%.100q for %d threads leads beyond 16T", j.value("offset_increment"), threads)
	}
	if n.each += n.offset + n.step*(threads-1); n.each > storage.MaxFile {
		return 0, errors.New("it goes beyond 16T of a file")
	}
	return n.each, nil
}
