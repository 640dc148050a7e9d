package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
)

// What DefaultJobs are where nothing else is said: those of the published
// report, see plans/kata-io.yaml.
const (
	defaultBlock   = 512 << 10
	defaultFile    = 1 << 30
	defaultNumJobs = 8
)

// What a measure is that says nothing of jobs and sizes: an answer in about a minute.
const (
	quickFile = 256 << 20
	quickRun  = 1500 * time.Millisecond // a run below a second shows nothing
)

var quickJobs = []string{"randread", "write"}

// timed has jobs go on for a time, whatever the size of their files.
func timed(jobs []Job, runs time.Duration) []Job {
	for i := range jobs {
		jobs[i].TimeBased, jobs[i].Runtime = true, runs
	}
	return jobs
}

// jobNames are the jobs that have a name of their own, and what each does. rndrw is
// sysbench's name.
var jobNames = map[string]string{
	"randread": RWRandRead, "read": RWRead, "randwrite": RWRandWrite, "write": RWWrite, "rndrw": RWRandRW,
}

// DefaultJobs are the jobs of those names (randread, read, randwrite, write,
// rndrw) with each block size: "randread 512k" and so on. A name that is none of
// these becomes the job's rw as it is, which is refused. dd has one thread, whatever
// numJobs says.
func DefaultJobs(names []string, bs []int64, tool string, size int64, numJobs int) (all []Job) {
	if tool == ToolDD {
		numJobs = 0
	}
	for _, name := range names {
		for _, b := range bs {
			all = append(all, Job{Name: name + " " + FormatSize(b), Tool: tool, RW: cmp.Or(jobNames[name], name), BS: b, Size: size, NumJobs: numJobs})
		}
	}
	return all
}

// parseJob reads a job that is given by its name, with or without a block size:
// "randread" or "randread 4k".
func parseJob(s string) (Job, error) {
	name, size, sized := strings.Cut(strings.Join(strings.Fields(s), " "), " ")
	if jobNames[name] == "" {
		return Job{}, unknownJob(s)
	}
	bs := int64(defaultBlock)
	if sized {
		var err error
		if bs, err = parseSize(size); err != nil {
			return Job{}, err
		}
	}
	return DefaultJobs([]string{name}, []int64{bs}, ToolFio, defaultFile, defaultNumJobs)[0], nil
}

func unknownJob(s string) error {
	return fmt.Errorf("%s is not a job: write randread, read, randwrite, write or rndrw, or all of its fields", option.Quote(s))
}

// nameOf is what a job without a name is called.
func nameOf(j *Job) string {
	words := []string{j.RW}
	if j.Tool != ToolFio {
		words = []string{j.Tool, j.RW}
	}
	if j.BS > 0 {
		words = append(words, FormatSize(j.BS))
	}
	return strings.TrimSpace(strings.Join(words, " "))
}

// Takes says whether the job is run with that cache on volumes of that kind.
func (j *Job) Takes(kind, cache string) bool {
	return (len(j.Volumes) == 0 || slices.Contains(j.Volumes, kind)) && (len(j.Caches) == 0 || slices.Contains(j.Caches, cache))
}

// writes tells whether a job writes, beside reading or not.
func (j *Job) writes() bool { return j.RW == RWWrite || j.RW == RWRandWrite || j.RW == RWRandRW }
