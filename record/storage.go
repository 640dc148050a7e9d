package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Types of line that only records of "storage" have.
const (
	TypeCell    Type = "cell"
	TypePlace   Type = "place"
	TypeCeiling Type = "ceiling"
)

// Kinds of volumes for the files of a job.
const (
	VolumeRootfs = "rootfs" // root file system of the container
	VolumeBind   = "bind"   // directory of the host
	VolumeTmpfs  = "tmpfs"  // memory
	VolumeNFS    = "nfs"    // directory on an NFS server
	VolumeDevice = "device" // block device without a file system
)

// Cache modes of a job.
const (
	CacheDirect   = "direct"   // with O_DIRECT
	CacheBuffered = "buffered" // without O_DIRECT
)

// Cell is one run of a job on a target. It contains the tool's report, and the observations at the
// device and on the node. An imported cell only has the report.
type Cell struct {
	Type     Type      `json:"type"`
	Round    int       `json:"round" is:"round"` // starting at 0
	Order    int       `json:"order"`            // position of the target in the round's random order
	Target   string    `json:"target" is:"needed,label,safe"`
	Volume   string    `json:"volume" is:"place,kind=volume"`         // see the Volume constants; may be "" (unknown) in imported cells
	Cache    string    `json:"cache" is:"one=direct|buffered"`        // CacheDirect, CacheBuffered; "" if unknown
	Job      string    `json:"job" is:"needed,label,safe"`            // name of the job in the plan: "randread 512k"
	Tool     string    `json:"tool" is:"needed,label,safe"`           // "fio", "dd", "sysbench"
	Version  string    `json:"version,omitempty" is:"label,safe"`     // version of the tool: "fio-3.33"
	Command  string    `json:"command,omitempty" is:"command"`        // as run in the sandbox, or on "host"; ready to paste
	Layout   *Layout   `json:"layout,omitempty"`                      // files written before the job; nil if the job creates them
	Dropped  string    `json:"dropped,omitempty" is:"one=node|files"` // caches dropped before the job: "node" (whole host), "files" (files of the job), "" none
	Quiet    bool      `json:"quiet,omitempty"`                       // the device was idle before the job
	Begun    int64     `json:"begun,omitempty"`                       // ns of CLOCK_MONOTONIC, just before the start of the job
	Ended    int64     `json:"ended,omitempty" is:"zero,after=begun"` // ns, when tare noticed the end of the job
	SetUp    int64     `json:"set_up,omitempty" is:"span"`            // time spent on sandbox, caches and readings, without the job and its layout, ns
	Reported *Reported `json:"claim,omitempty"`                       // the tool's report
	Observed *Observed `json:"seen,omitempty"`                        // observations from outside
	Source   string    `json:"source,omitempty" is:"place"`           // source of an imported cell: "notes.txt:120"
	Failure  *Failure  `json:"failure,omitempty"`                     // reason for missing figures
}

// Layout describes the files written before a job.
type Layout struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes" is:"bytes"` // total size
	Took  int64 `json:"took" is:"span"`   // duration, ns
}

// Reported contains the figures that a tool reported.
type Reported struct {
	Read    Flow    `json:"read"`
	Write   Flow    `json:"write"`
	Seconds float64 `json:"seconds" is:"seconds"` // duration reported by the tool; 0: not reported
	// Paced is an option that limits the tool's rate, such as "rate=10m"; "" if there is none.
	Paced string `json:"paced,omitempty" is:"label,safe"`
	// CPU is the CPU time of the tool's jobs in ns, without setup; 0: not reported.
	CPU int64 `json:"cpu,omitempty" is:"cpu"`
	// Latency covers all requests, if the tool does not separate reads and writes.
	Latency Latency `json:"latency,omitzero"`
}

// Flow is one direction of a report. Missing figures are 0.
type Flow struct {
	Bytes     int64   `json:"bytes" is:"bytes"`
	IOs       int64   `json:"ios"`
	Bandwidth float64 `json:"bandwidth" is:"rate"` // bytes/s as reported; computed only if the tool does not report it
	IOPS      float64 `json:"iops" is:"rate"`      // 1/s, as for Bandwidth
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

// Observed contains the changes on the node between a reading just before a job and another just
// after it. The time between the readings is slightly longer than the job.
type Observed struct {
	Took int64 `json:"took" is:"span"` // ns between the readings
	// Device is the block device of the volume. If its name is "", there is none, and Disks
	// applies instead.
	Device DeviceUse `json:"device"`
	Disks  DeviceUse `json:"disks"` // all whole disks of the node
	// Flushed is the number of bytes that the disks wrote in a sync right after the job; -1: no
	// sync.
	Flushed int64 `json:"flushed" is:"bytes,unknown"`
	// Group is the I/O charged to the sandbox's cgroups, or nil without accounting. Write-back
	// of buffered data may be charged to other cgroups.
	Group *GroupUse `json:"group,omitempty"`
	// Fetched is the number of bytes that the kernel read from storage after page cache misses;
	// nil if unknown. It is for the job's processes (getrusage(2), ru_inblock), or for the
	// processes outside of its guest (read_bytes in proc_pid_io(5)).
	Fetched *int64 `json:"fetched,omitempty" is:"bytes"`
	// Outside is the number of bytes that the target's processes outside of the guest (VMM,
	// virtiofsd, sentry, gofer) read and wrote by system calls, cached or not. It is nil if there
	// are no such processes, or if they are unreadable.
	Outside *Transfer `json:"outside,omitempty"`
	// Loading is the same for a run of the tool without I/O just before the job. Subtract it from
	// Outside to get the I/O of the job.
	Loading *Transfer `json:"loading,omitempty"`
	// Limits are the I/O limits during the job, of the target's cgroups and their ancestors.
	Limits    []IOLimit  `json:"limits,omitempty" is:"max=64"`
	Cached    int64      `json:"cached" is:"min=-144115188075855872,bytes"` // change of the node's page cache, bytes
	Throttled int64      `json:"throttled" is:"cpu"`                        // throttled time of the sandbox's cgroups, ns
	HavePSI   bool       `json:"have_psi"`                                  //
	PSICPU    float64    `json:"psi_cpu" is:"pressure"`                     // share of time in which some task waited
	PSIMemory float64    `json:"psi_memory" is:"pressure"`                  //
	PSIIO     float64    `json:"psi_io" is:"pressure"`                      //
	Busy      float64    `json:"busy" is:"cpus"`                            // busy CPUs of the node
	Steal     float64    `json:"steal" is:"cpus"`                           // CPUs stolen by the hypervisor
	CPU       []RoleTime `json:"cpu" is:"max=64"`                           // CPU time by role
	OwnCPU    int64      `json:"own_cpu" is:"cpu"`                          // CPU time of tare, ns
	Problems  Problems   `json:"problems"`                                  // read failures
}

// DeviceUse is the I/O of a block device, from /proc/diskstats.
type DeviceUse struct {
	Name       string `json:"name,omitempty" is:"path"` // "vda"; "vda+vdb" for several
	ReadBytes  int64  `json:"read_bytes" is:"bytes"`
	WriteBytes int64  `json:"write_bytes" is:"bytes"`
	ReadIOs    int64  `json:"read_ios"`
	WriteIOs   int64  `json:"write_ios"`
	Busy       int64  `json:"busy"` // time with outstanding I/O, ns
}

// GroupUse is the I/O charged to cgroups, in bytes.
type GroupUse struct {
	ReadBytes  int64 `json:"read_bytes" is:"bytes"`
	WriteBytes int64 `json:"write_bytes" is:"bytes"`
}

// IOLimit is an I/O limit of a cgroup for a device, per second.
type IOLimit struct {
	Group  string `json:"group" is:"needed,rooted,path"`
	Device string `json:"device" is:"needed,path"`
	Write  bool   `json:"write,omitempty"` // limit for writes; false: for reads
	IOs    bool   `json:"ios,omitempty"`   // limit in requests; false: in bytes
	Value  int64  `json:"value" is:"bytes"`
}

// Transfer is the number of bytes that processes read and wrote by system calls.
type Transfer struct {
	Read  int64 `json:"read" is:"bytes"`
	Write int64 `json:"write" is:"bytes"`
}

// RoleTime is the CPU time of one role.
type RoleTime struct {
	Role Role  `json:"role" is:"id,needed,name"`
	NS   int64 `json:"ns" is:"cpu"`
}

// Place describes a volume on a target: file systems and their sizes as seen by the workload.
type Place struct {
	Type   Type   `json:"type"`
	Target string `json:"target" is:"needed,label,safe"`
	Volume string `json:"volume" is:"place,kind=volume"`
	// Mounts are the file systems at "/", "/dev/shm" and the volume.
	Mounts []FileSystem `json:"mounts" is:"max=100"`
	// HostType is the file system of the volume on the host, or "" if unknown. Device is its block
	// device.
	HostType string `json:"host_type,omitempty" is:"label,safe"`
	Device   string `json:"device,omitempty" is:"path"`
	// Answers is the device that actually stores the data, if it is not Device, such as the one
	// below a loop device. Memory describes the kind of memory that stores the data if there is
	// no device. Unknown is the reason why the storage is unknown.
	Answers string `json:"answers,omitempty" is:"path"`
	Memory  string `json:"memory,omitempty" is:"command,kind=text"`
	Unknown string `json:"unknown,omitempty" is:"command,kind=text"`
	// Direct is the result of trying O_DIRECT: DirectTaken, DirectRefused, or "" if it was not
	// tried.
	Direct string `json:"direct,omitempty" is:"one=taken|refused"`
	// Absent is the reason why the target lacks the volume. All other fields are then empty.
	Absent string `json:"absent,omitempty" is:"command,kind=text"`
	Advice string `json:"advice,omitempty" is:"command,kind=text"`
}

// Results of trying O_DIRECT. Even if it is accepted, the I/O may not reach the device: tmpfs
// accepts O_DIRECT, and layers below a sandbox may do so too.
const (
	DirectTaken   = "taken"
	DirectRefused = "refused"
)

// FileSystem is the result of statfs(2) for a path.
type FileSystem struct {
	Path    string `json:"path" is:"needed,rooted,path"`
	Type    string `json:"type,omitempty" is:"label"` // "ext4", "overlay", "tmpfs"; the number if the type is unknown: "0x1021994"
	Size    int64  `json:"size"`                      // bytes
	Free    int64  `json:"free"`                      // bytes available to the caller
	Problem string `json:"problem,omitempty" is:"command,kind=text"`
}

// Ceiling is the throughput of a device on the host with direct I/O and many concurrent requests.
// It is the upper limit for all targets.
type Ceiling struct {
	Type   Type   `json:"type"`
	Volume string `json:"volume" is:"place,kind=volume"`
	Device string `json:"device" is:"path"`
	When   string `json:"when" is:"needed,one=before|after"` // "before" or "after" the rounds
	// Bandwidths are for 1 MiB requests, in bytes/s. IOPS are for random 4 KiB requests. 0: not
	// measured.
	Read      float64  `json:"read" is:"rate"`
	Write     float64  `json:"write" is:"rate"`
	ReadIOPS  float64  `json:"read_iops" is:"rate"`
	WriteIOPS float64  `json:"write_iops" is:"rate"`
	Seconds   float64  `json:"seconds" is:"seconds"` // duration of each of the four measurements
	Command   string   `json:"command" is:"command"` // command of the first measurement, ready to paste
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

// checkVolume checks the kind of a volume. It may be followed by "=" and a source.
func checkVolume(volume string) error {
	kinds := []string{VolumeRootfs, VolumeBind, VolumeTmpfs, VolumeNFS, VolumeDevice}
	if kind, _, _ := strings.Cut(volume, "="); !slices.Contains(kinds, kind) {
		return fmt.Errorf("volume %.40q must be one of %s", volume, strings.Join(kinds, ", "))
	}
	return nil
}

// hasFigures reports whether a report contains more than a duration.
func (c *Reported) hasFigures() bool {
	said := func(f *Flow) bool { return f.Bytes != 0 || f.IOs != 0 || f.Bandwidth != 0 || f.IOPS != 0 }
	return c != nil && (said(&c.Read) || said(&c.Write))
}

// Check implements Checker. It does not compare quantiles with the maximum. Tools report the middle
// of a histogram bin as a quantile, which may exceed all values in the bin.
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
