package storage

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
)

// Defaults of DefaultJobs: those of the published report, see plans/kata-io.yaml.
const (
	defaultBlock   = 512 << 10
	defaultFile    = 1 << 30
	defaultNumJobs = 8
)

// Defaults of a run without jobs and sizes: it takes about a minute.
const (
	quickFile = 256 << 20
	quickRun  = 1500 * time.Millisecond // a run below a second shows nothing
)

var quickJobs = []string{"randread", "write"}

// timed makes jobs run for a fixed time, whatever the size of their files.
func timed(jobs []Job, runs time.Duration) []Job {
	for i := range jobs {
		jobs[i].TimeBased, jobs[i].Runtime = true, runs
	}
	return jobs
}

// jobNames maps the names of jobs to I/O patterns. rndrw is sysbench's name.
var jobNames = map[string]string{
	"randread": RWRandRead, "read": RWRead, "randwrite": RWRandWrite, "write": RWWrite, "rndrw": RWRandRW,
}

// DefaultJobs returns a job per name (randread, read, randwrite, write, rndrw) and block
// size: "randread 512k" and so on. An unknown name becomes the job's rw, which is rejected
// later. dd always has one thread.
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

// parseJob parses a job name with or without a block size: "randread" or "randread 4k".
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

// nameOf returns a name for a job without one.
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

// writes reports whether a job writes.
func (j *Job) writes() bool { return j.RW == RWWrite || j.RW == RWRandWrite || j.RW == RWRandRW }
