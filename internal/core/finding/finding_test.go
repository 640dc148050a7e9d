package finding

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

func TestAdviceOnAWorkloadIsOfItsCause(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure record.Failure
		want    string
	}{
		"no such program":       {record.Failure{Exit: 127, Output: "tare-probe/1 x 1\ntare-probe: cannot run /nosuch: no such program: errno 2\n"}, "check its path"},
		"may not be run":        {record.Failure{Exit: 126, Output: "tare-probe: cannot run /x: errno 13\n"}, "check its path"},
		"it ended so by itself": {record.Failure{Exit: 127, Output: "sh: x: not found"}, "OOM kill"},
		"killed":                {record.Failure{Exit: 137}, "OOM kill"},
	} {
		c.failure.Kind = record.FailWorkload
		if got := Advice(&c.failure); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
