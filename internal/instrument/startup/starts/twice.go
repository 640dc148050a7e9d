package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// twice detects lines that were logged twice. containerd's log repeats shim lines, the
// journal repeats log files, and a syslog may have truncated copies.
//
// Two lines are equal if they have the same time in ns, program, sandbox and text.
// Truncated texts are compared up to their length. Within one file, equal lines count
// as repetitions only if the clock is finer than microseconds.
type twice struct {
	slots  [512]heard
	newest int64
	epoch  int // number of steps back in time: a file may contain the same log twice
}

// heard is a line that may occur again.
type heard struct {
	at, time int64
	epoch    int
	file     int
	pid      int
	size     int // of the message
	cut      bool
	head     [40]byte
	n        int
	program  [24]byte
	programs int
	sandbox  [12]byte
	ids      int
}

// seen reports whether a line is a repetition. heals reports whether the repetition is
// complete and the first line was truncated. timed reports whether the repetition has
// a guest time that the first line lacks.
func (t *twice) seen(e *logs.Event, at int64) (seen, heals, timed bool) {
	switch {
	case at > t.newest:
		t.newest = at
	case at < t.newest-jitter/10:
		t.newest = at
		t.epoch++
	}
	h := &t.slots[uint64(at)*0x9E3779B97F4A7C15>>55]
	if h.at == at && h.epoch == t.epoch && (h.time == e.Time || e.Guest && (h.cut || e.Cut)) && (h.file != e.File || at%1000 != 0) && h.same(e) {
		h.at = 0 // a line matches only once
		heals = h.cut && !e.Cut
		return true, heals, heals && e.Guest && e.Time > 0 && h.time <= 0
	}
	h.at, h.time, h.epoch, h.file, h.pid, h.cut, h.size = at, e.Time, t.epoch, e.File, e.Pid, e.Cut, len(e.Message)
	h.n = copy(h.head[:], e.Message)
	h.programs = copy(h.program[:], e.Program)
	h.ids = copy(h.sandbox[:], e.Sandbox)
	return false, false, false
}

func (h *heard) same(e *logs.Event) bool {
	switch {
	case e.Guest && h.cut != e.Cut: // a truncated guest line has no time, or has a different form
		return true
	case h.pid != 0 && e.Pid != 0 && h.pid != e.Pid:
		return false
	case !h.cut && !e.Cut && h.programs > 0 && len(e.Program) > 0 && !bytes.HasPrefix(e.Program, h.program[:h.programs]):
		return false
	case h.ids > 0 && len(e.Sandbox) > 0 && !bytes.HasPrefix(e.Sandbox, h.sandbox[:h.ids]):
		return false
	case len(e.Message) > h.size && !h.cut, len(e.Message) < h.size && !e.Cut:
		return false
	}
	n := min(h.n, len(e.Message))
	return bytes.Equal(h.head[:n], e.Message[:n])
}
