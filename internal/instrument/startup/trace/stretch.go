package trace

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/record"
)

// stretch is an interval of one process or span.
type stretch struct {
	name, kind, container string
	began, ended          int64
	rank                  int // of overlapping stretches, the one with the highest rank has the time
	process               int // index into the start's processes; -1 for spans
	place                 int // index among all stretches of the start
}

// precedence orders overlapping stretches: higher rank first, then later start time, then
// earlier end, since that one is nested. If the times are equal, as for a call and a
// phase inside it, the first one has all the time.
func precedence(a, b *stretch) int {
	return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.began, a.began), cmp.Compare(a.ended, b.ended), cmp.Compare(a.place, b.place))
}

// partition divides the time of a start among stretches. The rest of the time belongs
// to the engine.
func partition(s *record.Start, all []stretch, engine string) []Part {
	if s.Ended <= s.Began {
		return nil
	}
	engine = cmp.Or(engine, "engine")
	all = within(s, all)
	edges := []int64{s.Began, s.Ended}
	for _, c := range all {
		edges = append(edges, c.began, c.ended)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	cpu := usage(s.Busy)
	var parts []Part
	var last *stretch
	var now []*stretch // active stretches, by precedence
	next := 0
	for i := 0; i+1 < len(edges); i++ {
		from, to := edges[i], edges[i+1]
		for ; next < len(all) && all[next].began <= from; next++ {
			at, _ := slices.BinarySearchFunc(now, &all[next], precedence)
			now = slices.Insert(now, at, &all[next])
		}
		for len(now) > 0 && now[0].ended <= from {
			now = now[1:]
		}
		var owner *stretch
		p := Part{Name: engine, Kind: record.KindEngine, Began: from, Ended: to}
		if len(now) > 0 {
			owner = now[0]
			p.Name, p.Kind, p.Container = owner.name, owner.kind, owner.container
		}
		if n := len(parts); n > 0 && (owner == last || p.continues(&parts[n-1])) {
			parts[n-1].Ended = to
		} else {
			parts = append(parts, p)
		}
		last = owner
	}
	for i := range parts {
		parts[i].CPU = cpu.between(parts[i].Began, parts[i].Ended)
	}
	return parts
}

// continues reports whether a part is merged with the previous part. This applies to
// engine time and to the stages of a runtime's init.
func (p *Part) continues(last *Part) bool {
	return (p.Kind == record.KindEngine || p.Kind == record.KindInit) && p.Kind == last.Kind && p.Name == last.Name && p.Container == last.Container
}

// within limits stretches to the time of the start, drops empty ones and sorts the
// others by start time.
func within(s *record.Start, all []stretch) []stretch {
	var in []stretch
	for _, c := range all {
		c.began, c.ended = max(c.began, s.Began), min(c.ended, s.Ended)
		if c.began < c.ended {
			in = append(in, c)
		}
	}
	slices.SortStableFunc(in, func(a, b stretch) int { return cmp.Compare(a.began, b.began) })
	for i := range in {
		in[i].place = i
	}
	return in
}

// stretches returns the stretches of a live start, or of the spans of logs and notes.
func stretches(s *record.Start) []stretch {
	if len(s.Processes) > 0 {
		return append(waitedFor(s), logged(s, rankLogged)...)
	}
	return logged(s, 1)
}

// logged returns the spans of logs and notes as stretches of the given rank.
func logged(s *record.Start, rank int) (all []stretch) {
	for _, p := range s.Spans {
		c := stretch{name: p.Name, kind: p.Kind, container: p.Container, began: p.Began, ended: p.Ended, rank: rank, process: -1}
		if p.Kind == record.KindEngine {
			c.rank = 0
		}
		all = append(all, c)
	}
	return all
}

// The ranks of activities in a live start. A call that runs the whole container has a
// lower rank than its workload.
const (
	rankGuest  = iota + 1 // only a VMM works
	rankLogged            // spans from logs
	rankHelper
	rankRun
	rankWorkload
	rankCall
	rankInit
	rankWithin // a helper below a call, which waits for it
	rankCNI
)

// lasting are the helpers that run as long as the container, or become daemons.
var lasting = []string{
	"docker-proxy", "slirp4netns", "pasta", "pasta.avx2", "passt", "rootlessport", "rootlesskit", "fuse-overlayfs", "dnsmasq",
	"aardvark-dns", "kata-proxy", "kata-shim", "vhost-device-vsock", "docker-init",
}

// waitedFor returns the stretches of a live start in which another process waits for
// one of these.
func waitedFor(s *record.Start) []stretch {
	f := family(s)
	var all []stretch
	add := func(i, rank int, from, to int64) {
		p := &s.Processes[i]
		all = append(all, stretch{name: p.Name, kind: p.Kind, container: p.Container, began: from, ended: to, rank: rank, process: i})
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		born, end := f.born(i), f.end(i)
		switch p.Kind {
		case record.KindCNI:
			add(i, rankCNI, born, end)
		case record.KindInit:
			if c := f.maker(i); c >= 0 {
				add(i, rankInit, max(born, f.born(c)), min(end, f.end(c)))
			}
		case record.KindCall:
			rank := rankCall
			if p.Verb == "run" || p.Verb == "exec" {
				rank = rankRun
			}
			add(i, rank, born, end)
		case record.KindHelper:
			if !f.ended(i) || p.Exec == 0 || slices.Contains(lasting, p.Program) {
				continue
			}
			rank := rankHelper
			if p.Verb == "" && f.maker(i) >= 0 { // a nested call has a verb
				rank = rankWithin
			}
			add(i, rank, born, end)
		}
	}
	for _, w := range f.workloads() {
		add(w.process, rankWorkload, w.from, w.to)
	}
	for _, w := range f.alone() {
		add(w.process, rankGuest, w.from, w.to)
	}
	return all
}
