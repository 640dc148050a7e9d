package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// crun returns the facts of a line in crun's debug log. Each line belongs to one
// command, which logs its container id once.
func crun(e *logs.Event, all []fact) []fact {
	for _, m := range []struct {
		begin string
		mark  mark
	}{
		{"Creating container: ", mark{point: called, call: "crun create"}},
		{"Running container on PID: ", mark{point: created}},
		{"Starting container: ", mark{point: begun}},
		{"Container started", mark{point: started}},
	} {
		if rest, ok := bytes.CutPrefix(e.Message, []byte(m.begin)); ok {
			f := fact{mark: m.mark, opens: m.mark.point == called}
			if f.call = ""; m.mark.point != created {
				f.container = wordAfter(rest, "")
			}
			return append(all, f)
		}
	}
	return append(all, fact{})
}
