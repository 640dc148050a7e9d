package ledger

import "github.com/tare-bench/tare/record"

// CPU is the CPU time that a target's roles used between two readings, as far as
// it is known, without what everybody else used.
func CPU(begin, end *record.Reading) []record.RoleTime {
	l, err := Close(begin, begin, end)
	took := end.Time - begin.Time
	if err != nil || took <= 0 {
		return nil
	}
	var all []record.RoleTime
	for _, r := range l.Rows {
		if r.CPUKnown && r.Role != record.RoleOthers {
			all = append(all, record.RoleTime{Role: r.Role, NS: int64(r.CPU*float64(took) + 0.5)})
		}
	}
	return all
}
