package storage

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/record"
)

// both is something in each direction.
type both [directionCount]float64

func (b both) sum() float64 { return b[reading] + b[writing] }

// evidence is what rounds of a cell say together. Amounts are sums over the
// rounds, in bytes.
type evidence struct {
	rounds    int
	claimed   both
	asked     both    // I/Os that the tool made
	haveIOs   bool    // in every round
	seconds   float64 // of a round, mean; 0: not known
	bandwidth both    // bytes/s, the median of the rounds as in every figure
	iops      both    // likewise

	seen        bool // from outside
	tookNS      float64
	stolen      float64 // share of all CPUs' time
	starved     float64 // share of the time in which some task waited for memory
	throttled   float64 // share of the time
	cached      float64
	device      both
	haveDevice  bool
	requests    both    // that the device answered; 0 where they were not counted
	name        string  // of the device
	own         float64 // what the sandbox's cgroups were charged for
	haveOwn     bool
	outside     both    // the tool's loading taken off
	loading     float64 // read for it
	haveOut     bool
	fetched     float64 // by the job's own processes, because no page cache had it
	haveFetched bool
	flushed     float64
	haveFlush   bool
}

// gather sums up rounds: those that were seen from outside, if any were.
func (w *Cell) gather(trials []*record.Cell) evidence {
	observed := slices.DeleteFunc(slices.Clone(trials), func(c *record.Cell) bool { return c.Observed == nil })
	seen := len(observed) > 0
	if seen {
		trials = observed
	}
	e := evidence{rounds: len(trials), haveIOs: true, seen: seen, haveDevice: seen, haveOwn: seen, haveOut: seen, haveFlush: seen,
		haveFetched: seen && w.countsFetched()}
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
	if e.tookNS > 0 {
		e.stolen, e.starved, e.throttled = e.stolen/e.tookNS, e.starved/e.tookNS, e.throttled/e.tookNS
	} else {
		e.stolen, e.starved, e.throttled = 0, 0, 0
	}
	return e
}

// claim adds what the tool says of a round, and returns its rates.
func (e *evidence) claim(c *record.Cell, t *Table) (rate, ios both) {
	length, bs := secondsOf(c), float64(t.BS)
	if length == 0 && t.job.TimeBased {
		length = t.job.Runtime.Seconds() // a table of a report gives the job, and nothing but IOPS
	}
	e.seconds += length
	var made both
	for d, f := range flowsOf(c.Reported) {
		bandwidth, iops := ratesOf(f, length)
		if bandwidth == 0 {
			bandwidth = iops * bs
		}
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
	e.haveDevice = e.haveDevice && use != nil
	if use != nil {
		e.device[reading] += float64(use.ReadBytes)
		e.device[writing] += float64(use.WriteBytes)
		e.requests[reading] += float64(use.ReadIOs)
		e.requests[writing] += float64(use.WriteIOs)
		e.name = use.Name
	}
	e.haveOwn = e.haveOwn && s.Group != nil
	if s.Group != nil {
		e.own += float64(s.Group.ReadBytes) + float64(s.Group.WriteBytes)
	}
	e.haveOut = e.haveOut && s.Outside != nil
	if s.Outside != nil {
		loading := record.Transfer{}
		if s.Loading != nil {
			loading = *s.Loading
		}
		e.outside[reading] += float64(max(s.Outside.Read-loading.Read, 0))
		e.outside[writing] += float64(max(s.Outside.Write-loading.Write, 0))
		e.loading += float64(loading.Read)
	}
	e.haveFetched = e.haveFetched && s.Fetched != nil
	if s.Fetched != nil {
		e.fetched += float64(*s.Fetched)
	}
	e.haveFlush = e.haveFlush && s.Flushed >= 0
	e.flushed += float64(max(s.Flushed, 0))
}

// deviceOf is what was seen of the device under the cell's volume, or of all
// disks where it is none of its own; nil where no disk of this node can tell: a
// server's disks are not here, and memory has none.
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

// deviceName is what the device is called in a sentence.
func (e *evidence) deviceName() string { return cmp.Or(e.name, "the device") }

// A direction counts for the question who answered if it has this share of a
// cell's bytes.
const countsShare = 0.10

// reached is the part of the claimed bytes that the device saw, in the direction
// of which it saw the smallest part; ok is false where nothing can tell.
func (e *evidence) reached() (direction int, part float64, ok bool) {
	if !e.haveDevice {
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

// saw is how much of a direction the device can have done for the job: of reads no
// more than the job's own processes had fetched, whatever others had it do.
func (e *evidence) saw(direction int) float64 {
	if direction == reading && e.haveFetched {
		return min(e.device[reading], e.fetched)
	}
	return e.device[direction]
}

// fetchedThrough are the file systems whose readers ask the device themselves, so
// that the kernel counts it as theirs; others have threads that do.
var fetchedThrough = []string{"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"}

// countsFetched says whether what was fetched is what the device read for the job.
func (w *Cell) countsFetched() bool {
	return w.place != nil && (volumeKind(w.table.Volume) == record.VolumeDevice || slices.Contains(fetchedThrough, w.place.HostType))
}

// memoryFileSystems have no device.
var memoryFileSystems = []string{"tmpfs", "ramfs"}

var memoryDevice = Pattern(`^(z?ram|nullb)\d+$`)

// inMemory says that the cell's volume is memory, whatever answered, and by what
// that is known.
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
	case memoryDevice().MatchString(w.place.Device): // in a record that does not say so yet
		return w.place.Device + " is memory", true
	case kind == record.VolumeDevice || kind == record.VolumeNFS:
		return "", false
	}
	if slices.Contains(memoryFileSystems, w.place.HostType) {
		return "the volume lies on a " + w.place.HostType + " of the host", true
	}
	for _, m := range w.place.Mounts {
		// What "/" is says it of a root file system only if the host does not.
		own := m.Path == setting.VolumePath || kind == record.VolumeRootfs && m.Path == "/" && w.place.HostType == ""
		if own && slices.Contains(memoryFileSystems, m.Type) {
			return m.Path + " in the sandbox is a " + m.Type, true
		}
	}
	return "", false
}

// guestNames are in the names of what runs workloads on a kernel of their own.
var guestNames = []string{"kata", "runsc", "gvisor", "firecracker", "qemu", "clh", "cloud-hypervisor", "dragonball", "stratovirt"}

// hasGuest says whether the workload's kernel is not the host's, and so may have
// a page cache that the host does not see.
func hasGuest(t *record.Target) bool {
	if t.Clock == "guest" {
		return true
	}
	for _, text := range []string{t.Name, t.Kind, t.Config["runtime"]} {
		if slices.ContainsFunc(guestNames, func(name string) bool { return strings.Contains(strings.ToLower(text), name) }) {
			return true
		}
	}
	return false
}
