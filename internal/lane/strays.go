package lane

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// endStrays ends what commands left running: a lane is the subreaper of all it
// started, so whatever still is its child when the pool is closed was made by a
// command, and is no container that a session knows of.
func (p *Pool) endStrays() {
	for range 5 {
		strays := p.children()
		if len(strays) == 0 {
			return
		}
		for _, pid := range strays {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			// The number could be another's by now: looked at again while the
			// process is pinned.
			if parent, ok := parentOf(pid); ok && slices.Contains(p.procs, parent) {
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
			_ = unix.Close(fd)
		}
		// What they had started becomes the lanes' in turn.
		time.Sleep(5 * time.Millisecond)
	}
}

// children lists the running children of all lanes.
func (p *Pool) children() []int {
	var out []int
	for _, pid := range procs.All() {
		if parent, ok := parentOf(pid); ok && slices.Contains(p.procs, parent) {
			out = append(out, pid)
		}
	}
	return out
}

// parentOf reads a process's parent; ok is false when it is gone or a zombie.
func parentOf(pid int) (parent int, ok bool) {
	s, err := procs.StatOf(pid)
	return s.PPid, err == nil && !s.Ended()
}
