package ledger

import "github.com/tare-bench/tare/record"

// CPU returns the known CPU time of a target's roles between two readings, without
// other processes. whole is true if it is known for every role with processes.
func CPU(begin, end *record.Reading) (all []record.RoleTime, whole bool) {
	l, err := Close(begin, begin, end)
	took := end.Time - begin.Time
	if err != nil || took <= 0 {
		return nil, false
	}
	rows, least := l.using()
	for _, r := range rows {
		all = append(all, record.RoleTime{Role: r.Role, NS: int64(r.CPU*float64(took) + 0.5)})
	}
	return all, !least
}

// CPU returns the sum of all roles except others, in CPUs. least is true if the time
// of some role is unknown, so that the sum is a minimum.
func (l *Ledger) CPU() (cpus float64, least bool) {
	rows, least := l.using()
	for _, row := range rows {
		cpus += row.CPU
	}
	return cpus, least
}

// using returns the rows with known CPU time, without others. least is true if the
// time of another row is unknown.
func (l *Ledger) using() (rows []Row, least bool) {
	for _, row := range l.Rows {
		switch {
		case row.Role == record.RoleOthers:
		case row.CPUKnown:
			rows = append(rows, row)
		case row.Processes > 0:
			least = true
		}
	}
	return rows, least
}
