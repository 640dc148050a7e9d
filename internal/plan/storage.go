package plan

import (
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Storage asks what I/O a runtime loses: every job on every target, volume and
// cache.
type Storage struct {
	Title        string         `json:"title,omitempty" yaml:"title"`
	Targets      []string       `json:"targets" yaml:"targets"` // as of Lifecycle
	Missing      Missing        `json:"missing,omitempty" yaml:"missing"`
	Via          []string       `json:"via,omitempty" yaml:"via"`
	Engines      Engines        `json:"engines,omitempty" yaml:"engines"`
	Volumes      []string       `json:"volumes" yaml:"volumes"` // see ParseVolume
	Cache        []string       `json:"cache" yaml:"cache"`     // record.CacheDirect, record.CacheBuffered
	Jobs         []Job          `json:"jobs" yaml:"jobs"`
	Scale        float64        `json:"scale,omitempty" yaml:"scale"` // of all sizes, counts and times of the jobs; 0 or 1: as they are
	Rounds       int            `json:"rounds" yaml:"rounds"`
	RuntimeLimit time.Duration  `json:"runtime_limit" yaml:"runtime_limit"` // of one job: fio and sysbench stop there, what cannot stop has failed
	Ceiling      time.Duration  `json:"ceiling" yaml:"ceiling"`             // how long each of the four measurements of a device takes; 0: none
	Settle       time.Duration  `json:"settle" yaml:"settle"`               // at most, until a device has come to rest
	Drop         Drop           `json:"drop" yaml:"drop"`
	Budget       time.Duration  `json:"budget" yaml:"budget"`
	Timeout      time.Duration  `json:"timeout" yaml:"timeout"` // of everything else that is done on a target, one by one
	Seed         uint64         `json:"seed" yaml:"seed"`
	Limits       subject.Limits `json:"limits" yaml:"limits"` // of every container; none by default
	// Destroys are the devices whose content may be overwritten. Records have
	// them; of plan files they are no field: the command line gives them.
	Destroys []string `json:"i_know_this_destroys,omitempty" yaml:"-"`
	// Root is a folder with a root file system that containers have beside the
	// probe, and Programs the paths in it of tools that are run there instead of
	// the host's: {fio: /usr/local/bin/fio}.
	Root     string            `json:"root,omitempty" yaml:"root"`
	Programs map[string]string `json:"programs,omitempty" yaml:"programs"`
}

// Drop says which caches are dropped before a job.
type Drop string

// What can be dropped.
const (
	DropNode  Drop = "node"  // all page cache of the host, by /proc/sys/vm/drop_caches, and that of the job's files in the sandbox
	DropFiles Drop = "files" // that of the job's files only: other programs keep theirs
)

// The tools.
const (
	ToolFio      = "fio"
	ToolDD       = "dd"
	ToolSysbench = "sysbench"
)

// Job is what a tool does. Sizes are bytes. What is 0 is the tool's own default,
// or does not apply to it.
type Job struct {
	Name      string        `json:"name" yaml:"name"`       // "randread 512k"; unique in a measure
	Tool      string        `json:"tool" yaml:"tool"`       // ToolFio by default
	RW        string        `json:"rw,omitempty" yaml:"rw"` // read, write, randread, randwrite, randrw (sysbench's rndrw); dd: write or read
	BS        int64         `json:"bs,omitempty" yaml:"bs"`
	Size      int64         `json:"size,omitempty" yaml:"size"`             // of the one file, or of all Files together
	FileSize  int64         `json:"file_size,omitempty" yaml:"file_size"`   // of each of Files, instead of Size
	Count     int64         `json:"count,omitempty" yaml:"count"`           // dd's, instead of Size
	Files     int           `json:"files,omitempty" yaml:"files"`           // fio's nrfiles, sysbench's file-num; 0: one
	NumJobs   int           `json:"num_jobs,omitempty" yaml:"num_jobs"`     // fio's numjobs, sysbench's threads; 0: one
	IODepth   int           `json:"io_depth,omitempty" yaml:"io_depth"`     // fio's; 0: one
	Engine    string        `json:"engine,omitempty" yaml:"engine"`         // fio's ioengine; "": psync
	Requests  int64         `json:"requests,omitempty" yaml:"requests"`     // sysbench's events; 0: until Runtime
	Fsync     int           `json:"fsync,omitempty" yaml:"fsync"`           // sysbench's file-fsync-freq, fio's fsync: after so many writes; 0: never in between
	EndFsync  bool          `json:"end_fsync,omitempty" yaml:"end_fsync"`   // fio's; dd's conv=fsync
	Runtime   time.Duration `json:"runtime,omitempty" yaml:"runtime"`       // fio with TimeBased: for so long; else at most
	TimeBased bool          `json:"time_based,omitempty" yaml:"time_based"` // start over when Size is done
	// Caches and Volumes are those of the measure that the job is run with;
	// empty: all of them.
	Caches  []string `json:"caches,omitempty" yaml:"caches"`
	Volumes []string `json:"volumes,omitempty" yaml:"volumes"` // kinds: "bind"
	// Options are those of a job of fio's own job file, section by section, in
	// order. The fields above are empty then, but for Name and Tool.
	Options []Section `json:"options,omitempty" yaml:"options"`
}

// Section is one of a job file of fio's.
type Section struct {
	Name    string   `json:"name" yaml:"name"`
	Options []Option `json:"options" yaml:"options"`
}

// Option is one line of a section. Value is "" for one without "=".
type Option struct {
	Name  string `json:"name" yaml:"name"`
	Value string `json:"value,omitempty" yaml:"value"`
}

// Volume is a volume, parsed.
type Volume struct {
	Name   string // as it was written
	Kind   string // record.VolumeRootfs, …
	Source string // of nfs "server:/path", of a device its path
}

// DefaultsOfStorage are the settings of a storage plan that says nothing.
func DefaultsOfStorage() Storage {
	return Storage{
		Targets: []string{}, Missing: MissingFail,
		Volumes: []string{record.VolumeRootfs, record.VolumeBind}, Cache: []string{record.CacheDirect},
		Jobs:  DefaultJobs([]string{"randread", "read", "randwrite", "write"}, []int64{512 << 10}, ToolFio, 1<<30, 8),
		Scale: 1, Rounds: 3, RuntimeLimit: time.Minute, Ceiling: 2 * time.Second, Settle: 3 * time.Second, Drop: DropNode,
		Budget: 4 * time.Hour, Timeout: 10 * time.Minute,
	}
}
