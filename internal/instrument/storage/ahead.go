package storage

import (
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/record"
)

// Ahead is what the jobs take, those of each target and round, with the files that are
// laid out for them. How long one takes that runs until it is done is the question.
func (o *Options) Ahead(targets int) terms.Ahead {
	a, visits := terms.Ahead{Budget: o.Budget}, float64(targets)*float64(o.Enough(o.Rounds, o.Comparisons(targets)))
	o.eachCell(func(volume string, j *Job) { j.ahead(&a, volume, visits) })
	return a
}

// Comparisons are those of a table of so many targets.
func (o *Options) Comparisons(targets int) (n int) {
	o.eachCell(func(string, *Job) { n += max(targets-1, 0) })
	return n
}

// eachCell calls do with the kind of volume and the job of each cell of a target. Of options
// that are wrong there is none, which is said when a run begins.
func (o *Options) eachCell(do func(volume string, j *Job)) {
	volumes, jobs, _ := o.Resolved()
	for _, v := range volumes {
		for i := range jobs {
			for _, cache := range o.Cache {
				if jobs[i].Takes(v.Kind, cache) {
					do(v.Kind, &jobs[i])
				}
			}
		}
	}
}

// ahead adds so many visits with the job.
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
	case j.Tool == ToolDD && j.writes(): // makes its own file
	case volume == record.VolumeRootfs: // of which each sandbox has its own
		a.Bytes += visits * float64(j.Bytes())
	default:
		a.Bytes += float64(j.Bytes())
	}
}

// written is how much a job writes that was resolved, unless it is stopped before its
// end. Half of what fio does at random in both directions are writes, and two fifths of
// what sysbench does (--file-rw-ratio).
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
	share := 1.0
	if j.Tool == ToolSysbench {
		if j.RW == RWRandRW {
			share = 0.4
		}
		return share * float64(j.Requests) * float64(j.BS), true
	}
	if j.RW == RWRandRW {
		share = 0.5
	}
	return share * float64(max(j.NumJobs, 1)) * float64(j.Bytes()), true
}
