package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// What a job may ask for. The JSON Schema states the same.
const (
	MaxJobName  = 100     // characters
	MinBlock    = 512     // bytes: a sector, the least that can go past the page cache
	MaxBlock    = 1 << 30 // bytes
	MaxJobFiles = 100_000
	MaxNumJobs  = 1024
	MaxIODepth  = 65_536
	MaxRequests = 1_000_000_000_000
	MaxFsync    = 1_000_000
	MinRuntime  = 100 * time.Millisecond // below it there is more beginning and end than job
	MaxRuntime  = 30 * 24 * time.Hour
)

// What a job can do, in fio's words.
const (
	RWRead      = "read"
	RWWrite     = "write"
	RWRandRead  = "randread"
	RWRandWrite = "randwrite"
	RWRandRW    = "randrw"
)

// DefaultEngine is fio's ioengine of a job that names none.
const DefaultEngine = "psync"

// engines of fio that read and write files, and whether more than one request of
// a thread can be on its way. Others run programs, load libraries or use the
// network; a job file can ask for them, which says so openly.
var ioEngines = map[string]bool{
	"sync": false, "psync": false, "vsync": false, "pvsync": false, "pvsync2": false,
	"libaio": true, "io_uring": true, "posixaio": true,
}

// Validate says everything that is wrong with the job.
func (j *Job) Validate() error { return joined(j.complaints()) }

func (j *Job) complaints() []complaint {
	all := slices.Concat(j.nameComplaints(), cachesComplaints("caches", j.Caches), j.kindsComplaints())
	if len(j.Options) > 0 {
		return append(all, j.optionsComplaints()...)
	}
	all = slices.Concat(all, j.blockComplaints(), j.rangeComplaints())
	switch j.Tool {
	case ToolFio:
		return slices.Concat(all, j.fioComplaints(), j.sizeComplaints())
	case ToolDD:
		return slices.Concat(all, j.ddComplaints(), j.sizeComplaints())
	case ToolSysbench:
		return slices.Concat(all, j.sysbenchComplaints(), j.sizeComplaints())
	}
	return append(all, complain("tool", "%s is not known: write fio, dd or sysbench", quote(j.Tool)))
}

func (j *Job) nameComplaints() []complaint {
	switch {
	case j.Name == "":
		return []complaint{complain("name", "it has none: write one, such as randread 4k")}
	case utf8.RuneCountInString(j.Name) > MaxJobName:
		return []complaint{complain("name", "%s is %d characters long: at most %d are allowed", quote(j.Name), utf8.RuneCountInString(j.Name), MaxJobName)}
	case !utf8.ValidString(j.Name), strings.ContainsFunc(j.Name, func(r rune) bool { return !unicode.IsPrint(r) }), strings.TrimSpace(j.Name) != j.Name:
		return []complaint{complain("name", "%s is not one line of text, without blanks around it", quote(j.Name))}
	}
	return nil
}

func (j *Job) kindsComplaints() []complaint {
	var all []complaint
	for i, kind := range j.Volumes {
		switch {
		case !slices.Contains(volumeKinds, kind):
			all = append(all, complain("volumes", "%s is not a kind of volume: write some of %s", quote(kind), strings.Join(volumeKinds, ", ")).at(i))
		case slices.Contains(j.Volumes[:i], kind):
			all = append(all, complain("volumes", "%s is there twice: keep one of them", kind).at(i))
		}
	}
	return all
}

func (j *Job) blockComplaints() []complaint {
	var all []complaint
	known := []string{RWRead, RWWrite, RWRandRead, RWRandWrite, RWRandRW}
	if !slices.Contains(known, j.RW) {
		all = append(all, complain("rw", "%s is not known: write one of %s", quote(j.RW), strings.Join(known, ", ")))
	}
	if err := blockError(j.BS); err != nil {
		all = append(all, complain("bs", "%v", err))
	}
	return all
}

func blockError(bs int64) error {
	if bs < MinBlock || bs > MaxBlock || bs%MinBlock != 0 {
		return fmt.Errorf("%d bytes are no block: write a multiple of %d up to 1G, such as 4k or 512k", bs, MinBlock)
	}
	return nil
}

// rangeComplaints are about what no tool takes.
func (j *Job) rangeComplaints() []complaint {
	var all []complaint
	for _, r := range []struct {
		field       string
		value, most int64
	}{
		{"files", int64(j.Files), MaxJobFiles}, {"num_jobs", int64(j.NumJobs), MaxNumJobs}, {"io_depth", int64(j.IODepth), MaxIODepth},
		{"requests", j.Requests, MaxRequests}, {"fsync", int64(j.Fsync), MaxFsync},
		{"size", j.Size, MaxFile}, {"file_size", j.FileSize, MaxFile}, {"count", j.Count, MaxFile},
	} {
		if r.value < 0 || r.value > r.most {
			all = append(all, complain(r.field, "%d cannot be: from 0 to %d are allowed", r.value, r.most))
		}
	}
	if j.Runtime != 0 && (j.Runtime < MinRuntime || j.Runtime > MaxRuntime) {
		all = append(all, complain("runtime", "%v is no time to measure in: from %v to %v are allowed, and 0s for as long as it takes", j.Runtime, MinRuntime, formatDuration(MaxRuntime)))
	}
	if j.TimeBased && j.Runtime == 0 {
		all = append(all, complain("time_based", "the job would never end: write a runtime, such as 60s"))
	}
	return all
}

func (j *Job) fioComplaints() []complaint {
	all := j.without("fio has", "count", "requests")
	deep, known := ioEngines[j.engine()]
	switch {
	case !known:
		all = append(all, complain("engine", "%s is not an engine for files: write psync, libaio, io_uring, sync, vsync, pvsync, pvsync2 or posixaio", quote(j.Engine)))
	case !deep && j.IODepth > 1:
		all = append(all, complain("io_depth", "%s has one request at a time: write engine libaio or io_uring, or more num_jobs", j.engine()))
	}
	if threads := max(j.NumJobs, 1); j.Files > 1 && j.Files <= MaxJobFiles && threads <= MaxNumJobs && j.Files*threads > MaxJobFiles {
		all = append(all, complain("files", "each of %d threads has files of its own, which are %d: at most %d are allowed", threads, j.Files*threads, MaxJobFiles))
	}
	if !j.writes() && (j.Fsync > 0 || j.EndFsync) {
		field := "end_fsync"
		if j.Fsync > 0 {
			field = "fsync"
		}
		all = append(all, complain(field, "a job that does not write has nothing to sync: leave it out"))
	}
	return all
}

func (j *Job) engine() string {
	if j.Engine == "" {
		return DefaultEngine
	}
	return j.Engine
}

func (j *Job) ddComplaints() []complaint {
	all := j.without("dd has", "engine", "requests", "fsync", "runtime", "time_based")
	switch j.RW {
	case RWRandRead, RWRandWrite, RWRandRW:
		all = append(all, complain("rw", "dd goes from the first block to the last: write read or write, or tool fio for %s", j.RW))
	}
	for _, one := range []struct {
		field string
		value int
	}{{"files", j.Files}, {"num_jobs", j.NumJobs}, {"io_depth", j.IODepth}} {
		if one.value > 1 {
			all = append(all, complain(one.field, "dd has one file, one thread and one request at a time: leave it out, or write tool fio"))
		}
	}
	if j.EndFsync && j.RW == RWRead {
		all = append(all, complain("end_fsync", "a job that does not write has nothing to sync: leave it out"))
	}
	return all
}

func (j *Job) sysbenchComplaints() []complaint {
	all := j.without("sysbench has", "count", "engine", "time_based")
	if j.IODepth > 1 {
		all = append(all, complain("io_depth", "sysbench's threads have one request each at a time: write more num_jobs, or tool fio"))
	}
	if j.EndFsync {
		all = append(all, complain("end_fsync", "sysbench syncs at its end without being told: leave it out"))
	}
	if j.Fsync > 0 && !j.writes() {
		all = append(all, complain("fsync", "a job that does not write has nothing to sync: leave it out"))
	}
	return all
}

// without complains about fields that are set and that a tool has no use for.
func (j *Job) without(tool string, fields ...string) []complaint {
	set := map[string]bool{
		"count": j.Count != 0, "requests": j.Requests != 0, "engine": j.Engine != "", "fsync": j.Fsync != 0,
		"runtime": j.Runtime != 0, "time_based": j.TimeBased,
	}
	var all []complaint
	for _, field := range fields {
		if set[field] {
			all = append(all, complain(field, "%s no such setting: leave it out", tool))
		}
	}
	return all
}

// sizeComplaints want exactly one of size, file_size and dd's count, or more of
// them that say the same, as those of a resolved job do.
func (j *Job) sizeComplaints() []complaint {
	files, field := int64(max(j.Files, 1)), "size"
	if j.BS < MinBlock || j.BS > MaxBlock || files > MaxJobFiles || j.Size < 0 || j.FileSize < 0 || j.Count < 0 {
		return nil // which has been said
	}
	total := j.Size
	switch {
	case j.FileSize > 0:
		field = "file_size"
	case j.Count > 0:
		field = "count"
	}
	switch {
	case j.FileSize > MaxFile/files, j.Count > MaxFile/j.BS:
		return []complaint{complain(field, "the files together are larger than 16T")}
	case j.FileSize > 0 && j.Count > 0 && j.FileSize != j.Count*j.BS, j.FileSize > 0 && total > 0 && j.FileSize*files != total,
		j.Count > 0 && total > 0 && j.Count*j.BS != total:
		return []complaint{complain(field, "size, file_size and count contradict each other: keep one of them")}
	}
	total = max(total, j.FileSize*files, j.Count*j.BS)
	switch {
	case total == 0:
		return []complaint{complain(field, "it says nowhere how large the file is: write a size, such as 1G")}
	case total/files < j.BS:
		return []complaint{complain(field, "%d bytes in %d files are less than a block of %s each", total, files, FormatSize(j.BS))}
	}
	return nil
}
