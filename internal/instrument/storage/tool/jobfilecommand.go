package tool

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// fileJob holds the options of a job in a job file.
type fileJob map[string]string

// jobFileCommand returns a fio command with the sections as options. tare's own options are at
// the end of each job, because for most options the last one wins.
func jobFileCommand(j storage.Job, at Place) ([]string, error) {
	jobs := storage.FileJobs(j.Options)
	args := []string{at.Program, "--output-format=json"}
	for _, s := range j.Options {
		args = append(args, option("name", s.Name))
		if at.Device == "" {
			// This has to be first: fio uses the directory known when it reads a file's name.
			args = append(args, option("directory", at.Dir))
		}
		for _, o := range s.Options {
			if !o.IsOurs() && (at.Device == "" || o.Name != "filename") {
				args = append(args, option(o.Name, o.Given()))
			}
		}
		if s.Name == storage.Global {
			continue
		}
		ours, err := fileJob(jobs[0].Options).ours(at)
		if err != nil {
			return nil, fmt.Errorf("job %q: section %q: %w", j.Name, s.Name, err)
		}
		args, jobs = append(args, ours...), jobs[1:]
	}
	return args, nil
}

// ours returns the options that tare sets in a job.
func (j fileJob) ours(at Place) (args []string, err error) {
	if at.Device != "" {
		switch n := j["nrfiles"]; {
		case j["size"] == "":
			return nil, errors.New("it has no size: on a device it would take all of it")
		case n != "" && n != "1" || j["filesize"] != "":
			return nil, errors.New("it has several files or a size of each: a device is one")
		}
		args = append(args, option("filename", at.Device))
	}
	args = append(append(args, option("direct", map[bool]int{true: 1}[at.Direct])), fioReporting...)
	own, _ := storage.ParseFioTime(j["runtime"]) // already checked; 0 if not set
	switch limit := shorter(own, at.Limit); {
	case limit > 0:
		args = append(args, option("runtime", fioTime(limit)))
	case j["time_based"] != "" && j["time_based"] != "0":
		return nil, errors.New("it would never end: it has time_based, and no runtime")
	}
	return args, nil
}

// jobFileFiles returns the files that fio creates for the sections.
func jobFileFiles(j storage.Job, at Place) ([]File, error) {
	var all []File
	place := map[string]int{} // in all, by path
	for _, job := range storage.FileJobs(j.Options) {
		files, err := fileJob(job.Options).files(job.Name, at)
		if err != nil {
			return nil, fmt.Errorf("job %q: section %q: %w", j.Name, job.Name, err)
		}
		for _, f := range files {
			i, there := place[f.Path]
			if !there {
				i, place[f.Path], all = len(all), len(all), append(all, f)
			}
			all[i].Size = max(all[i].Size, f.Size)
		}
		if len(all) > storage.MaxJobFiles {
			return nil, fmt.Errorf("job %q has more than %d files", j.Name, storage.MaxJobFiles)
		}
	}
	return all, nil
}

func (j fileJob) files(name string, at Place) ([]File, error) {
	threads, count := max(numberOrNone(j["numjobs"]), 1), max(numberOrNone(j["nrfiles"]), 1)
	if err := tooMany(threads, count); err != nil {
		return nil, err
	}
	names := strings.Split(j["filename"], ":")
	if j["filename"] != "" {
		count = len(names) // a line's length limits the number of names
	}
	size, err := j.extent(int64(threads), int64(count))
	switch {
	case err != nil:
		return nil, err
	case at.Device != "":
		return []File{{Path: at.Device, Size: size}}, nil
	case j["filename"] == "":
		return numbered(at.Dir, name, threads, count, size)
	}
	var all []File
	for _, own := range names {
		all = append(all, File{Path: path.Join(at.Dir, own), Size: size})
	}
	return all, nil
}

// extent returns the maximum offset that a job uses in each of its files. Each thread starts
// offset_increment after the previous one.
func (j fileJob) extent(threads, files int64) (int64, error) {
	size := sizeOrNone(j["size"])
	each := cmp.Or(sizeOrNone(j["filesize"]), size/files)
	switch step := sizeOrNone(j["offset_increment"]); {
	case each == 0 && size > 0:
		return 0, fmt.Errorf("size=%.100q leaves no byte for each of %d files: write more, or filesize=1M", j["size"], files)
	case each == 0:
		return 0, errors.New("it has no size, so its space is unknown in advance: write size=1G or filesize=1G")
	case step > storage.MaxFile/threads:
		return 0, fmt.Errorf("offset_increment=%.100q for %d threads leads beyond 16T", j["offset_increment"], threads)
	default:
		each += sizeOrNone(j["offset"]) + step*(threads-1)
	}
	if each > storage.MaxFile {
		return 0, errors.New("it goes beyond 16T of a file")
	}
	return each, nil
}
