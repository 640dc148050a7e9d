package storage

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tare-bench/tare/internal/core/option"
)

// Supported tools.
const (
	ToolFio      = "fio"
	ToolDD       = "dd"
	ToolSysbench = "sysbench"
)

var tools = []string{ToolFio, ToolDD, ToolSysbench}

// Job describes a tool's work. Sizes are in bytes. 0 means the tool's default or not
// applicable.
type Job struct {
	Name      string // "randread 512k"; unique in a plan
	Tool      string // ToolFio by default
	RW        string // read, write, randread, randwrite, randrw (sysbench's rndrw); dd: write or read
	BS        int64
	Size      int64         // of the only file, or of all Files together
	FileSize  int64         // of each of Files, instead of Size
	Count     int64         // of dd, instead of Size
	Files     int           // fio's nrfiles, sysbench's file-num; 0 means 1
	NumJobs   int           // fio's numjobs, sysbench's threads; 0 means 1
	IODepth   int           // fio's iodepth; 0 means 1
	Engine    string        // fio's ioengine; "" means psync
	Requests  int64         // sysbench's events; 0 means until Runtime
	Fsync     int           // writes between syncs: sysbench's file-fsync-freq, fio's fsync; 0 means none
	EndFsync  bool          // fio's end_fsync; dd's conv=fsync
	Runtime   time.Duration // duration of fio with TimeBased; otherwise the maximum
	TimeBased bool          // start over after Size
	// Caches and Volumes restrict the job to some cache modes and volumes of the plan;
	// empty means all.
	Caches  []string
	Volumes []string // kinds: "bind"
	// Options are those of fio's job file, by section, in order. With them all fields
	// above are empty except Name and Tool.
	Options []Section
}

// Limits of a job.
const (
	MaxJobName  = 100     // characters
	MinBlock    = 512     // bytes: a sector, the minimum of direct I/O
	MaxBlock    = 1 << 30 // bytes
	MaxJobFiles = 100_000
	MaxNumJobs  = 1024
	MaxIODepth  = 65_536
	MaxRequests = 1_000_000_000_000
	MaxFsync    = 1_000_000
	MinRuntime  = 100 * time.Millisecond // shorter jobs consist mainly of their start and end
	MaxRuntime  = 30 * 24 * time.Hour
)

// I/O patterns, with fio's names.
const (
	RWRead      = "read"
	RWWrite     = "write"
	RWRandRead  = "randread"
	RWRandWrite = "randwrite"
	RWRandRW    = "randrw"
)

var directions = []string{RWRead, RWWrite, RWRandRead, RWRandWrite, RWRandRW}

// DefaultEngine is the default of fio's ioengine.
const DefaultEngine = "psync"

// ioEngines are fio's engines for files, and whether a thread can have several requests
// in flight. Other engines run programs, load libraries or use the network. They need
// a job file, where that is visible.
var ioEngines = map[string]bool{
	"sync": false, "psync": false, "vsync": false, "pvsync": false, "pvsync2": false,
	"libaio": true, "io_uring": true, "posixaio": true,
}

// Declare declares the fields of a job.
func (j *Job) Declare(s *option.Set) {
	count := func(p *int, key, help string, most int) {
		option.Int(s, p, key, help, option.OmitEmpty, option.Bounds(0, most, "a number that can be"))
	}
	count64 := func(p *int64, key, help string, kind option.Kind[int64], most int64, rules ...option.Attr) {
		option.Var(s, p, key, help, kind, append(rules, option.OmitEmpty, option.Bounds(0, most, "an amount that can be"))...)
	}
	option.Text(s, &j.Name, "name", "unique in a measure (default: what it does, such as randread 4k)", option.Must(nameError))
	option.Text(s, &j.Tool, "tool", "program that does the I/O", option.Choices(tools...))
	option.Text(s, &j.RW, "rw", "I/O pattern; dd supports read and write only", option.OmitEmpty, option.Choices(directions...))
	count64(&j.BS, "bs", "bytes of one request, a multiple of 512 up to 1G", Size, MaxFile, option.Must(blockError))
	count64(&j.Size, "size", "of the one file, or of all files together", Size, MaxFile)
	count64(&j.FileSize, "file_size", "of each file, instead of size", Size, MaxFile)
	count64(&j.Count, "count", "dd's count of blocks, instead of size", option.Integer64, MaxFile)
	count(&j.Files, "files", "how many files: fio's nrfiles, sysbench's file-num; 0: one", MaxJobFiles)
	count(&j.NumJobs, "num_jobs", "how many threads: fio's numjobs, sysbench's threads; 0: one", MaxNumJobs)
	count(&j.IODepth, "io_depth", "requests in flight per thread of fio; 0: one", MaxIODepth)
	option.Text(s, &j.Engine, "engine", "fio's ioengine (default: psync)", option.OmitEmpty, option.Choices(slices.Sorted(maps.Keys(ioEngines))...))
	count64(&j.Requests, "requests", "sysbench's events; 0: until runtime", option.Integer64, MaxRequests)
	count(&j.Fsync, "fsync", "sync after so many writes: fio's fsync, sysbench's file-fsync-freq; 0: never in between", MaxFsync)
	option.Bool(s, &j.EndFsync, "end_fsync", "sync at the end: fio's end_fsync, dd's conv=fsync", option.OmitEmpty)
	option.Time(s, &j.Runtime, "runtime", "the job stops after this time (default: when it is done)", option.OmitEmpty, option.OrZero,
		option.Bounds(MinRuntime, MaxRuntime, "a time to measure in", ", and 0s for as long as it takes"))
	option.Bool(s, &j.TimeBased, "time_based", "fio starts over when it is done, until runtime", option.OmitEmpty)
	option.List(s, &j.Caches, "caches", "cache modes of the measure that the job runs with (default: all)", option.OmitEmpty, option.Choices(caches...), option.Once("keep one of them"))
	option.List(s, &j.Volumes, "volumes", "volume kinds of the measure that the job runs on (default: all)", option.OmitEmpty, option.Choices(volumeKinds...), option.Once("keep one of them"))
	option.Var(s, &j.Options, "options", "a job file of fio's, section by section, instead of rw, bs, size and so on",
		option.ListOf(option.Fields("a section of options", Section{Options: []FioOption{}})), option.OmitEmpty)
}

// jobKind is a job given by its name or with all fields.
var jobKind = func() option.Kind[Job] {
	fields := option.Fields("a job", Job{Tool: ToolFio})
	return option.Kind[Job]{
		Read: func(n option.Node) (Job, bool) {
			if !n.Mapping() {
				return option.Scalar(n, parseJob)
			}
			j, ok := fields.Read(n)
			if j.Name == "" && len(j.Options) == 0 {
				j.Name = nameOf(&j)
			}
			return j, ok
		},
		Schema: option.Schema{"anyOf": []option.Schema{{"type": "string", "pattern": `^\s*(randread|read|randwrite|write|rndrw)(\s+[0-9]+[kKmMgGtT]?)?\s*$`}, fields.Schema}},
	}
}()

// MarshalJSON writes the form of a record: sizes in bytes, which a plan file accepts, too.
func (j Job) MarshalJSON() ([]byte, error) { return option.Marshal(&j) }

// UnmarshalJSON reads the output of MarshalJSON.
func (j *Job) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, j) }

// Wrong returns errors that involve several fields.
func (j *Job) Wrong() option.FieldErrors {
	if len(j.Options) > 0 {
		return j.optionsWrong()
	}
	if !slices.Contains(tools, j.Tool) {
		return j.leftOut() // an unknown tool, reported already
	}
	return slices.Concat(j.leftOut(), j.toolWrong(), j.sizeWrong())
}

func nameError(name string) error {
	switch {
	case name == "":
		return errors.New("the name is missing: write one, such as randread 4k")
	case utf8.RuneCountInString(name) > MaxJobName:
		return fmt.Errorf("%s is %d characters long: at most %d are allowed", option.Quote(name), utf8.RuneCountInString(name), MaxJobName)
	case !utf8.ValidString(name), strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }), strings.TrimSpace(name) != name:
		return fmt.Errorf("%s is not one line of text, without blanks around it", option.Quote(name))
	}
	return nil
}

// leftOut returns errors about required fields, and about jobs that would never end.
func (j *Job) leftOut() option.FieldErrors {
	var all option.FieldErrors
	if j.RW == "" {
		all = append(all, option.Wrongf("rw", "no I/O pattern: write one of %s", strings.Join(directions, ", ")))
	}
	if j.BS == 0 {
		all = append(all, option.Wrongf("bs", "%v", blockError(0)))
	}
	if j.TimeBased && j.Runtime == 0 {
		all = append(all, option.Wrongf("time_based", "the job would never end: set a runtime, such as 60s"))
	}
	return all
}

func blockError(bs int64) error {
	if bs < MinBlock || bs > MaxBlock || bs%MinBlock != 0 {
		return fmt.Errorf("%d bytes are not a block size: write a multiple of %d up to 1G, such as 4k or 512k", bs, MinBlock)
	}
	return nil
}

// lacks lists the settings that a tool does not support, and alternatives.
var lacks = map[string]map[string]string{
	ToolFio: {"count": noSetting, "requests": noSetting},
	ToolDD: {"engine": noSetting, "requests": noSetting, "fsync": noSetting, "runtime": noSetting, "time_based": noSetting,
		"files": ddHasOne, "num_jobs": ddHasOne, "io_depth": ddHasOne},
	ToolSysbench: {"count": noSetting, "engine": noSetting, "time_based": noSetting,
		"io_depth":  "sysbench's threads have one request in flight: increase num_jobs, or use tool fio",
		"end_fsync": "sysbench always syncs at the end: leave it out"},
}

const (
	noSetting = " has no such setting: leave it out" // follows the tool's name
	ddHasOne  = "dd has one file, one thread and one request at a time: leave it out, or write tool fio"
)

// toolWrong returns errors about settings that the tool does not support.
func (j *Job) toolWrong() (all option.FieldErrors) {
	for _, x := range []struct {
		field string
		asked bool
	}{
		{"count", j.Count != 0}, {"requests", j.Requests != 0}, {"engine", j.Engine != ""}, {"runtime", j.Runtime != 0}, {"time_based", j.TimeBased},
		{"files", j.Files > 1}, {"num_jobs", j.NumJobs > 1}, {"io_depth", j.IODepth > 1}, {"fsync", j.Fsync > 0}, {"end_fsync", j.EndFsync},
	} {
		why := lacks[j.Tool][x.field]
		switch {
		case !x.asked:
			continue
		case why == noSetting:
			why = j.Tool + noSetting
		case why == "" && (x.field == "fsync" || x.field == "end_fsync") && !j.writes():
			why = "a job that does not write has nothing to sync: leave it out"
		}
		if why != "" {
			all = append(all, option.Wrongf(x.field, "%s", why))
		}
	}
	if j.Tool == ToolFio {
		return append(all, j.fioWrong()...)
	}
	if j.Tool == ToolDD && strings.HasPrefix(j.RW, "rand") {
		all = append(all, option.Wrongf("rw", "dd is sequential: use read or write, or tool fio for %s", j.RW))
	}
	return all
}

// fioWrong returns errors about fio's engine and threads.
func (j *Job) fioWrong() (all option.FieldErrors) {
	if deep, known := ioEngines[j.engine()]; known && !deep && j.IODepth > 1 {
		all = append(all, option.Wrongf("io_depth", "%s has one request in flight: use engine libaio or io_uring, or increase num_jobs", j.engine()))
	}
	if threads := max(j.NumJobs, 1); j.Files > 1 && j.Files <= MaxJobFiles && threads <= MaxNumJobs && j.Files*threads > MaxJobFiles {
		all = append(all, option.Wrongf("files", "each of %d threads has its own files, %d in total: at most %d are allowed", threads, j.Files*threads, MaxJobFiles))
	}
	return all
}

func (j *Job) engine() string { return cmp.Or(j.Engine, DefaultEngine) }

// Bytes returns the total size of a job's files, or 0 if a job file defines it.
func (j *Job) Bytes() int64 {
	return max(j.Size, j.FileSize*int64(max(j.Files, 1)), j.Count*j.BS)
}

// sizeWrong requires exactly one of size, file_size and dd's count. Several are allowed
// if they agree, as in a resolved job.
func (j *Job) sizeWrong() option.FieldErrors {
	files, field := int64(max(j.Files, 1)), "size"
	if j.BS < MinBlock || j.BS > MaxBlock || files > MaxJobFiles || j.Size < 0 || j.FileSize < 0 || j.Count < 0 {
		return nil // reported already
	}
	switch {
	case j.FileSize > 0:
		field = "file_size"
	case j.Count > 0:
		field = "count"
	}
	total := j.Bytes()
	differs := func(size int64) bool { return size != 0 && size != total }
	switch {
	case j.FileSize > MaxFile/files, j.Count > MaxFile/j.BS:
		return option.FieldErrors{option.Wrongf(field, "the files together are larger than 16T")}
	case differs(j.Size), differs(j.FileSize * files), differs(j.Count * j.BS):
		return option.FieldErrors{option.Wrongf(field, "size, file_size and count contradict each other: keep one of them")}
	case total == 0:
		return option.FieldErrors{option.Wrongf(field, "the size of the file is missing: write a size, such as 1G")}
	case total/files < j.BS:
		return option.FieldErrors{option.Wrongf(field, "%d bytes in %d files are less than a block of %s each", total, files, FormatSize(j.BS))}
	}
	return nil
}
