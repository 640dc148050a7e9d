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

// Detaching is a command that starts a second one and ends before it, as `runc exec --detach`
// does. The second command inherits its output.
type Detaching struct {
	Command
	// Timeout bounds the start of the second command.
	Timeout time.Duration
	// Started returns the pid of the second command after the first has succeeded. zombie reports
	// whether a process has ended but is not reaped by tare yet. The cgroup of such a process is
	// unknown.
	Started func(zombie func(pid int) bool) (pid int, err error)
}

// RunDetaching runs both commands and waits for the end of the second. The first command must
// leave the second as an orphan. tare is a subreaper during the call and adopts it, so no
// runtime process has to wait for its end. ctx is as in Run.
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

// detach starts the first command and returns the pid of the process that it left behind. The
// end of the run does not interrupt detach. It takes milliseconds, and the process that has to
// be killed is known only afterwards.
func (d *Detaching) detach(std *stdio) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), d.Timeout)
	defer cancel()
	pid, err := d.start(std, false)
	if err != nil {
		return 0, err
	}
	var first subject.Executed
	if err = attend(ctx, pid, true, nil, &first); err != nil {
		return 0, err
	}
	if first.Exit != 0 {
		return 0, fmt.Errorf("exit status %d", first.Exit)
	}
	if pid, err = d.Started(zombie); err != nil {
		return 0, err
	}
	if s, _ := procs.StatOf(pid); s.PPid != os.Getpid() {
		return 0, fmt.Errorf("process %d was adopted by process %d, not by tare: its end is unknown", pid, s.PPid)
	}
	return pid, nil
}

// zombie reports whether a child of tare has ended and was not reaped.
func zombie(pid int) bool {
	s, err := procs.StatOf(pid)
	return err == nil && s.State == 'Z' && s.PPid == os.Getpid()
}

// bury reaps children that a failed runtime left to tare: new children that have been dead for
// a while. Code that waits for its own child has reaped it by then.
func bury(before map[int]bool) {
	const while = 200 * time.Millisecond
	time.Sleep(while) // it may be ending
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

// children returns tare's children, running or ended.
func children() map[int]bool {
	out := map[int]bool{}
	for _, pid := range procs.Children(os.Getpid()) {
		out[pid] = true
	}
	return out
}

// reaper counts the users of the subreaper attribute.
var reaper struct {
	sync.Mutex
	holders int
}

// reap makes tare the subreaper of its descendants until all users have released it.
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
