package child

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
)

// Detaching is a command that starts another one and ends before it, as
// `runc exec --detach` does. What it starts inherits its output.
type Detaching struct {
	Command
	// Timeout is how long it may take to start the other.
	Timeout time.Duration
	// Started says, once the command has succeeded, which process the other
	// one is. zombie says of a process that it has ended and waits to be
	// reaped by tare, when the kernel no longer tells its cgroup.
	Started func(zombie func(pid int) bool) (pid int, err error)
}

// RunDetaching runs both commands and waits for the end of the other, which has
// to be left an orphan: it becomes tare's, for meanwhile tare is the reaper of
// what its children leave behind. So no runtime stands by while a command runs,
// and yet its end is known. ctx is as in Run.
func RunDetaching(ctx context.Context, d Detaching) (subject.Executed, error) {
	release, err := reap()
	if err != nil {
		return subject.Executed{Command: d.String()}, fmt.Errorf("%s: %w", d.String(), err)
	}
	defer release()
	before := children()
	ended, err := d.run(ctx, func(std *stdio) (int, error) {
		pid, err := d.detach(std)
		if err != nil {
			bury(before)
		}
		return pid, err
	})
	if text := strings.TrimSpace(ended.Stderr); err != nil && text != "" {
		err = fmt.Errorf("%w: %.1000s", err, text)
	}
	return ended, err
}

// detach returns the process that the command left behind. It is not broken off
// when tare is told to stop: it takes milliseconds, and only when it is done it
// is known what there is to be ended.
func (d *Detaching) detach(std *stdio) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	pid, err := d.start(std, false)
	if err != nil {
		return 0, err
	}
	exit, err := attend(ctx, pid, true, nil, nil)
	if err != nil {
		return 0, err
	}
	if exit != 0 {
		return 0, fmt.Errorf("exit status %d", exit)
	}
	if pid, err = d.Started(zombie); err != nil {
		return 0, err
	}
	if s, _ := procs.StatOf(pid); s.PPid != os.Getpid() {
		return 0, fmt.Errorf("it left process %d to process %d, not to tare: how that ends can't be known", pid, s.PPid)
	}
	return pid, nil
}

// zombie is for a child of tare's that has ended.
func zombie(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && s.State == 'Z' && s.PPid == os.Getpid()
}

// bury reaps what a runtime that failed half-way left to tare: children that
// were not there before and have been dead for a while. Whoever waits for a child
// of his own has done so by then.
func bury(before map[int]bool) {
	const while = 200 * time.Millisecond
	time.Sleep(while) // it may be on its way out
	dead := map[int]bool{}
	for pid := range children() {
		if !before[pid] && zombie(pid) {
			dead[pid] = true
		}
	}
	if len(dead) == 0 {
		return
	}
	time.Sleep(while)
	for pid := range dead {
		if zombie(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// children are tare's own, dead or alive.
func children() map[int]bool {
	out := map[int]bool{}
	for _, pid := range procs.Children(os.Getpid()) {
		out[pid] = true
	}
	return out
}

// reaper counts those for whom tare is the reaper of orphans.
var reaper struct {
	sync.Mutex
	holders int
}

// reap makes tare the reaper of what its children leave behind, until all who
// asked have let go.
func reap() (release func(), err error) {
	reaper.Lock()
	defer reaper.Unlock()
	if reaper.holders == 0 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return nil, fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", err)
		}
	}
	reaper.holders++
	return func() {
		reaper.Lock()
		defer reaper.Unlock()
		if reaper.holders--; reaper.holders == 0 {
			_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
		}
	}, nil
}
