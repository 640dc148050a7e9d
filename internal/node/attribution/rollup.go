package attribution

import (
	"bytes"
	"fmt"
	"strconv"
)

// rollup is a process's memory in bytes, as smaps_rollup has it. Pages that
// several map are shared out among them.
type rollup struct{ rss, anon, file, shmem, swap, huge int64 }

// parseRollup reads smaps_rollup, see proc_pid_smaps(5). Its parts of PSS are
// there since Linux 5.4.
func parseRollup(text []byte) (rollup, error) {
	var u rollup
	into := map[string]*int64{
		"Rss": &u.rss, "Pss_Anon": &u.anon, "Pss_File": &u.file, "Pss_Shmem": &u.shmem, "SwapPss": &u.swap,
		"Shared_Hugetlb": new(int64), "Private_Hugetlb": new(int64),
	}
	found := 0
	for line := range bytes.Lines(text) {
		key, value, ok := bytes.Cut(line, []byte(":"))
		at := into[string(key)]
		if !ok || at == nil {
			continue
		}
		n, err := kilobytes(string(value))
		if err != nil {
			return rollup{}, fmt.Errorf("smaps_rollup: %s: %w", key, err)
		}
		*at = n
		found++
	}
	if found != len(into) {
		return rollup{}, fmt.Errorf("smaps_rollup: %d of the %d lines that are needed (all of them since Linux 5.4): %w", found, len(into), errForm)
	}
	u.huge = *into["Shared_Hugetlb"] + *into["Private_Hugetlb"]
	return u, nil
}

// parseSchedstat reads the first of "run wait slices": ns on a CPU, see
// Documentation/scheduler/sched-stats.rst.
func parseSchedstat(text []byte) (int64, bool) {
	fields := bytes.Fields(text)
	if len(fields) != 3 {
		return 0, false
	}
	ns, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return ns, err == nil && ns >= 0
}
