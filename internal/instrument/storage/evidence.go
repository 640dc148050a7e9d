package storage

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// both holds one value per direction.
type both [directionCount]float64

func (b both) sum() float64 { return b[reading] + b[writing] }

// amount is a sum over rounds, in bytes or requests.
type amount struct {
	both
	unknown bool // in some round
}

func (a *amount) add(known bool, read, write int64) {
	a.unknown = a.unknown || !known
	a.both[reading] += float64(read)
	a.both[writing] += float64(write)
}

// evidence is the combined data of some rounds of a cell. Amounts are sums over the
// rounds, in bytes.
type evidence struct {
	rounds    int
	claimed   both
	asked     both    // I/Os that the tool issued
	haveIOs   bool    // known in every round
	seconds   float64 // mean duration of a round; 0 if unknown
	bandwidth both    // bytes/s, median over the rounds as in every figure
	iops      both    // median over the rounds

	seen      bool // there are node readings
	tookNS    float64
	stolen    float64 // share of the time of all CPUs
	starved   float64 // share of the time in which some task waited for memory
	throttled float64 // share of the time
	cached    float64
	device    amount
	requests  amount // answered by the device; 0 if not counted
	name      string // of the device
	own       amount // charged to the sandbox's own cgroups
	outside   amount // moved by processes outside the sandbox, less what loading the tool moved
	loading   amount // bytes read to load the tool
	fetched   amount // read by the job's own processes because of page cache misses
	flushed   amount
}

// gather sums the rounds. If some have node readings, it uses only those.
func (w *Cell) gather(trials []*record.Cell) evidence {
	observed := slices.DeleteFunc(slices.Clone(trials), func(c *record.Cell) bool { return c.Observed == nil })
	seen := len(observed) > 0
	if seen {
		trials = observed
	}
	unseen := amount{unknown: !seen}
	e := evidence{rounds: len(trials), haveIOs: true, seen: seen, device: unseen, own: unseen, outside: unseen, flushed: unseen,
		fetched: amount{unknown: !seen || !w.countsFetched()}}
	var rates, iops [directionCount][]float64
	for _, c := range trials {
		rate, ios := e.claim(c, w.table)
		for d := range directionCount {
			rates[d], iops[d] = append(rates[d], rate[d]), append(iops[d], ios[d])
		}
		if c.Observed != nil {
			e.see(c, float64(max(w.judge.Record.Header.Environment.CPUs, 1)))
		}
	}
	n := float64(max(len(trials), 1))
	e.seconds /= n
	for d := range directionCount {
		e.bandwidth[d], e.iops[d] = figure.MedianOf(rates[d]).Value, figure.MedianOf(iops[d]).Value
	}
	took := cmp.Or(max(e.tookNS, 0), math.Inf(1)) // shares are 0 without a time
	e.stolen, e.starved, e.throttled = e.stolen/took, e.starved/took, e.throttled/took
	return e
}

// claim adds what the tool reports for a round, and returns the rates.
func (e *evidence) claim(c *record.Cell, t *Table) (rate, ios both) {
	length, bs := secondsOf(c), float64(t.BS)
	if length == 0 && t.job.TimeBased {
		length = t.job.Runtime.Seconds() // a table of a report may contain only the job and its IOPS
	}
	e.seconds += length
	var made both
	for d, f := range flowsOf(c.Reported) {
		bandwidth, iops := ratesOf(f, length)
		bandwidth = cmp.Or(bandwidth, iops*bs)
		if iops == 0 && bs > 0 {
			iops = bandwidth / bs
		}
		rate[d], ios[d] = bandwidth, iops
		e.claimed[d] += float64(f.Bytes)
		switch {
		case f.IOs > 0:
			made[d] = float64(f.IOs)
		case f.Bytes > 0 && bs > 0:
			made[d] = float64(f.Bytes) / bs
		default:
			made[d] = iops * length
		}
		e.asked[d] += made[d]
	}
	e.haveIOs = e.haveIOs && made.sum() > 0
	return rate, ios
}

func (e *evidence) see(c *record.Cell, cpus float64) {
	s := c.Observed
	took := float64(s.Took)
	e.tookNS += took
	e.stolen += s.Steal / cpus * took
	e.starved += s.PSIMemory * took
	e.throttled += float64(s.Throttled)
	e.cached += float64(s.Cached)
	use := deviceOf(c)
	seen := use != nil
	use = cmp.Or(use, &record.DeviceUse{Name: e.name})
	e.device.add(seen, use.ReadBytes, use.WriteBytes)
	e.requests.add(seen, use.ReadIOs, use.WriteIOs)
	e.name = use.Name
	group := cmp.Or(s.Group, &record.GroupUse{})
	e.own.add(s.Group != nil, group.ReadBytes, group.WriteBytes)
	outside, loading := cmp.Or(s.Outside, &record.Transfer{}), cmp.Or(s.Loading, &record.Transfer{})
	e.outside.add(s.Outside != nil, max(outside.Read-loading.Read, 0), max(outside.Write-loading.Write, 0))
	e.loading.add(true, loading.Read, 0)
	e.fetched.add(s.Fetched != nil, *cmp.Or(s.Fetched, new(int64)), 0)
	e.flushed.add(s.Flushed >= 0, 0, max(s.Flushed, 0))
}

// deviceOf returns the usage of the device below the cell's volume. If the volume has no
// device of its own, it returns the sum of all disks. It returns nil for NFS and
// tmpfs: no disk of this node serves them.
func deviceOf(c *record.Cell) *record.DeviceUse {
	switch kind := volumeKind(c.Volume); {
	case c.Observed == nil || kind == record.VolumeNFS || kind == record.VolumeTmpfs:
		return nil
	case c.Observed.Device.Name != "":
		return &c.Observed.Device
	case c.Observed.Disks.Name != "":
		return &c.Observed.Disks
	}
	return nil
}

// deviceName returns the name of the device for use in a sentence.
func (e *evidence) deviceName() string { return cmp.Or(e.name, "the device") }

// countsShare is the minimum share of a cell's bytes at which a direction counts when
// the answering device is determined.
const countsShare = 0.10

// reached returns the share of the claimed bytes that the device saw, for the direction
// with the smallest share. ok is false if it is unknown.
func (e *evidence) reached() (direction int, part float64, ok bool) {
	if e.device.unknown {
		return 0, 0, false
	}
	for d := range directionCount {
		if e.claimed[d] <= countsShare*e.claimed.sum() {
			continue
		}
		if p := e.saw(d) / e.claimed[d]; stat.Finite(p) && (!ok || p < part) {
			direction, part, ok = d, p, true
		}
	}
	return direction, part, ok
}

// saw returns the bytes that the device can have moved for the job. Reads are limited
// to what the job's processes fetched, because others may use the device, too.
func (e *evidence) saw(direction int) float64 {
	if direction == reading && !e.fetched.unknown {
		return min(e.device.both[reading], e.fetched.sum())
	}
	return e.device.both[direction]
}

// fetchedThrough are the file systems that read the device in the context of the reading
// process. The kernel then counts the read for that process. Others use threads.
var fetchedThrough = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"}

// countsFetched reports whether fetched bytes are what the device read for the job.
func (w *Cell) countsFetched() bool {
	return w.place != nil && (volumeKind(w.table.Volume) == record.VolumeDevice || slices.Contains(fetchedThrough, w.place.HostType))
}

// memoryFileSystems are the file systems without a device.
var memoryFileSystems = []string{"tmpfs", "ramfs"}

var memoryDevice = Pattern(`^(z?ram|nullb)\d+$`)

// inMemory reports whether the volume is memory by definition, and why.
func (w *Cell) inMemory() (why string, ok bool) {
	kind := volumeKind(w.table.Volume)
	if kind == record.VolumeTmpfs {
		return "the volume is a tmpfs", true
	}
	switch {
	case w.place == nil:
		return "", false
	case w.place.Memory != "":
		return w.place.Memory, true
	case memoryDevice().MatchString(w.place.Device): // older records lack this fact
		return w.place.Device + " is memory", true
	case kind == record.VolumeDevice || kind == record.VolumeNFS:
		return "", false
	}
	if slices.Contains(memoryFileSystems, w.place.HostType) {
		return "the volume lies on a " + w.place.HostType + " of the host", true
	}
	for _, m := range w.place.Mounts {
		// "/" decides about a root file system only if the host's type is unknown.
		own := m.Path == setting.VolumePath || kind == record.VolumeRootfs && m.Path == "/" && w.place.HostType == ""
		if own && slices.Contains(memoryFileSystems, m.Type) {
			return m.Path + " in the sandbox is a " + m.Type, true
		}
	}
	return "", false
}

// guestNames are parts of the names of runtimes that run a kernel of their own.
var guestNames = []string{"kata", "runsc", "gvisor", "firecracker", "qemu", "clh", "cloud-hypervisor", "dragonball", "stratovirt"}

// hasGuest reports whether the workload runs on another kernel than the host's. Such a
// kernel may have a page cache that the host does not see.
func hasGuest(t *record.Target) bool {
	text := strings.ToLower(t.Name + " " + t.Kind + " " + t.Config["runtime"])
	return t.Clock == "guest" || slices.ContainsFunc(guestNames, func(name string) bool { return strings.Contains(text, name) })
}
