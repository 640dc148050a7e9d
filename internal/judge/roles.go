package judge

import (
	"cmp"
	"slices"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/record"
)

// RoleFacts is what the processes of one role of a target used for an
// operation: medians over the measured rounds in which no lane failed and every
// process could be read. CPU is in nanoseconds, memory is PSS in bytes.
type RoleFacts struct {
	Role      record.Role `json:"role"`
	N         int         `json:"n"`      // rounds; without one there are no figures
	Before    float64     `json:"before"` // processes
	After     float64     `json:"after"`
	CPU       *float64    `json:"cpu,omitempty"` // an operation's: that of the batch ÷ its lanes; of processes that are gone after it none is known
	PSSBefore float64     `json:"pss_before"`
	PSSPeak   float64     `json:"pss_peak"`
	PSSAfter  float64     `json:"pss_after"`
	Growth    float64     `json:"growth"` // for each container: (after − before) ÷ lanes; below 0 where memory was given back
	Each      float64     `json:"each"`   // of one process: the memory after ÷ the processes, or before where there is none after
	Unread    int         `json:"unread"` // processes that could not be read, in rounds that do not count for it
}

// knownRoles are in the order in which they are shown; others follow by name.
var knownRoles = []record.Role{record.RoleDaemon, record.RoleShim, record.RoleMonitor, record.RoleVMM, record.RoleVirtiofs}

// roleFacts gathers them.
type roleFacts map[record.Role]*roleRounds

type roleRounds struct {
	before, after, cpu, pssBefore, pssPeak, pssAfter, growth, each []float64
	unread                                                         int
}

// add takes a batch in which every lane did what it was asked for.
func (f roleFacts) add(b *record.Batch) {
	for _, u := range b.Roles {
		r := f[u.Role]
		if r == nil {
			r = new(roleRounds)
			f[u.Role] = r
		}
		if u.Unread > 0 {
			r.unread += u.Unread
			continue
		}
		lanes := float64(b.Lanes)
		r.before, r.after = append(r.before, float64(u.Before)), append(r.after, float64(u.After))
		if u.After > 0 {
			r.cpu = append(r.cpu, float64(u.CPU)/lanes)
		}
		r.pssBefore = append(r.pssBefore, float64(u.PSSBefore))
		r.pssPeak = append(r.pssPeak, float64(u.PSSPeak))
		r.pssAfter = append(r.pssAfter, float64(u.PSSAfter))
		r.growth = append(r.growth, float64(u.PSSAfter-u.PSSBefore)/lanes)
		switch {
		case u.After > 0:
			r.each = append(r.each, float64(u.PSSAfter)/float64(u.After))
		case u.Before > 0:
			r.each = append(r.each, float64(u.PSSBefore)/float64(u.Before))
		}
	}
}

func (f roleFacts) result() []RoleFacts {
	var out []RoleFacts
	for role, r := range f {
		facts := RoleFacts{
			Role: role, N: len(r.before), Before: median(r.before), After: median(r.after),
			PSSBefore: median(r.pssBefore), PSSPeak: median(r.pssPeak), PSSAfter: median(r.pssAfter),
			Growth: median(r.growth), Each: median(r.each), Unread: r.unread,
		}
		if len(r.cpu) > 0 {
			cpu := median(r.cpu)
			facts.CPU = &cpu
		}
		out = append(out, facts)
	}
	slices.SortFunc(out, func(a, b RoleFacts) int {
		return cmp.Or(cmp.Compare(rank(a.Role), rank(b.Role)), cmp.Compare(a.Role, b.Role))
	})
	return out
}

func rank(r record.Role) int {
	if i := slices.Index(knownRoles, r); i >= 0 {
		return i
	}
	return len(knownRoles)
}

// median is 0 where there is nothing.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	return stat.Summarize(values, Confidence).Median
}
