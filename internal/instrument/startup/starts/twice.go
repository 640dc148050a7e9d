package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// twice finds lines that stand in two places: containerd's log repeats what its
// shims say, the journal what a file holds, and syslog's copy may be cut. Two
// lines are one if they were written in the same nanosecond, by the same
// program for the same sandbox, and say the same as far as both go. In one file
// that takes a clock that is finer than microseconds; where it is not, like lines
// of one file are two.
type twice struct {
	slots  [512]heard
	newest int64
	epoch  int // how often time went back: a file may hold the same log twice
}

// heard is a line that may come again.
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

// seen says whether a line was there before. heals says that it is whole where that
// one was cut, and timed that it has a guest's time, which that one lacked.
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
		h.at = 0 // it answers for one only
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
	case e.Guest && h.cut != e.Cut: // half a guest's line has no time, or another form
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
