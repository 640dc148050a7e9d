package judge

import "github.com/tare-bench/tare/record"

// Result is how much failed of how much, and what is to be mistrusted.
func (j *Storage) Result() (failed, total int, findings []record.Finding) {
	return j.Failed, j.Total, j.Findings
}
