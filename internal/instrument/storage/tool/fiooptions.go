package tool

import (
	"cmp"
	"strconv"

	"github.com/tare-bench/tare/internal/instrument/storage"
)

// job returns the job that ran, from the options that all jobs share. Options that are
// missing or differ between jobs are left out. Early versions of fio 2 print no options, so
// the cache mode is unknown, too.
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

// cache returns the cache mode of all jobs, or "" if they differ. fio has two opposite
// options for it.
func (out *fioOutput) cache() string {
	seen := map[bool]bool{}
	for i := range out.Jobs {
		seen[out.own(i, "direct") == "1" || out.own(i, "buffered") == "0"] = true
	}
	if len(seen) > 1 {
		return ""
	}
	return cacheOf[seen[true]]
}

// pacing are fio's options that limit the rate of a job, regardless of its storage.
var pacing = []string{"rate", "rate_iops", "thinktime"}

// paced returns the first pacing option that some job sets.
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

// cpu returns the CPU time of the jobs, in ns.
func (out *fioOutput) cpu() int64 {
	sum := 0.0
	for _, j := range out.Jobs {
		sum += (j.User + j.System) / 100 * float64(j.Runtime) * 1e6
	}
	return nanoseconds(sum, 1)
}

// own returns the value of one of these options for a job. The job's own options override the
// global ones.
func (out *fioOutput) own(job int, names ...string) (value string) {
	for _, in := range []map[string]string{out.Global, out.Jobs[job].Options} {
		for _, name := range names {
			if v, ok := in[name]; ok {
				value = cmp.Or(v, "1") // an option without a value is on
			}
		}
	}
	return value
}

// option returns the value of one of these options, or "" if jobs differ or it is not a plain
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

// sizeOrNone parses a fio size. It returns 0 for other forms, such as separate block
// sizes for reads and writes, or a share of a device.
func sizeOrNone(s string) int64 {
	n, _ := storage.ParseFioSize(s)
	return n
}

func numberOrNone(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 1<<30 {
		return 0
	}
	return n
}
