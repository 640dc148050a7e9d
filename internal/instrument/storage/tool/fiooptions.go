package tool

import (
	"cmp"
	"strconv"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// job is what was run, by the options that all jobs have alike; what fio does not
// say, or says differently for several jobs, is left out. Early versions of fio 2
// say none of them, and so not the cache either.
func (out *fioOutput) job() (j storage.Job, cache string) {
	j = storage.Job{
		Tool: storage.ToolFio, RW: fioRW(out.option("rw", "readwrite")), Engine: out.option("ioengine"),
		BS: sizeOrNone(out.option("bs", "blocksize")), Size: sizeOrNone(out.option("size")),
		NumJobs: max(numberOrNone(out.option("numjobs")), 1), IODepth: max(numberOrNone(out.option("iodepth")), 1),
	}
	if j.Size == 0 {
		each, files := sizeOrNone(out.option("filesize")), int64(max(numberOrNone(out.option("nrfiles")), 1))
		if each <= maxBytes/files {
			j.Size = each * files
		}
	}
	if j.RW != "" || j.BS > 0 {
		cache = out.cache()
	}
	return j, cache
}

// cache is that of all jobs, "" where they differ. fio has two options for it, of which
// one is the other's opposite.
func (out *fioOutput) cache() string {
	seen := map[bool]bool{}
	for i := range out.Jobs {
		seen[out.own(i, "direct") == "1" || out.own(i, "buffered") == "0"] = true
	}
	if len(seen) > 1 {
		return ""
	}
	return cacheOf(seen[true])
}

// pacing are fio's options that hold a job back, whatever its storage gives.
var pacing = []string{"rate", "rate_iops", "thinktime"}

// paced is the first of those that some job has.
func (out *fioOutput) paced() string {
	for _, name := range pacing {
		for i := range out.Jobs {
			value := out.own(i, name)
			if value != "" && value != "0" && len(value) <= 100 && printable(value) {
				return name + "=" + value
			}
		}
	}
	return ""
}

// cpu is what the jobs used while they ran, in ns.
func (out *fioOutput) cpu() int64 {
	sum := 0.0
	for _, j := range out.Jobs {
		sum += (j.User + j.System) / 100 * float64(j.Runtime) * 1e6
	}
	return nanoseconds(sum, 1)
}

// own is the value of one of these names for a job, whose own options win over those
// of all.
func (out *fioOutput) own(job int, names ...string) (value string) {
	for _, in := range []map[string]string{out.Global, out.Jobs[job].Options} {
		for _, name := range names {
			if v, ok := in[name]; ok {
				value = cmp.Or(v, "1") // one without a value is switched on
			}
		}
	}
	return value
}

// option is the value of one of these names, "" where jobs differ, or it is no plain
// word.
func (out *fioOutput) option(names ...string) (value string) {
	for i := range out.Jobs {
		own := out.own(i, names...)
		if i > 0 && own != value {
			return ""
		}
		value = own
	}
	if len(value) > 100 || !printable(value) {
		return ""
	}
	return value
}

// sizeOrNone reads one of fio's sizes; 0 for any other form, such as different
// blocks for reads and writes, or a part of a device.
func sizeOrNone(s string) int64 {
	n, err := storage.ParseFioSize(s)
	if err != nil {
		return 0
	}
	return n
}

func numberOrNone(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}
