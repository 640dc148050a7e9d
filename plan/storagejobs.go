package plan

import (
	"fmt"
)

// jobNames are the jobs that have a name of their own, and what each does. The
// last is sysbench's name for it.
var jobNames = []struct{ name, rw string }{
	{"randread", "randread"}, {"read", "read"}, {"randwrite", "randwrite"}, {"write", "write"}, {"rndrw", "randrw"},
}

// DefaultJobs are the jobs of those names (randread, read, randwrite, write,
// rndrw) with each block size: "randread 512k" and so on. A name that is none of
// these becomes the job's rw as it is, which [Job.Validate] refuses. dd has one
// thread, whatever numJobs says.
func DefaultJobs(names []string, bs []int64, tool string, size int64, numJobs int) []Job {
	if tool == ToolDD {
		numJobs = 0
	}
	var all []Job
	for _, name := range names {
		rw := name
		for _, known := range jobNames {
			if known.name == name {
				rw = known.rw
			}
		}
		for _, b := range bs {
			all = append(all, Job{Name: name + " " + FormatSize(b), Tool: tool, RW: rw, BS: b, Size: size, NumJobs: numJobs})
		}
	}
	return all
}

// FormatSize writes bytes as fio does, in the largest unit that divides them:
// "512k", "1G", "1000".
func FormatSize(bytes int64) string {
	units := "kMGTP"
	n, unit := bytes, ""
	for len(units) > 0 && n != 0 && n%1024 == 0 {
		n, unit, units = n/1024, units[:1], units[1:]
	}
	return fmt.Sprint(n) + unit
}
