package trace

import (
	"time"

	"github.com/tare-bench/tare/record"
)

// A VMM works alone in a gap of at least longEnough where it and its file servers used
// at least mostly of the CPU time that all processes used, and at least working of the
// gap itself: in one in which hardly anybody works nobody knows who is waited for. What
// each process has used is read every 20 ms, so that of shorter gaps it is not known.
const (
	longEnough = int64(100 * time.Millisecond)
	mostly     = 0.9
	working    = 0.05
)

// alone are the gaps in which a VMM alone works.
func (f *relatives) alone() (all []worked) {
	s := f.start
	vmms, guests := []int(nil), []usage(nil)
	for i := range s.Processes {
		if p := &s.Processes[i]; len(p.Used) > 1 {
			guests = append(guests, p.Used)
			if p.Kind == record.KindVMM {
				vmms = append(vmms, i)
			}
		}
	}
	if len(vmms) == 0 || s.Ended <= s.Began {
		return nil
	}
	for _, g := range quiet(s) {
		used, took := int64(0), g.Ended-g.Began
		for _, u := range guests {
			used += u.between(g.Began, g.Ended)
		}
		if took < longEnough || g.CPU < 0 || float64(used) < mostly*float64(g.CPU) || float64(used) < working*float64(took) {
			continue
		}
		for _, i := range vmms {
			if f.born(i) <= g.Began && f.end(i) >= g.Ended {
				all = append(all, worked{i, g.Began, g.Ended})
				break
			}
		}
	}
	return all
}
