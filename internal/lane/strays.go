package lane

import (
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
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
		strays := slices.DeleteFunc(procs.All(), func(pid int) bool { return !p.isParent(pid) })
		if len(strays) == 0 {
			return
		}
		for _, pid := range strays {
			_ = cgroup.KillIf(pid, func() bool { return p.isParent(pid) }) // fails if it has ended
		}
		// Their children become children of the lanes. On a busy machine it takes a while
		// until a killed process has ended.
		time.Sleep(min(pause, strayPatience/10)) // a scan of /proc is not free
	}
}

// isParent reports whether the parent of a running process is a lane.
func (p *Pool) isParent(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && !s.Ended() && slices.Contains(p.procs, s.PPid)
}
