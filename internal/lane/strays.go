package lane

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// strayPatience bounds the wait for the end of killed orphans, which may hang in the kernel.
const strayPatience = 5 * time.Second

// endStrays kills the orphans of commands. They become children of their lane, which is a
// subreaper. Children that a lane still has when the pool closes are such orphans, not
// containers that a session tracks.
func (p *Pool) endStrays() {
	pause := 5 * time.Millisecond
	for end := time.Now().Add(strayPatience); time.Now().Before(end); pause *= 2 {
		strays := p.children()
		if len(strays) == 0 {
			return
		}
		for _, pid := range strays {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				continue
			}
			if p.isParent(pid) { // again with a pidfd, because the pid may be reused
				_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			}
			_ = unix.Close(fd)
		}
		// Their children become children of the lanes. On a busy machine it takes a while
		// until a killed process has ended.
		time.Sleep(min(pause, strayPatience/10)) // a scan of /proc is not free
	}
}

// children lists the running children of all lanes.
func (p *Pool) children() []int {
	return slices.DeleteFunc(procs.All(), func(pid int) bool { return !p.isParent(pid) })
}

// isParent reports whether the parent of a running process is a lane.
func (p *Pool) isParent(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && !s.Ended() && slices.Contains(p.procs, s.PPid)
}
