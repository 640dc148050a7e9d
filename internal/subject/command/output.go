package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// maxSaid bounds the output that is kept.
const maxSaid = 8 << 10

// output reads the output of a command, and of processes that it leaves running, until all have
// closed it or close is called.
//
// It is a pipe whose writing end is also readable, so the pipe always has a reader. Processes
// that the command leaves running therefore get no SIGPIPE when tare stops reading or ends. Once
// the command has ended, the pipe does not block ([letGo]). Without a reader it accepts 64
// KiB and refuses the rest, so writers are neither killed nor blocked. The alternatives are
// worse: a file would grow unseen; RLIMIT_FSIZE would limit all files of the command; a sealed
// memfd would refuse output of the command itself.
type output struct {
	pipe *os.File
	kept cli.Kept
	done chan struct{} // closed when no process has the pipe open
}

// listen starts to read the output. in is the end of the pipe that the command writes to.
func listen() (_ *output, in *os.File, err error) {
	pipe, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	path := fmt.Sprintf("/proc/self/fd/%d", w.Fd())
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		pipe.Close()
		return nil, nil, fmt.Errorf("open a pipe by %s: %w; check that /proc is mounted", path, err)
	}
	o := &output{pipe: pipe, kept: cli.Kept{Most: maxSaid}, done: make(chan struct{})}
	go func() { // all of it, so that writers do not block
		defer close(o.done)
		defer o.pipe.Close()
		_, _ = io.Copy(&o.kept, o.pipe)
	}()
	return o, os.NewFile(uintptr(fd), "output"), nil
}

// letGo makes the command's end of the pipe non-blocking and closes tare's copy of it.
func letGo(in *os.File) {
	_ = unix.SetNonblock(int(in.Fd()), true) // in all processes that have it
	in.Close()
}

// head returns the beginning of the output. It waits until all processes have closed the output,
// but at most for limit: processes that the command left running may never end.
func (o *output) head(limit time.Duration) string {
	select {
	case <-o.done:
	case <-time.After(limit):
	}
	return o.kept.String()
}

// over reports whether all processes have closed the output.
func (o *output) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// close stops reading.
func (o *output) close() {
	_ = o.pipe.Close() // may be closed already
	<-o.done
}
