package storage

import (
	"cmp"
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

// directionsOf are the label values of a cell's figures by the directions in which data moved.
var directionsOf = map[[directionCount]bool][]string{
	{}: {""}, {true, false}: {"read"}, {false, true}: {"write"}, {true, true}: {"both", "read", "write"},
}

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
	c.Command = cmp.Or(c.Command, round.Command)
	failure := round.Failure
	if failure == nil && round.Reported == nil {
		failure = &record.Failure{Kind: record.FailState, Detail: "the record has neither figures nor a reason for their absence"}
	}
	if failure != nil {
		c.Failed++
		c.Failure = cmp.Or(c.Failure, failure)
		return false
	}
	c.trials = append(c.trials, round)
	return true
}

// sum computes the cell's figures from its rounds.
func (c *Cell) sum() {
	c.Rounds = len(c.trials)
	slices.SortStableFunc(c.trials, func(a, b *record.Cell) int { return a.Round - b.Round })
	c.directions = directionsOf[movedIn(c.trials)]
	for _, r := range append([]*record.Cell{{Reported: &record.Reported{}}}, c.trials...) { // the first one has no values
		i := 0
		c.values(r, func(v float64, quantity string, labels ...string) {
			if i == len(c.Set) {
				c.Set = append(c.Set, Quantities.New(quantity, figure.Estimate{}, c.labels(labels...)))
			}
			if stat.Finite(v) {
				c.Set[i].Rounds = append(c.Set[i].Rounds, figure.Round{Round: r.Round, Value: v})
			}
			i++
		})
	}
	for i, f := range c.Set {
		c.Set[i] = about(f.Quantity, f.Labels, f.Values())
	}
	c.Set[0].Failed, c.Set[0].Total = c.Failed, c.Failed+c.Rounds
	if c.Rounds > 0 {
		c.facts = c.gather(c.trials)
	}
}

// movedIn returns the directions in which data moved.
func movedIn(rounds []*record.Cell) (out [directionCount]bool) {
	for _, r := range rounds {
		for d, f := range flowsOf(r.Reported) {
			out[d] = out[d] || moves(f)
		}
	}
	return out
}

// mixed reports whether the cell both read and wrote.
func (c *Cell) mixed() bool { return len(c.directions) > 1 }

// unknown is the value of a figure in a round that has none.
var unknown = math.NaN()

// nonzero returns v, or unknown if it is 0, which means that the tool did not report it.
func nonzero(v float64) float64 {
	if v > 0 {
		return v
	}
	return unknown
}

// values calls put for each figure of the cell with its value in a round and its own labels.
// The order is that of the data. The first figures are those of all directions together;
// jobs that read and write have figures per direction, too.
func (c *Cell) values(r *record.Cell, put func(v float64, quantity string, labels ...string)) {
	length, total := secondsOf(r), record.Flow{Latency: lone(r.Reported)}
	flows := map[string]record.Flow{}
	for d, f := range flowsOf(r.Reported) {
		one := *f
		one.Bandwidth, one.IOPS = ratesOf(f, length)
		total.Bytes, total.Bandwidth, total.IOPS = total.Bytes+one.Bytes, total.Bandwidth+one.Bandwidth, total.IOPS+one.IOPS
		flows[directionNames[d]] = one
	}
	flows[c.directions[0]] = total
	for _, direction := range c.directions {
		f := flows[direction]
		put(nonzero(f.Bandwidth), "bandwidth", "direction", direction)
		put(nonzero(f.IOPS), "iops", "direction", direction)
		put(nonzero(float64(f.Bytes)), "transferred", "direction", direction)
		for _, l := range latencies {
			v := nonzero(float64(l.of(&f.Latency)))
			if l.extreme && r.Source == "" {
				v = unknown
			}
			put(v, "latency", "direction", direction, "quantile", l.name)
		}
	}
	put(nonzero(1e9*length), "run-time")
	layout := record.Layout{}
	if r.Layout != nil && inside(r.Volume) {
		layout = *r.Layout
	}
	put(nonzero(float64(layout.Took)), "layout-time")
	put(nonzero(float64(layout.Bytes)/(float64(layout.Took)/1e9)), "layout-bandwidth")
	workload, runtime, perByte := c.cpu(r, 1e9*length, float64(total.Bytes))
	put(workload, "cpu", "role", "workload")
	put(runtime, "cpu", "role", "runtime")
	put(perByte, "cpu-per-byte")
	put(unknown, "bandwidth-ratio", "direction", c.directions[0]) // ratios are set by compare
	put(unknown, "iops-ratio", "direction", c.directions[0])
	put(unknown, "cpu-per-byte-ratio")
	put(unknown, "reached-device") // set by judged
	read, written := unknown, unknown
	if use := deviceOf(r); use != nil {
		read, written = float64(use.ReadBytes), float64(use.WriteBytes)
	}
	put(read, "device-bytes", "direction", "read")
	put(written, "device-bytes", "direction", "write")
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

// besideJob is the maximum time that the tool's process may run beyond the job, as a share of the
// job. Above that, counters over the life of the process are not attributed to the job.
const besideJob = 0.1

// cpu returns the mean CPU usage of the workload and of the rest of the target in a round,
// and the CPU time of both per byte. ran is the duration of the job in ns. Node readings
// cover the whole life of the process. Its start and exit may take many times as long as
// the job.
func (c *Cell) cpu(r *record.Cell, ran, bytes float64) (workload, runtime, perByte float64) {
	workload, runtime, perByte = unknown, unknown, unknown
	if r.Observed == nil || len(r.Observed.CPU) == 0 {
		return workload, runtime, perByte
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
		runtime = others / life
	}
	switch {
	case r.Reported.CPU > 0 && ran > 0 && !hasGuest(c.info): // with a guest, all CPU time is in its VMM or sentry
		own, life = float64(r.Reported.CPU), ran
	case !whole:
		return workload, runtime, perByte
	}
	if workload = own / life; whole && bytes > 0 {
		perByte = (own + others) / bytes
	}
	return workload, runtime, perByte
}

// finish chooses the primary figure of the table: IOPS for small blocks, otherwise
// bandwidth, or the other one if a round lacks it. It also sets the base: the first
// of bases that has figures.
func (t *Table) finish(bases []string) {
	lacks := func(quantity string) bool {
		return slices.ContainsFunc(t.Cells, func(c *Cell) bool { return c.Of(quantity).N < c.Rounds })
	}
	t.primary = "bandwidth"
	if !lacks("iops") && (t.BS > 0 && t.BS <= smallBlock || lacks("bandwidth")) {
		t.primary = "iops"
	}
	for _, name := range bases {
		c := t.cellOf(name)
		beside := func(other *Cell) bool { return other != c && other.Rounds > 0 }
		if t.base == nil && c != nil && c.Rounds > 0 && slices.ContainsFunc(t.Cells, beside) {
			t.base, t.Base = c, name
		}
	}
	if t.base == nil {
		return
	}
	t.base.ratio().Estimate = figure.Exactly(1)
	if t.base.Of("cpu-per-byte").Known() {
		t.base.Of("cpu-per-byte-ratio").Estimate = figure.Exactly(1)
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
	measured := j.measured()
	for _, c := range measured {
		if base := c.table.base; base != nil && c != base {
			speed = append(speed, figure.Pair{Base: base.primary(), Figure: c.primary()})
			cpu = append(cpu, figure.Pair{Base: base.Of("cpu-per-byte"), Figure: c.Of("cpu-per-byte")})
		}
	}
	j.Comparisons = len(speed)
	j.Plan.Compare("", speed)
	j.Plan.Compare("", cpu)
	for _, c := range measured {
		if v := c.primary().Versus; v != nil {
			r := c.ratio()
			v.Baseline, r.Estimate, r.Reasons = c.table.Base, v.Ratio(), []string{v.Why}
		}
		if v := c.Of("cpu-per-byte").Versus; v != nil {
			v.Baseline, c.Of("cpu-per-byte-ratio").Estimate = c.table.Base, v.Ratio()
		}
	}
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
func (c *Cell) primary() *figure.Figure { return c.Of(c.table.primary) }

// ratio returns the primary figure divided by that of the base in the same round.
func (c *Cell) ratio() *figure.Figure { return c.Of(c.table.primary + "-ratio") }

// lone returns the latency of the only direction. If the tool reports a combined latency, lone
// returns that.
func lone(c *record.Reported) record.Latency {
	switch r, w := moves(&c.Read), moves(&c.Write); {
	case r && !w:
		return c.Read.Latency
	case w && !r:
		return c.Write.Latency
	}
	return c.Latency
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
	if seconds <= 0 {
		return f.Bandwidth, f.IOPS
	}
	return cmp.Or(f.Bandwidth, float64(f.Bytes)/seconds), cmp.Or(f.IOPS, float64(f.IOs)/seconds)
}
