package storage_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// blank returns a record without cells.
func blank(p storage.Options, targets ...string) *record.Record {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	rec := &record.Record{Header: record.Header{Type: record.TypeHeader, Schema: record.Schema, Experiment: "storage", Plan: text, Environment: record.Environment{CPUs: 4}},
		End: &record.End{Type: record.TypeEnd, Status: "done"}}
	for _, name := range targets {
		t := record.Target{Type: record.TypeTarget, Name: name, Kind: "oci", Clock: "host"}
		if name == "runsc" {
			t.Clock = "guest"
		}
		rec.Targets = append(rec.Targets, t)
	}
	return rec
}

// storing builds records of one job. By default there are six quiet rounds on host, runc
// and runsc, and the device transfers what a direct job reads.
type storing struct {
	job      storage.Job
	volume   string
	cache    string
	rounds   int
	targets  []string
	baseline string
	cell     func(c *record.Cell) // changes only cells of runc or runsc, unless host is set
	every    func(c *record.Cell)
	ceilings []record.Ceiling
	places   []record.Place
	findings []record.Finding
}

const ms = 1_000_000

const blocks = 20000 // of 512 KiB each, in ten seconds

func store(change func(*storing)) *record.Record {
	s := storing{job: read, volume: "bind", cache: "direct", rounds: 6, targets: []string{"host", "runc", "runsc"}}
	if change != nil {
		change(&s)
	}
	p := storage.Options{Volumes: []string{s.volume}, Cache: []string{s.cache}, Jobs: []storage.Job{s.job}, Rounds: s.rounds, Scale: 1, Baseline: s.baseline}
	rec := blank(p, s.targets...)
	for round := range s.rounds {
		for order, name := range s.targets {
			bytes := int64(blocks) * s.job.BS
			rate := float64(bytes) / 10 * (1 + float64(round%3)/100)
			f := record.Flow{Bytes: bytes, IOs: blocks, Bandwidth: rate, IOPS: rate / float64(s.job.BS), Latency: record.Latency{Mean: ms / 4, P50: 4 * ms, P95: 8 * ms, P99: 9 * ms, P999: 20 * ms}}
			c := record.Cell{Type: record.TypeCell, Round: round, Order: order, Target: name, Volume: s.volume, Cache: s.cache, Job: s.job.Name, Tool: s.job.Tool,
				Version: "fio-3.33", Command: "fio --name=x", Dropped: "node", Quiet: true, Begun: 1, Ended: 1 + 10_000*ms, Reported: &record.Reported{Seconds: 10},
				Observed: &record.Observed{Took: 10_100 * ms, Flushed: 0, CPU: []record.RoleTime{{Role: record.RoleWorkload, NS: 2000 * ms}, {Role: record.RoleShim, NS: 500 * ms}, {Role: record.RoleOthers, NS: 9000 * ms}}}}
			c.Observed.Device, c.Observed.Disks = record.DeviceUse{Name: "vda"}, record.DeviceUse{Name: "vda+vdb"}
			if s.job.RW == "write" || s.job.RW == "randwrite" {
				c.Reported.Write, c.Observed.Device.WriteBytes = f, bytes+mib
			} else {
				c.Reported.Read, c.Observed.Device.ReadBytes = f, bytes+mib
			}
			if s.every != nil {
				s.every(&c)
			}
			if s.cell != nil && name != "host" {
				s.cell(&c)
			}
			if err := record.Validate(&c); err != nil {
				panic(err)
			}
			rec.Cells = append(rec.Cells, c)
		}
	}
	rec.Ceilings, rec.Places, rec.Findings = s.ceilings, s.places, s.findings
	return rec
}

// all combines changes to a record.
func all(changes ...func(*storing)) func(*storing) {
	return func(s *storing) {
		for _, change := range changes {
			change(s)
		}
	}
}

// cells changes the cells of runc and runsc.
func cells(change func(*record.Cell)) func(*storing) {
	return func(s *storing) {
		before := s.cell
		s.cell = func(c *record.Cell) {
			if before != nil {
				before(c)
			}
			change(c)
		}
	}
}

// seen changes the node readings of runc and runsc.
func seen(change func(*record.Observed)) func(*storing) {
	return cells(func(c *record.Cell) { change(c.Observed) })
}

// said changes the results that the tools of runc and runsc report.
func said(change func(*record.Reported)) func(*storing) {
	return cells(func(c *record.Cell) { change(c.Reported) })
}

// took sets the run time that the tools of runc and runsc report.
func took(seconds float64) func(*storing) {
	return said(func(r *record.Reported) { r.Seconds = seconds })
}

// everySecond multiplies a bandwidth in every second round.
func everySecond(factor float64) func(*storing) {
	return cells(func(c *record.Cell) { c.Reported.Read.Bandwidth *= 1 + (factor-1)*float64(c.Round%2) })
}

func writing(s *storing)  { s.job = write8 }
func buffered(s *storing) { s.cache = "buffered" }

func rounds(n int) func(*storing)     { return func(s *storing) { s.rounds = n } }
func on(volume string) func(*storing) { return func(s *storing) { s.volume = volume } }

// mixed changes the job to one that writes as much as it reads.
func mixed(s *storing) {
	s.job = rndrw
	s.every = func(c *record.Cell) {
		c.Reported.Write, c.Observed.Device.WriteBytes = c.Reported.Read, c.Observed.Device.ReadBytes
	}
}

// lying sets the place of the volume of runc.
func lying(p record.Place) func(*storing) {
	p.Target, p.Volume = "runc", "bind"
	return func(s *storing) { s.places = []record.Place{p} }
}

// judged judges a record and checks that no figure is NaN or infinite.
func judged(t *testing.T, rec *record.Record) *storage.Judgement {
	t.Helper()
	s := must.Get(storage.Judge(rec))(t)
	for _, f := range s.Figures() {
		v := f.Value + f.Lo + f.Hi
		must.That(t, !math.IsNaN(v) && !math.IsInf(v, 0), "%s of %s is %+v", f.Quantity, f.Labels, f.Estimate)
	}
	return s
}

func cell(t *testing.T, s *storage.Judgement, job, volume, cache, target string) *storage.Cell {
	t.Helper()
	for _, x := range s.Tables {
		for _, c := range x.Cells {
			if x.Job == job && x.Volume == volume && x.Cache == cache && c.Target == target {
				return c
			}
		}
	}
	t.Fatalf("no cell of %s %s on %s, %s", target, job, volume, cache)
	return nil
}

// only returns the cell of a target in a record of one table.
func only(t *testing.T, s *storage.Judgement, target string) *storage.Cell {
	t.Helper()
	must.That(t, len(s.Tables) == 1, "%d tables", len(s.Tables))
	return cell(t, s, s.Tables[0].Job, s.Tables[0].Volume, s.Tables[0].Cache, target)
}

func found(t *testing.T, s *storage.Judgement, code string) record.Finding {
	t.Helper()
	for _, f := range s.Found {
		if f.Code == code {
			return f
		}
	}
	t.Fatalf("no finding %s in %+v", code, s.Found)
	return record.Finding{}
}

const (
	mb  = 1e6
	mib = 1 << 20
	kib = 1 << 10
	gib = 1 << 30
)

var (
	read   = storage.Job{Name: "read", Tool: "fio", RW: "read", BS: 512 * kib, Size: gib, NumJobs: 8}
	write8 = storage.Job{Name: "write", Tool: "fio", RW: "write", BS: 512 * kib, Size: gib, NumJobs: 8}
	rndrw  = storage.Job{Name: "rndrw", Tool: "sysbench", RW: "randrw", BS: 16 * kib, Size: 5 * gib, Files: 10, NumJobs: 16, Requests: 5000}
)

const (
	device = storage.Device
	host   = storage.HostCache
	guest  = storage.GuestCache
	short  = storage.TooShort
)

// imported returns a record of tare import with the published figures of Kata's I/O.
// Package published tests their verdicts.
func imported(t *testing.T) *record.Record {
	t.Helper()
	return must.Get(record.Load("../../../published/kata-io/record.jsonl"))(t)
}
