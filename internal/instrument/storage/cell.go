package storage

import (
	"math"
	"slices"
	"strconv"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// The directions of I/O, as indexes.
const (
	reading = iota
	writing
	directionCount
)

// directionNames are the label values of the directions.
var directionNames = [directionCount]string{"read", "write"}

func flowsOf(c *record.Reported) [directionCount]*record.Flow {
	return [...]*record.Flow{&c.Read, &c.Write}
}

// smallBlock is the largest block, in bytes, for which IOPS is the primary figure. Up
// to that size most devices take about as long per block as for the smallest.
const smallBlock = 64 << 10

// take adds a round. It returns false if the round has no figures.
func (c *Cell) take(round *record.Cell) bool {
	if round.Version != "" && !slices.Contains(c.Versions, round.Version) {
		c.Versions = append(c.Versions, round.Version)
	}
	if c.Command == "" {
		c.Command = round.Command
	}
	failure := round.Failure
	if failure == nil && round.Reported == nil {
		failure = &record.Failure{Kind: record.FailState, Detail: "the record has neither figures nor a reason for their absence"}
	}
	if failure != nil {
		c.Failed++
		if c.Failure == nil {
			c.Failure = failure
		}
		return false
	}
	c.trials = append(c.trials, round)
	return true
}

// sum computes the cell's figures from its rounds.
func (c *Cell) sum() {
	c.Rounds = len(c.trials)
	slices.SortStableFunc(c.trials, func(a, b *record.Cell) int { return a.Round - b.Round })
	each, both := [directionCount]flowRounds{newFlowRounds(), newFlowRounds()}, newFlowRounds()
	runTime, workload, runtime, perByte := stat.Rounds{}, stat.Rounds{}, stat.Rounds{}, stat.Rounds{}
	layoutTime, layoutRate := stat.Rounds{}, stat.Rounds{}
	device := [directionCount]stat.Rounds{{}, {}}
	for _, r := range c.trials {
		length := secondsOf(r)
		put(runTime, r.Round, 1e9*length)
		if l := r.Layout; l != nil && inside(r.Volume) {
			put(layoutTime, r.Round, float64(l.Took))
			put(layoutRate, r.Round, float64(l.Bytes)/(float64(l.Took)/1e9))
		}
		total := record.Flow{}
		for d, f := range flowsOf(r.Reported) {
			bandwidth, iops := ratesOf(f, length)
			each[d].add(r, f, bandwidth, iops)
			total.Bytes += f.Bytes
			total.Bandwidth += bandwidth
			total.IOPS += iops
		}
		if l, ok := lone(r.Reported); ok {
			total.Latency = l
		}
		both.add(r, &total, total.Bandwidth, total.IOPS)
		c.cpu(r, 1e9*length, float64(total.Bytes), workload, runtime, perByte)
		if use := deviceOf(r); use != nil {
			device[reading][r.Round], device[writing][r.Round] = float64(use.ReadBytes), float64(use.WriteBytes)
		}
	}
	of := func(direction int) figure.Labels { return c.labels("direction", directionNames[direction]) }
	c.Read, c.Write = each[reading].flow(of(reading)), each[writing].flow(of(writing))
	direction := ""
	switch r, w := c.Read.moves(), c.Write.moves(); {
	case r && w:
		direction = "both"
	case r:
		direction = directionNames[reading]
	case w:
		direction = directionNames[writing]
	}
	c.Total = both.flow(c.labels("direction", direction))
	c.Total.Bandwidth.Failed, c.Total.Bandwidth.Total = c.Failed, c.Failed+c.Rounds
	c.RunTime = about("run-time", c.labels(), runTime)
	c.LayoutTime = about("layout-time", c.labels(), layoutTime)
	c.LayoutRate = about("layout-bandwidth", c.labels(), layoutRate)
	c.WorkloadCPU = about("cpu", c.labels("role", "workload"), workload)
	c.RuntimeCPU = about("cpu", c.labels("role", "runtime"), runtime)
	c.CPUPerByte = about("cpu-per-byte", c.labels(), perByte)
	c.DeviceRead = about("device-bytes", of(reading), device[reading])
	c.DeviceWritten = about("device-bytes", of(writing), device[writing])
	if c.Rounds > 0 {
		c.facts = c.gather(c.trials)
	}
}

// inside reports whether a volume is deleted with its sandbox. The job's files are then
// written inside the sandbox.
func inside(volume string) bool {
	kind := volumeKind(volume)
	return kind == record.VolumeRootfs || kind == record.VolumeTmpfs
}

// labels returns the labels of the cell, followed by more keys and values.
func (c *Cell) labels(more ...string) figure.Labels {
	t, bs := c.table, ""
	if t.BS > 0 {
		bs = strconv.FormatInt(t.BS, 10)
	}
	return figure.Of(append([]string{"job", t.Job, "tool", t.Tool, "rw", t.RW, "bs", bs, "volume", t.Volume, "cache", t.Cache, "target", c.Target}, more...)...)
}

func about(quantity string, labels figure.Labels, values stat.Rounds) figure.Figure {
	f := Quantities.Over(quantity, labels, values)
	if !stat.Finite(f.Value) {
		f.Estimate = figure.Estimate{}
	}
	return f
}

// flowRounds holds the values of one direction by round.
type flowRounds struct {
	bytes, bandwidth, iops stat.Rounds
	latency                [len(latencies)]stat.Rounds
}

func newFlowRounds() flowRounds {
	r := flowRounds{bytes: stat.Rounds{}, bandwidth: stat.Rounds{}, iops: stat.Rounds{}}
	for i := range r.latency {
		r.latency[i] = stat.Rounds{}
	}
	return r
}

func (r *flowRounds) add(c *record.Cell, f *record.Flow, bandwidth, iops float64) {
	put(r.bytes, c.Round, float64(f.Bytes))
	put(r.bandwidth, c.Round, bandwidth)
	put(r.iops, c.Round, iops)
	for i, l := range latencies {
		if !l.extreme || c.Source != "" {
			put(r.latency[i], c.Round, float64(l.of(&f.Latency)))
		}
	}
}

func (r *flowRounds) flow(labels figure.Labels) Flow {
	f := Flow{
		Bytes:     about("transferred", labels, r.bytes),
		Bandwidth: about("bandwidth", labels, r.bandwidth),
		IOPS:      about("iops", labels, r.iops),
	}
	for i, l := range latencies {
		f.Latency[i] = about("latency", labels.With("quantile", l.name), r.latency[i])
	}
	return f
}

// moves reports whether any I/O of the direction is known.
func (f *Flow) moves() bool { return f.Bytes.Value > 0 || f.Bandwidth.Known() || f.IOPS.Known() }

// mixed reports whether the cell both read and wrote.
func (c *Cell) mixed() bool { return c.Read.moves() && c.Write.moves() }

// put stores a value unless it is 0, which means that the tool did not report it.
func put(values stat.Rounds, round int, v float64) {
	if v > 0 && !math.IsInf(v, 0) {
		values[round] = v
	}
}

// besideJob is how much longer than the job the process may run, as a share of the job.
// Above that, counters over the life of the process are not attributed to the job.
const besideJob = 0.1

// cpu adds the CPU usage of the target's roles in a round. ran is the duration of the job
// in ns. Node readings cover the whole life of the process. Its start and exit may take
// many times as long as the job.
func (c *Cell) cpu(r *record.Cell, ran, bytes float64, workload, runtime, perByte stat.Rounds) {
	if r.Observed == nil || len(r.Observed.CPU) == 0 {
		return
	}
	var own, others float64
	for _, role := range r.Observed.CPU {
		switch role.Role {
		case record.RoleWorkload:
			own += float64(role.NS)
		case record.RoleOthers: // not part of the target
		default:
			others += float64(role.NS)
		}
	}
	life := max(ran, float64(r.Ended-r.Begun))
	whole := ran > 0 && life <= (1+besideJob)*ran
	if whole {
		runtime[r.Round] = others / life
	}
	switch {
	case r.Reported.CPU > 0 && ran > 0 && !hasGuest(c.info): // with a guest, all CPU time is in its VMM or sentry
		own, life = float64(r.Reported.CPU), ran
	case !whole:
		return
	}
	workload[r.Round] = own / life
	if v := (own + others) / bytes; whole && bytes > 0 && stat.Finite(v) {
		perByte[r.Round] = v
	}
}

// finish chooses the primary figure of the table: IOPS for small blocks, otherwise
// bandwidth, or the other one if a round lacks it. It also sets the base: the first
// of bases that has figures.
func (t *Table) finish(bases []string) {
	lacks := func(of func(*Cell) *figure.Figure) bool {
		return slices.ContainsFunc(t.Cells, func(c *Cell) bool { return of(c).N < c.Rounds })
	}
	noBandwidth, noIOPS := lacks(func(c *Cell) *figure.Figure { return &c.Total.Bandwidth }), lacks(func(c *Cell) *figure.Figure { return &c.Total.IOPS })
	t.byIOPS = !noIOPS && (t.BS > 0 && t.BS <= smallBlock || noBandwidth)
	for _, name := range bases {
		c := t.cellOf(name)
		beside := func(other *Cell) bool { return other != c && other.Rounds > 0 }
		if t.base == nil && c != nil && c.Rounds > 0 && slices.ContainsFunc(t.Cells, beside) {
			t.base, t.Base = c, name
		}
	}
	for _, c := range t.Cells {
		p := c.primary()
		c.Ratio = about(p.Quantity+"-ratio", p.Labels, nil)
		c.CPURatio = about(c.CPUPerByte.Quantity+"-ratio", c.CPUPerByte.Labels, nil)
	}
	if t.base == nil {
		return
	}
	t.base.Ratio.Estimate = figure.Exactly(1)
	if t.base.CPUPerByte.Known() {
		t.base.CPURatio.Estimate = figure.Exactly(1)
	}
}

// compare compares all cells with those of their base. The first table of a report
// shows all jobs, so they form one family of comparisons.
func (j *Judgement) compare() {
	var speed, cpu []figure.Pair
	bases := j.bases()
	for _, t := range j.Tables {
		t.finish(bases)
	}
	j.each(func(c *Cell) {
		if base := c.table.base; base != nil && c != base {
			speed = append(speed, figure.Pair{Base: base.primary(), Figure: c.primary()})
			cpu = append(cpu, figure.Pair{Base: &base.CPUPerByte, Figure: &c.CPUPerByte})
		}
	})
	j.Comparisons = len(speed)
	j.Plan.Compare("", speed)
	j.Plan.Compare("", cpu)
	j.each(func(c *Cell) {
		if v := c.primary().Versus; v != nil {
			v.Baseline, c.Ratio.Estimate, c.Ratio.Reasons = c.table.Base, v.Ratio(), []string{v.Why}
		}
		if v := c.CPUPerByte.Versus; v != nil {
			v.Baseline, c.CPURatio.Estimate = c.table.Base, v.Ratio()
		}
	})
}

// bases returns the possible base targets in order of preference. The requested baseline
// is first, then the host, targets that share its kernel, and targets with their own
// kernel. Imported results need not be from one machine. They have only the first two,
// unless one of the targets has a guest kernel.
func (j *Judgement) bases() []string {
	all := []string{j.Plan.Baseline, host}
	if j.Imported && !slices.ContainsFunc(j.Targets, func(t record.Target) bool { return hasGuest(&t) }) {
		return all
	}
	for _, guest := range []bool{false, true} {
		for i := range j.Targets {
			if t := &j.Targets[i]; hasGuest(t) == guest && t.Kind != "floor" {
				all = append(all, t.Name)
			}
		}
	}
	return all
}

// Different reports whether a difference from the base was shown.
func (c *Cell) Different() bool { return c.primary().Versus.Different() }

// primary returns the figure that comparisons use.
func (c *Cell) primary() *figure.Figure {
	if c.table.byIOPS {
		return &c.Total.IOPS
	}
	return &c.Total.Bandwidth
}

// lone returns the latency of the only direction, or the combined latency if the tool
// reports one.
func lone(c *record.Reported) (record.Latency, bool) {
	switch r, w := moves(&c.Read), moves(&c.Write); {
	case r && !w:
		return c.Read.Latency, true
	case w && !r:
		return c.Write.Latency, true
	}
	return c.Latency, c.Latency != (record.Latency{})
}

func moves(f *record.Flow) bool { return f.Bytes > 0 || f.IOs > 0 || f.Bandwidth > 0 || f.IOPS > 0 }

// secondsOf returns the duration of a job as the tool reports it, else as observed, or
// 0 if unknown.
func secondsOf(c *record.Cell) float64 {
	if c.Reported.Seconds > 0 {
		return c.Reported.Seconds
	}
	for _, f := range flowsOf(c.Reported) { // bytes moved divided by the tool's own rate
		if s := float64(f.Bytes) / f.Bandwidth; s > 0 && stat.Finite(s) {
			return s
		}
	}
	if c.Observed != nil {
		return float64(c.Observed.Took) / 1e9
	}
	return 0
}

// ratesOf returns the rates that the tool reports, or computes them from its totals.
func ratesOf(f *record.Flow, seconds float64) (bandwidth, iops float64) {
	bandwidth, iops = f.Bandwidth, f.IOPS
	if bandwidth == 0 && seconds > 0 {
		bandwidth = float64(f.Bytes) / seconds
	}
	if iops == 0 && seconds > 0 {
		iops = float64(f.IOs) / seconds
	}
	return bandwidth, iops
}
