package trace

import (
	"time"

	"github.com/tare-bench/tare/record"
)

// The conditions for a gap in which only a VMM works. The gap must last at least
// longEnough. The VMM and its file servers must use at least the fraction mostly of
// all CPU time. They must also use at least the fraction working of the gap, since in
// an idle gap the cause of the wait is unknown. Usage is sampled every 20 ms, which is
// too coarse for shorter gaps.
const (
	longEnough = int64(100 * time.Millisecond)
	mostly     = 0.9
	working    = 0.05
)

// alone returns the gaps in which only a VMM works.
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
