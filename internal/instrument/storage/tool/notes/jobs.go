package notes

import (
	"fmt"
	"time"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// identity is what two results have to share to be of one job. What fio was
// told to call it makes no other job; that one stands in a table does, whose
// columns are matched to commands by their headings: it is no round of what a tool
// printed itself.
type identity struct {
	table                 bool
	tool, rw, engine      string
	bs                    int64
	size, fileSize, count int64
	files, threads, depth int
	requests              int64
	runtime               time.Duration
	prepare               bool
}

func identityOf(r Result) identity {
	j := r.Job
	if r.prepare {
		return identity{table: r.table, tool: j.Tool, rw: j.RW, size: j.Size, prepare: true}
	}
	i := identity{
		table: r.table, tool: j.Tool, rw: j.RW, engine: j.Engine, bs: j.BS, size: j.Size, fileSize: j.FileSize, count: j.Count,
		files: j.Files, threads: j.NumJobs, depth: j.IODepth, requests: j.Requests, runtime: j.Runtime, prepare: r.prepare,
	}
	if j.RW == "" { // a direction is all that lone figures tell
		switch none := (record.Flow{}); {
		case r.Claim.Write == none && r.Claim.Read != none:
			i.rw = "?read"
		case r.Claim.Read == none && r.Claim.Write != none:
			i.rw = "?write"
		}
	}
	if r.Command != "" || j.BS > 0 && i.sized() { // the tool's defaults are known where its options are
		i.files, i.threads, i.depth = max(i.files, 1), max(i.threads, 1), max(i.depth, 1)
		if i.tool == plan.ToolFio && i.engine == "" {
			i.engine = "psync"
		}
	}
	return i
}

func (i identity) sized() bool { return i.size+i.fileSize+i.count > 0 }

// fits says whether all that i knows is so in other.
func (i identity) fits(other identity) bool {
	return i.table == other.table && i.tool == other.tool && i.rw == other.rw && i.bs == other.bs && i.prepare == other.prepare &&
		(i.engine == "" || i.engine == other.engine) && (i.files == 0 || i.files == other.files) &&
		(i.threads == 0 || i.threads == other.threads) && (i.depth == 0 || i.depth == other.depth)
}

// jobs are the different jobs among results, with names that tell them apart.
type jobs struct {
	all   []plan.Job
	which map[identity]int // in all
}

// jobsOf finds the jobs of all results. One that says no size is taken for the
// only one with a size that it fits, if there is only one.
func jobsOf(all []*Notes) *jobs {
	js := &jobs{all: []plan.Job{}, which: map[identity]int{}}
	var known []identity
	eachResult(all, func(r Result) {
		i := identityOf(r)
		if _, there := js.which[i]; !there && i.sized() {
			js.which[i] = len(js.all)
			js.all = append(js.all, plain(r))
			known = append(known, i)
		}
	})
	eachResult(all, func(r Result) {
		i := identityOf(r)
		if _, there := js.which[i]; there {
			return
		}
		at, found := 0, 0
		for _, k := range known {
			if i.fits(k) {
				at, found = js.which[k], found+1
			}
		}
		if found != 1 {
			at = len(js.all)
			js.all = append(js.all, plain(r))
		}
		js.which[i] = at
	})
	js.name()
	return js
}

func eachResult(all []*Notes, do func(Result)) {
	for _, n := range all {
		for _, r := range n.Results {
			do(r)
		}
	}
}

// plain is a result's job with the first part of its name: "randread 512k",
// "dd write 4k", "sysbench randrw 16k".
func plain(r Result) plan.Job {
	j := r.Job
	i := identityOf(r)
	j.Name = first(trimmed(i.rw), "mixed")
	if j.Tool != plan.ToolFio || j.RW == "" {
		j.Name = j.Tool + " " + j.Name
	}
	if r.prepare {
		j.Name = "sysbench prepare"
	}
	if j.BS > 0 {
		j.Name += " " + plan.FormatSize(j.BS)
	}
	return j
}

func trimmed(rw string) string {
	if len(rw) > 0 && rw[0] == '?' {
		return rw[1:]
	}
	return rw
}

// name adds to names that are not the only ones what tells them apart: the size,
// the threads, the engine, that it is a table's, and last a number.
func (js *jobs) name() {
	tables := make([]bool, len(js.all))
	for i, at := range js.which {
		tables[at] = i.table
	}
	for _, detail := range []func(plan.Job) string{
		sizeName,
		func(j plan.Job) string { return prefixed("×", int64(j.NumJobs)) },
		func(j plan.Job) string { return j.Engine },
		func(j plan.Job) string { return prefixed("depth ", int64(j.IODepth)) },
	} {
		times := js.times()
		for i := range js.all {
			if more := detail(js.all[i]); times[js.all[i].Name] > 1 && more != "" {
				js.all[i].Name += " " + more
			}
		}
	}
	times := js.times()
	for i := range js.all {
		if tables[i] && times[js.all[i].Name] > 1 {
			js.all[i].Name += " (table)"
		}
	}
	taken := map[string]bool{}
	for i := range js.all {
		name := js.all[i].Name
		for n := 2; taken[js.all[i].Name]; n++ {
			js.all[i].Name = fmt.Sprintf("%s (%d)", name, n)
		}
		taken[js.all[i].Name] = true
	}
}

func (js *jobs) times() map[string]int {
	times := map[string]int{}
	for _, j := range js.all {
		times[j.Name]++
	}
	return times
}

func sizeName(j plan.Job) string {
	switch {
	case j.Count > 0:
		return fmt.Sprintf("count=%d", j.Count)
	case j.FileSize > 0:
		return fmt.Sprintf("%d×%s", max(j.Files, 1), plan.FormatSize(j.FileSize))
	case j.Size > 0:
		return plan.FormatSize(j.Size)
	}
	return ""
}

func prefixed(prefix string, n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(prefix, n)
}

// of is the name of the job that a result is of.
func (js *jobs) of(r Result) string { return js.all[js.which[identityOf(r)]].Name }
