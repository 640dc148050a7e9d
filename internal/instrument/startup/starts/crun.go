package starts

import "github.com/tare-bench/tare/internal/instrument/startup/logs"

var crunMarks = []opening{
	{"Creating container: ", mark{point: called}}, {"Running container on PID: ", mark{point: created}},
	{"Starting container: ", mark{point: begun}}, {"Container started", mark{point: started}},
}

// crun returns the facts of a line in crun's debug log. Each line belongs to one
// command, which logs its container id once.
func crun(e *logs.Event, all []fact) []fact {
	m, rest := opened(crunMarks, e.Message)
	f := fact{mark: m, opens: m.point == called}
	if m.point != created {
		f.container = wordAfter(rest, "")
	}
	return append(all, f)
}
