package command

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// maxSaid is how much of a command's output is kept.
const maxSaid = 8 << 10

// output reads what a command says, and what is said by whom it leaves running,
// as long as there is somebody and it is not closed.
//
// It is a pipe whose writing end can be read, too. So whoever has it is never
// without a reader: what a command leaves running is not killed by SIGPIPE when
// tare has heard enough or has ended. From the command's end on the pipe does not
// block either ([letGo]): when nobody reads any more it takes 64 KiB and refuses
// the rest, and whoever writes neither ends nor hangs by that. A file would grow
// for as long as somebody writes into it, where nobody can see it; a limit of its
// size (RLIMIT_FSIZE) would be one of all files of the command, and a sealed memfd
// would refuse what the command itself says.
type output struct {
	pipe *os.File
	kept cli.Kept
	done chan struct{} // closed when nobody has it any more
}

// listen begins to read what is written to in, the command's end.
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
		return nil, nil, fmt.Errorf("open a pipe by %s: %w; is /proc mounted?", path, err)
	}
	o := &output{pipe: pipe, kept: cli.Kept{Most: maxSaid}, done: make(chan struct{})}
	go func() { // all, so that nobody waits for room
		defer close(o.done)
		defer o.pipe.Close()
		_, _ = io.Copy(&o.kept, o.pipe)
	}()
	return o, os.NewFile(uintptr(fd), "output"), nil
}

// letGo gives up tare's copy of the command's end.
func letGo(in *os.File) {
	_ = unix.SetNonblock(int(in.Fd()), true) // for all who have it
	in.Close()
}

// head is the beginning of what was said, once nobody says anything any more or
// the time is over: what the command left running may never end.
func (o *output) head(limit time.Duration) string {
	select {
	case <-o.done:
	case <-time.After(limit):
	}
	return o.kept.String()
}

// over tells whether nobody can say anything any more.
func (o *output) over() bool {
	select {
	case <-o.done:
		return true
	default:
		return false
	}
}

// close ends the reading.
func (o *output) close() {
	_ = o.pipe.Close() // a second time where it is over
	<-o.done
}
