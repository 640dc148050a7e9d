package ledger

import "github.com/tare-bench/tare/record"

// CPU is the CPU time that a target's roles used between two readings, as far as
// it is known, without what everybody else used. It is whole where that of every role
// with processes is known.
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

// CPU is what all roles but others use, in CPUs, and whether something of it is not
// known.
func (l *Ledger) CPU() (cpus float64, least bool) {
	rows, least := l.using()
	for _, row := range rows {
		cpus += row.CPU
	}
	return cpus, least
}

// using are the rows of all roles but others whose CPU time is known, and whether that
// of another one is not.
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
