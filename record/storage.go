package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Types of line in a record of "storage" only.
const (
	TypeCell    Type = "cell"
	TypePlace   Type = "place"
	TypeCeiling Type = "ceiling"
)

// Kinds of volumes, on which the files of a job lie.
const (
	VolumeRootfs = "rootfs" // the container's own root file system
	VolumeBind   = "bind"   // a folder of the host
	VolumeTmpfs  = "tmpfs"  // memory
	VolumeNFS    = "nfs"    // a folder on a server
	VolumeDevice = "device" // a block device, without a file system
)

// Cache modes of a job.
const (
	CacheDirect   = "direct"   // with O_DIRECT
	CacheBuffered = "buffered" // without O_DIRECT
)

// Cell is one run of one job on one target: the tool's report, and the observations at the
// device and on the node. An imported cell has only the report.
type Cell struct {
	Type     Type      `json:"type"`
	Round    int       `json:"round" is:"round"` // from 0
	Order    int       `json:"order"`            // this target's place in the round's random order
	Target   string    `json:"target" is:"needed,label,safe"`
	Volume   string    `json:"volume" is:"place,kind=volume"`         // see the Volume constants; "" if unknown, in imported cells
	Cache    string    `json:"cache" is:"one=direct|buffered"`        // CacheDirect, CacheBuffered; "" if unknown
	Job      string    `json:"job" is:"needed,label,safe"`            // its name in the plan: "randread 512k"
	Tool     string    `json:"tool" is:"needed,label,safe"`           // "fio", "dd", "sysbench"
	Version  string    `json:"version,omitempty" is:"label,safe"`     // of the tool: "fio-3.33"
	Command  string    `json:"command,omitempty" is:"command"`        // as run in the sandbox, with its paths; on "host" with the host's; pasteable
	Layout   *Layout   `json:"layout,omitempty"`                      // of the files; nil if the job makes them
	Dropped  string    `json:"dropped,omitempty" is:"one=node|files"` // caches dropped before the job: "node" (all of the host), "files" (those of its files), "" none
	Quiet    bool      `json:"quiet,omitempty"`                       // the device was idle before the job
	Begun    int64     `json:"begun,omitempty"`                       // ns of CLOCK_MONOTONIC, just before the job
	Ended    int64     `json:"ended,omitempty" is:"zero,after=begun"` // ns, when tare knew of its end
	SetUp    int64     `json:"set_up,omitempty" is:"span"`            // ns that tare spent on the cell without the job and its layout: sandbox, caches, readings
	Reported *Reported `json:"claim,omitempty"`                       // the tool's report
	Observed *Observed `json:"seen,omitempty"`                        // observations from outside
	Source   string    `json:"source,omitempty" is:"place"`           // of an imported cell: "notes.txt:120"
	Failure  *Failure  `json:"failure,omitempty"`                     // why it has no figures
}

// Layout is the files written before a job.
type Layout struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes" is:"bytes"` // of all of them
	Took  int64 `json:"took" is:"span"`   // ns
}

// Reported is a tool's report.
type Reported struct {
	Read    Flow    `json:"read"`
	Write   Flow    `json:"write"`
	Seconds float64 `json:"seconds" is:"seconds"` // the duration by the tool; 0: not reported
	// Paced is an option that limits the tool's rate, "rate=10m"; "" for none.
	Paced string `json:"paced,omitempty" is:"label,safe"`
	// CPU is the CPU time of the tool's jobs in ns, without its set-up; 0: not reported.
	CPU int64 `json:"cpu,omitempty" is:"cpu"`
	// Latency is that of all requests, if the tool does not separate reads and writes.
	Latency Latency `json:"latency,omitzero"`
}

// Flow is one direction of a report. Missing figures are 0.
type Flow struct {
	Bytes     int64   `json:"bytes" is:"bytes"`
	IOs       int64   `json:"ios"`
	Bandwidth float64 `json:"bandwidth" is:"rate"` // bytes/s, as reported; computed only if the tool does not report it
	IOPS      float64 `json:"iops" is:"rate"`      // 1/s, likewise
	Latency   Latency `json:"latency"`
}

// Latency is a distribution of the durations of I/Os, in ns.
type Latency struct {
	Min  int64 `json:"min,omitempty" is:"span"`
	Mean int64 `json:"mean,omitempty" is:"span"`
	P50  int64 `json:"p50,omitempty" is:"span"`
	P95  int64 `json:"p95,omitempty" is:"span"`
	P99  int64 `json:"p99,omitempty" is:"span"`
	P999 int64 `json:"p999,omitempty" is:"span"`
	Max  int64 `json:"max,omitempty" is:"span"`
}

// Observed are the changes on the node between a reading just before a job and one just
// after it. The time between them is slightly longer than the job.
type Observed struct {
	Took int64 `json:"took" is:"span"` // ns between the readings
	// Device is the block device of the volume; its name is "" if there is none. Then the
	// whole disks of the node count.
	Device DeviceUse `json:"device"`
	Disks  DeviceUse `json:"disks"` // all whole disks of the node together
	// Flushed is the bytes that the disks wrote in a sync right after the job; -1 if there
	// was no sync.
	Flushed int64 `json:"flushed" is:"bytes,unknown"`
	// Group is the I/O charged to the sandbox's cgroups, if it is accounted. The write-back
	// of buffered data may be charged to other groups.
	Group *GroupUse `json:"group,omitempty"`
	// Fetched is the bytes that the node's kernel read from storage, after misses of the page
	// cache, for the job's processes (getrusage(2), ru_inblock) or for the processes outside
	// of its guest (read_bytes of proc_pid_io(5)); nil if unknown.
	Fetched *int64 `json:"fetched,omitempty" is:"bytes"`
	// Outside is the bytes that the target's processes outside of the guest (VMM, virtiofsd,
	// sentry, gofer) read and wrote by system calls, cached or not; nil if there are none or
	// they are unreadable.
	Outside *Transfer `json:"outside,omitempty"`
	// Loading is the same for a run of the tool without I/O just before the job. This part of
	// Outside is not I/O of the job.
	Loading *Transfer `json:"loading,omitempty"`
	// Limits are the I/O limits of the target's cgroups and their ancestors during the job.
	Limits    []IOLimit  `json:"limits,omitempty" is:"max=64"`
	Cached    int64      `json:"cached" is:"min=-144115188075855872,bytes"` // change of the node's page cache, bytes
	Throttled int64      `json:"throttled" is:"cpu"`                        // ns that the sandbox's groups were throttled
	HavePSI   bool       `json:"have_psi"`                                  //
	PSICPU    float64    `json:"psi_cpu" is:"pressure"`                     // share of the time in which some task waited
	PSIMemory float64    `json:"psi_memory" is:"pressure"`                  //
	PSIIO     float64    `json:"psi_io" is:"pressure"`                      //
	Busy      float64    `json:"busy" is:"cpus"`                            // busy CPUs of the node
	Steal     float64    `json:"steal" is:"cpus"`                           // stolen CPUs
	CPU       []RoleTime `json:"cpu" is:"max=64"`                           // usage by role
	OwnCPU    int64      `json:"own_cpu" is:"cpu"`                          // ns of tare
	Problems  Problems   `json:"problems"`                                  // read failures
}

// DeviceUse is the I/O of a block device, from /proc/diskstats.
type DeviceUse struct {
	Name       string `json:"name,omitempty" is:"path"` // "vda"; "vda+vdb" for several
	ReadBytes  int64  `json:"read_bytes" is:"bytes"`
	WriteBytes int64  `json:"write_bytes" is:"bytes"`
	ReadIOs    int64  `json:"read_ios"`
	WriteIOs   int64  `json:"write_ios"`
	Busy       int64  `json:"busy"` // ns in which it had work
}

// GroupUse is the I/O charged to cgroups, in bytes.
type GroupUse struct {
	ReadBytes  int64 `json:"read_bytes" is:"bytes"`
	WriteBytes int64 `json:"write_bytes" is:"bytes"`
}

// IOLimit is a cgroup's limit of I/O per second on a device.
type IOLimit struct {
	Group  string `json:"group" is:"needed,rooted,path"`
	Device string `json:"device" is:"needed,path"`
	Write  bool   `json:"write,omitempty"` // writes instead of reads
	IOs    bool   `json:"ios,omitempty"`   // requests instead of bytes
	Value  int64  `json:"value" is:"bytes"`
}

// Transfer is the bytes that processes read and wrote by system calls.
type Transfer struct {
	Read  int64 `json:"read" is:"bytes"`
	Write int64 `json:"write" is:"bytes"`
}

// RoleTime is the CPU time of one role.
type RoleTime struct {
	Role Role  `json:"role" is:"id,needed,name"`
	NS   int64 `json:"ns" is:"cpu"`
}

// Place describes a volume on a target: file systems and their sizes as the workload sees
// them.
type Place struct {
	Type   Type   `json:"type"`
	Target string `json:"target" is:"needed,label,safe"`
	Volume string `json:"volume" is:"place,kind=volume"`
	// Mounts are those of "/", "/dev/shm" and the volume.
	Mounts []FileSystem `json:"mounts" is:"max=100"`
	// HostType is the file system of the volume on the host, "" if unknown. Device is its
	// block device.
	HostType string `json:"host_type,omitempty" is:"label,safe"`
	Device   string `json:"device,omitempty" is:"path"`
	// Answers is the device that stores the data of Device, if it is another one: below a
	// loop device. Memory is how memory stores the data, if it does. Unknown is why the
	// storage is unknown.
	Answers string `json:"answers,omitempty" is:"path"`
	Memory  string `json:"memory,omitempty" is:"command,kind=text"`
	Unknown string `json:"unknown,omitempty" is:"command,kind=text"`
	// Direct is the file system's reaction to O_DIRECT: DirectTaken, DirectRefused, or "" if
	// not tried.
	Direct string `json:"direct,omitempty" is:"one=taken|refused"`
	// Absent is why the volume is unavailable on this target. Then all other facts are empty.
	Absent string `json:"absent,omitempty" is:"command,kind=text"`
	Advice string `json:"advice,omitempty" is:"command,kind=text"`
}

// Reactions of a file system to O_DIRECT. If it is accepted, the I/O may still not reach the
// device: tmpfs accepts it, and so may the layers below a sandbox.
const (
	DirectTaken   = "taken"
	DirectRefused = "refused"
)

// FileSystem is the result of statfs(2) for a path.
type FileSystem struct {
	Path    string `json:"path" is:"needed,rooted,path"`
	Type    string `json:"type,omitempty" is:"label"` // "ext4", "overlay", "tmpfs"; "0x1021994" if unknown
	Size    int64  `json:"size"`                      // bytes
	Free    int64  `json:"free"`                      // bytes available to the caller
	Problem string `json:"problem,omitempty" is:"command,kind=text"`
}

// Ceiling is the throughput of a device on the host with direct I/O and many requests at
// once: the upper limit of what a target can reach.
type Ceiling struct {
	Type   Type   `json:"type"`
	Volume string `json:"volume" is:"place,kind=volume"`
	Device string `json:"device" is:"path"`
	When   string `json:"when" is:"needed,one=before|after"` // "before" or "after" the rounds
	// Bandwidths are of 1 MiB requests, in bytes/s; IOPS of 4 KiB requests at
	// random. 0: not measured.
	Read      float64  `json:"read" is:"rate"`
	Write     float64  `json:"write" is:"rate"`
	ReadIOPS  float64  `json:"read_iops" is:"rate"`
	WriteIOPS float64  `json:"write_iops" is:"rate"`
	Seconds   float64  `json:"seconds" is:"seconds"` // of each of the four
	Command   string   `json:"command" is:"command"` // of the first, pasteable
	Failure   *Failure `json:"failure,omitempty"`
}

// Check implements Checker. An imported cell may lack a volume.
func (c *Cell) Check() error {
	imported := c.Source != ""
	switch {
	case c.Cache == "" && !imported:
		return fmt.Errorf("a cell is %s or %s", CacheDirect, CacheBuffered)
	case imported && (c.Observed != nil || c.Layout != nil || c.Dropped != "" || c.Quiet || c.Begun != 0 || c.Ended != 0 || c.SetUp != 0):
		return fmt.Errorf("a cell imported from %.100q can only have a claim", c.Source)
	case c.Failure == nil && !c.Reported.hasFigures():
		return errors.New("a claim without figures, and no failure that would explain it")
	case !imported && c.Failure == nil && (c.Begun == 0 || c.Ended == 0):
		return errors.New("no begin or no end, and no failure that would explain it")
	case c.Volume == "" && imported:
		return nil
	}
	return checkVolume(c.Volume)
}

// checkVolume checks the kind of a volume, which may be followed by "=" and its source.
func checkVolume(volume string) error {
	kinds := []string{VolumeRootfs, VolumeBind, VolumeTmpfs, VolumeNFS, VolumeDevice}
	if kind, _, _ := strings.Cut(volume, "="); !slices.Contains(kinds, kind) {
		return fmt.Errorf("volume %.40q must be one of %s", volume, strings.Join(kinds, ", "))
	}
	return nil
}

// hasFigures reports whether a report has more than a duration.
func (c *Reported) hasFigures() bool {
	said := func(f *Flow) bool { return f.Bytes != 0 || f.IOs != 0 || f.Bandwidth != 0 || f.IOPS != 0 }
	return c != nil && (said(&c.Read) || said(&c.Write))
}

// Check implements Checker. It does not compare quantiles with the maximum: tools take a
// quantile from the middle of a bin, which may exceed all values in the bin.
func (l *Latency) Check() error {
	name, before := "", int64(0)
	for _, q := range []struct {
		name string
		ns   int64
	}{{"p50", l.P50}, {"p95", l.P95}, {"p99", l.P99}, {"p999", l.P999}} {
		if q.ns == 0 { // not reported
			continue
		}
		if q.ns < before {
			return fmt.Errorf("%s %d is below %s %d", q.name, q.ns, name, before)
		}
		name, before = q.name, q.ns
	}
	return nil
}

// Check implements Checker.
func (p *Place) Check() error {
	if p.Absent != "" && (len(p.Mounts) > 0 || p.HostType != "" || p.Device != "" || p.Direct != "") {
		return errors.New("a volume that is absent, and facts about it")
	}
	return checkVolume(p.Volume)
}

// Check implements Checker.
func (c *Ceiling) Check() error {
	if c.Failure == nil && c.Read == 0 && c.Write == 0 && c.ReadIOPS == 0 && c.WriteIOPS == 0 {
		return errors.New("a ceiling without figures, and no failure that would explain it")
	}
	return checkVolume(c.Volume)
}
