package storage

import (
	"slices"

	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/record"
)

// Ahead returns the expected time and bytes of all jobs, including the layout of their files.
// The time of a job that runs to its end is unknown in advance.
func (o *Options) Ahead(targets int) terms.Ahead {
	a, visits := terms.Ahead{Budget: o.Budget}, float64(targets)*float64(o.Enough(o.Rounds, o.Comparisons(targets)))
	o.eachCell(func(volume string, j *Job) { j.ahead(&a, volume, visits) })
	return a
}

// Comparisons returns the number of comparisons in the tables with the given targets.
func (o *Options) Comparisons(targets int) (n int) {
	o.eachCell(func(string, *Job) { n += max(targets-1, 0) })
	return n
}

// eachCell calls do for the cells of one target. Invalid options have none; they are reported
// when a run begins.
func (o *Options) eachCell(do func(volume string, j *Job)) {
	volumes, jobs, _ := o.Resolved()
	for _, v := range volumes {
		for _, p := range o.Pairs(jobs, v.Kind) {
			do(v.Kind, &p.Job)
		}
	}
}

// Pair is a job with a cache mode.
type Pair struct {
	Job   Job
	Cache string
}

// Pairs returns what runs on volumes of a kind, in the order of the plan.
func (o *Options) Pairs(jobs []Job, kind string) (all []Pair) {
	for _, j := range jobs {
		for _, cache := range o.Cache {
			if (len(j.Volumes) == 0 || slices.Contains(j.Volumes, kind)) && (len(j.Caches) == 0 || slices.Contains(j.Caches, cache)) {
				all = append(all, Pair{j, cache})
			}
		}
	}
	return all
}

// ahead adds the given number of visits with the job.
func (j *Job) ahead(a *terms.Ahead, volume string, visits float64) {
	if j.TimeBased {
		a.Takes(visits, j.Runtime)
	}
	if volume == record.VolumeTmpfs {
		return
	}
	written, known := j.written()
	a.More = a.More || !known
	a.Bytes += visits * written
	switch {
	case j.Tool == ToolDD && j.writes(): // creates its own file
	case volume == record.VolumeRootfs: // each sandbox has its own
		a.Bytes += visits * float64(j.Bytes())
	default:
		a.Bytes += float64(j.Bytes())
	}
}

// written returns the bytes that a resolved job writes, or false if it may stop early. Random
// I/O in both directions is half writes with fio, and two fifths writes with sysbench
// (--file-rw-ratio).
func (j *Job) written() (bytes float64, known bool) {
	switch {
	case len(j.Options) > 0:
		return 0, false
	case !j.writes():
		return 0, true
	case j.TimeBased, j.Tool == ToolSysbench && j.Requests == 0:
		return 0, false
	case j.Tool == ToolDD:
		return float64(j.Bytes()), true
	}
	share, moved := 0.5, float64(max(j.NumJobs, 1))*float64(j.Bytes())
	if j.Tool == ToolSysbench {
		share, moved = 0.4, float64(j.Requests)*float64(j.BS)
	}
	if j.RW != RWRandRW {
		share = 1
	}
	return share * moved, true
}
