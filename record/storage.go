package record

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// The types of line that a record of "storage" holds besides those that all
// records have.
const (
	TypeCell    Type = "cell"
	TypePlace   Type = "place"
	TypeCeiling Type = "ceiling"
)

// The kinds of volume: where the files of a job lie.
const (
	VolumeRootfs = "rootfs" // the container's own root file system
	VolumeBind   = "bind"   // a folder of the host
	VolumeTmpfs  = "tmpfs"  // memory
	VolumeNFS    = "nfs"    // a folder on a server
	VolumeDevice = "device" // a block device, without a file system
)

// Whether a job asks to go past the page cache.
const (
	CacheDirect   = "direct"   // O_DIRECT
	CacheBuffered = "buffered" // without it
)

// Cell is one run of one job on one target: what the tool said of it, and what
// was seen at the device and on the node meanwhile. One that was imported from a
// tool's output has nothing but the claim.
type Cell struct {
	Type     Type      `json:"type"`
	Round    int       `json:"round" is:"round"` // from 0
	Order    int       `json:"order"`            // this target's place in the round's random order
	Target   string    `json:"target" is:"needed,label,safe"`
	Volume   string    `json:"volume" is:"place,kind=volume"`         // see the Volume constants; "" where it is not known, in imported ones
	Cache    string    `json:"cache" is:"one=direct|buffered"`        // CacheDirect, CacheBuffered; "" where it is not known
	Job      string    `json:"job" is:"needed,label,safe"`            // its name in the plan: "randread 512k"
	Tool     string    `json:"tool" is:"needed,label,safe"`           // "fio", "dd", "sysbench"
	Version  string    `json:"version,omitempty" is:"label,safe"`     // of the tool that ran: "fio-3.33"
	Command  string    `json:"command,omitempty" is:"command"`        // as it was run in the sandbox, with its paths; on "host" with the host's; pasteable
	Layout   *Layout   `json:"layout,omitempty"`                      // of the files, before; nil where the job makes its own
	Dropped  string    `json:"dropped,omitempty" is:"one=node|files"` // caches before the job: "node" (all of the host's), "files" (those of its files), "" none
	Quiet    bool      `json:"quiet,omitempty"`                       // the device had come to rest before the job
	Begun    int64     `json:"begun,omitempty"`                       // ns of CLOCK_MONOTONIC, about to be run
	Ended    int64     `json:"ended,omitempty" is:"zero,after=begun"` // ns, its end was known
	SetUp    int64     `json:"set_up,omitempty" is:"span"`            // ns that tare spent on the cell besides the job and its layout: sandbox, caches, readings
	Reported *Reported `json:"claim,omitempty"`                       // what the tool says
	Observed *Observed `json:"seen,omitempty"`                        // what was seen from outside
	Source   string    `json:"source,omitempty" is:"place"`           // of an imported one: "notes.txt:120"
	Failure  *Failure  `json:"failure,omitempty"`                     // why it gives no figures
}

// Layout is what was written before a job.
type Layout struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes" is:"bytes"` // of all of them
	Took  int64 `json:"took" is:"span"`   // ns
}

// Reported is what a tool says it did.
type Reported struct {
	Read    Flow    `json:"read"`
	Write   Flow    `json:"write"`
	Seconds float64 `json:"seconds" is:"seconds"` // the run's length as the tool has it; 0: it does not say
	// Paced is the tool's own option that holds it back, "rate=10m"; "" for none.
	Paced string `json:"paced,omitempty" is:"label,safe"`
	// CPU is what the tool says that its jobs used while they ran, without its own
	// beginning and end, in ns; 0: it does not say.
	CPU int64 `json:"cpu,omitempty" is:"cpu"`
	// Latency is that of all requests together, where the tool does not tell reads
	// from writes.
	Latency Latency `json:"latency,omitzero"`
}

// Flow is one direction of a claim. What a tool does not say is 0.
type Flow struct {
	Bytes     int64   `json:"bytes" is:"bytes"`
	IOs       int64   `json:"ios"`
	Bandwidth float64 `json:"bandwidth" is:"rate"` // bytes/s, as the tool has it: not computed from the others unless it says none
	IOPS      float64 `json:"iops" is:"rate"`      // 1/s, likewise
	Latency   Latency `json:"latency"`
}

// Latency is a distribution of the time of one I/O, in ns.
type Latency struct {
	Min  int64 `json:"min,omitempty" is:"span"`
	Mean int64 `json:"mean,omitempty" is:"span"`
	P50  int64 `json:"p50,omitempty" is:"span"`
	P95  int64 `json:"p95,omitempty" is:"span"`
	P99  int64 `json:"p99,omitempty" is:"span"`
	P999 int64 `json:"p999,omitempty" is:"span"`
	Max  int64 `json:"max,omitempty" is:"span"`
}

// Observed is what happened on the node between a reading just before a job and one
// just after it. Bytes are those of the time between the readings, which is
// slightly longer than the job.
type Observed struct {
	Took int64 `json:"took" is:"span"` // ns between the readings
	// Device is the block device that the volume lies on and what it did; "" where
	// that is not one: then the whole disks of the node tell.
	Device DeviceUse `json:"device"`
	Disks  DeviceUse `json:"disks"` // all whole disks of the node together
	// Flushed is what the disks wrote when what was still dirty was synced right
	// after the job, in bytes; -1 where that was not done.
	Flushed int64 `json:"flushed" is:"bytes,unknown"`
	// Group is what the sandbox's own cgroups were charged, where they are
	// accounted. Writing back what was buffered may be charged elsewhere.
	Group *GroupUse `json:"group,omitempty"`
	// Fetched is how many bytes the job's own processes had the node's kernel read
	// from storage because no page cache had them (getrusage(2), ru_inblock), or the
	// processes outside of its guest (read_bytes of proc_pid_io(5)); nil where that is
	// not known.
	Fetched *int64 `json:"fetched,omitempty" is:"bytes"`
	// Outside is what the target's processes outside of the guest (VMM, virtiofsd,
	// sentry, gofer) read and wrote by system calls, whatever answered them; nil
	// where the target has none, or they could not be read.
	Outside *Transfer `json:"outside,omitempty"`
	// Loading is what the same processes moved for a run of the tool without I/O just
	// before the job: of Outside as much is no I/O of the job's.
	Loading *Transfer `json:"loading,omitempty"`
	// Limits are those on the I/O of devices that cgroups of the target, or above them,
	// set while the job ran.
	Limits    []IOLimit  `json:"limits,omitempty" is:"max=64"`
	Cached    int64      `json:"cached" is:"min=-144115188075855872,bytes"` // change of the node's page cache, bytes
	Throttled int64      `json:"throttled" is:"cpu"`                        // ns that the sandbox's groups were kept from the CPU by their quota
	HavePSI   bool       `json:"have_psi"`                                  //
	PSICPU    float64    `json:"psi_cpu" is:"pressure"`                     // share of the time in which some task waited
	PSIMemory float64    `json:"psi_memory" is:"pressure"`                  //
	PSIIO     float64    `json:"psi_io" is:"pressure"`                      //
	Busy      float64    `json:"busy" is:"cpus"`                            // CPUs of the node that were busy
	Steal     float64    `json:"steal" is:"cpus"`                           // CPUs' time stolen, per time
	CPU       []RoleTime `json:"cpu" is:"max=64"`                           // what the target's roles used
	OwnCPU    int64      `json:"own_cpu" is:"cpu"`                          // ns that tare itself used
	Problems  Problems   `json:"problems"`                                  // what could not be read
}

// DeviceUse is what a block device did, from /proc/diskstats.
type DeviceUse struct {
	Name       string `json:"name,omitempty" is:"path"` // "vda"; of several "vda+vdb"
	ReadBytes  int64  `json:"read_bytes" is:"bytes"`
	WriteBytes int64  `json:"write_bytes" is:"bytes"`
	ReadIOs    int64  `json:"read_ios"`
	WriteIOs   int64  `json:"write_ios"`
	Busy       int64  `json:"busy"` // ns in which it had work
}

// GroupUse is what cgroups were charged for I/O, in bytes.
type GroupUse struct {
	ReadBytes  int64 `json:"read_bytes" is:"bytes"`
	WriteBytes int64 `json:"write_bytes" is:"bytes"`
}

// IOLimit is how much I/O a second a cgroup may do on a device.
type IOLimit struct {
	Group  string `json:"group" is:"needed,rooted,path"`
	Device string `json:"device" is:"needed,path"`
	Write  bool   `json:"write,omitempty"` // it is of writing, and not of reading
	IOs    bool   `json:"ios,omitempty"`   // of requests, and not of bytes
	Value  int64  `json:"value" is:"bytes"`
}

// Transfer is what processes moved by system calls, in bytes.
type Transfer struct {
	Read  int64 `json:"read" is:"bytes"`
	Write int64 `json:"write" is:"bytes"`
}

// RoleTime is the CPU time of one role.
type RoleTime struct {
	Role Role  `json:"role" is:"id,needed,name"`
	NS   int64 `json:"ns" is:"cpu"`
}

// Place is what a volume is on a target: file systems and their sizes, as the
// workload sees them.
type Place struct {
	Type   Type   `json:"type"`
	Target string `json:"target" is:"needed,label,safe"`
	Volume string `json:"volume" is:"place,kind=volume"`
	// Mounts are those of "/", "/dev/shm" and the volume.
	Mounts []FileSystem `json:"mounts" is:"max=100"`
	// HostType is the file system on the host that holds the volume, "" where it
	// is not known; and Device the block device that it lies on.
	HostType string `json:"host_type,omitempty" is:"label,safe"`
	Device   string `json:"device,omitempty" is:"path"`
	// Answers is the device that answers for that one, where it is another: below a
	// loop device. Memory says why it is memory that does, Unknown why that cannot be
	// told.
	Answers string `json:"answers,omitempty" is:"path"`
	Memory  string `json:"memory,omitempty" is:"command,kind=text"`
	Unknown string `json:"unknown,omitempty" is:"command,kind=text"`
	// Direct says what the file system does with O_DIRECT: DirectTaken,
	// DirectRefused, or "" where it was not tried.
	Direct string `json:"direct,omitempty" is:"one=taken|refused"`
	// Absent says why the volume cannot be had on this target; then there is
	// nothing else.
	Absent string `json:"absent,omitempty" is:"command,kind=text"`
	Advice string `json:"advice,omitempty" is:"command,kind=text"`
}

// What a file system does with O_DIRECT. That it is taken does not say that the
// device is reached: tmpfs takes it, and so may what lies below a sandbox.
const (
	DirectTaken   = "taken"
	DirectRefused = "refused"
)

// FileSystem is what statfs(2) says of a path.
type FileSystem struct {
	Path    string `json:"path" is:"needed,rooted,path"`
	Type    string `json:"type,omitempty" is:"label"` // "ext4", "overlay", "tmpfs", "0x1021994" where it is none that is known
	Size    int64  `json:"size"`                      // bytes
	Free    int64  `json:"free"`                      // bytes, for whoever asked
	Problem string `json:"problem,omitempty" is:"command,kind=text"`
}

// Ceiling is what a device gave on the host, directly and with many requests at
// once: the most that could be expected of it.
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

// Check says whether the cell can be true. One that was imported may leave open
// where it was.
func (c *Cell) Check() error {
	imported := c.Source != ""
	switch {
	case c.Cache == "" && !imported:
		return fmt.Errorf("a cell is %s or %s", CacheDirect, CacheBuffered)
	case imported && (c.Observed != nil || c.Layout != nil || c.Dropped != "" || c.Quiet || c.Begun != 0 || c.Ended != 0 || c.SetUp != 0):
		return fmt.Errorf("a cell that was imported from %.100q has nothing but the claim: what was seen or done is of a run", c.Source)
	case c.Failure == nil && !c.Reported.hasFigures():
		return errors.New("a claim without figures, and no failure that would explain it")
	case !imported && c.Failure == nil && (c.Begun == 0 || c.Ended == 0):
		return errors.New("no begin or no end, and no failure that would explain it")
	case c.Volume == "" && imported:
		return nil
	}
	return checkVolume(c.Volume)
}

// checkVolume takes a kind, and one with its source as a plan has it.
func checkVolume(volume string) error {
	kinds := []string{VolumeRootfs, VolumeBind, VolumeTmpfs, VolumeNFS, VolumeDevice}
	if kind, _, _ := strings.Cut(volume, "="); !slices.Contains(kinds, kind) {
		return fmt.Errorf("volume %.40q: it is one of %s", volume, strings.Join(kinds, ", "))
	}
	return nil
}

// hasFigures is false where all that a claim says is how long it took.
func (c *Reported) hasFigures() bool {
	said := func(f *Flow) bool { return f.Bytes != 0 || f.IOs != 0 || f.Bandwidth != 0 || f.IOPS != 0 }
	return c != nil && (said(&c.Read) || said(&c.Write))
}

// Check says whether the quantiles are in their order. It does not hold one
// against the largest: tools take it from the middle of a bin, which may lie
// above all that is in the bin.
func (l *Latency) Check() error {
	name, before := "", int64(0)
	for _, q := range []struct {
		name string
		ns   int64
	}{{"p50", l.P50}, {"p95", l.P95}, {"p99", l.P99}, {"p999", l.P999}} {
		if q.ns == 0 { // not said
			continue
		}
		if q.ns < before {
			return fmt.Errorf("%s %d is below %s %d", q.name, q.ns, name, before)
		}
		name, before = q.name, q.ns
	}
	return nil
}

// Check says whether the place can be true.
func (p *Place) Check() error {
	if p.Absent != "" && (len(p.Mounts) > 0 || p.HostType != "" || p.Device != "" || p.Direct != "") {
		return errors.New("a volume that is absent, and facts about it")
	}
	return checkVolume(p.Volume)
}

// Check says whether the ceiling tells something.
func (c *Ceiling) Check() error {
	if c.Failure == nil && c.Read == 0 && c.Write == 0 && c.ReadIOPS == 0 && c.WriteIOPS == 0 {
		return errors.New("a ceiling without figures, and no failure that would explain it")
	}
	return checkVolume(c.Volume)
}
