package batch

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// watch records when processes exit that are not tare's children. Each has a pidfd, and one
// thread waits for all of them.
type watch struct {
	epoll, wake int            // wake is an eventfd that stops the wait
	fds         []int          // all open descriptors
	exits       []atomic.Int64 // by index; 0 while running
	ended       chan struct{}  // closed at the end of the wait
}

// newWatch watches all pids except 0. A process that has already ended gets no timestamp.
func newWatch(pids []int) (*watch, error) {
	w := &watch{exits: make([]atomic.Int64, len(pids)), ended: make(chan struct{})}
	if !slices.ContainsFunc(pids, func(pid int) bool { return pid > 0 }) {
		close(w.ended)
		return w, nil
	}
	left, err := w.open(pids)
	if err != nil {
		w.release()
		return nil, fmt.Errorf("watch the workloads: %w", err)
	}
	go w.wait(left)
	return w, nil
}

// open returns the number of processes to wait for.
func (w *watch) open(pids []int) (left int, err error) {
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return 0, os.NewSyscallError("epoll_create1", err)
	}
	w.fds = append(w.fds, w.epoll)
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return 0, os.NewSyscallError("eventfd", err)
	}
	err = w.add(w.wake, -1)
	for i, pid := range pids {
		if pid <= 0 || err != nil {
			continue
		}
		var fd int
		switch fd, err = unix.PidfdOpen(pid, 0); {
		case err == nil:
			left++
			err = w.add(fd, i)
		case errors.Is(err, unix.ESRCH):
			err = nil
		default:
			err = os.NewSyscallError("pidfd_open", err)
		}
	}
	return left, err
}

// add watches a descriptor for one event only, since the pidfd of an exited process stays
// readable.
func (w *watch) add(fd, i int) error {
	w.fds = append(w.fds, fd)
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(i)}))
}

func (w *watch) wait(left int) {
	defer close(w.ended)
	events := make([]unix.EpollEvent, 64)
	for left > 0 {
		n, err := unix.EpollWait(w.epoll, events, -1)
		now := machine.Now()
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		for _, e := range events[:max(n, 0)] {
			if e.Fd < 0 {
				return
			}
			w.exits[e.Fd].Store(now)
			left--
		}
	}
}

// stamp writes the exit times into the samples. It waits briefly for exits that follow the
// engine's reply.
func (w *watch) stamp(samples []record.Sample, calls []Call) {
	select {
	case <-w.ended:
	case <-time.After(exitGrace):
	}
	for i := range samples {
		if calls[i].Watch > 0 && samples[i].Failure == nil {
			samples[i].Exited = w.exits[i].Load()
		}
	}
}

// exitGrace is how long a process may take to end after an engine reported it stopped.
const exitGrace = 2 * time.Second

func (w *watch) close() {
	if len(w.fds) == 0 {
		return
	}
	_, _ = unix.Write(w.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-w.ended
	w.release()
}

func (w *watch) release() {
	for _, fd := range w.fds {
		unix.Close(fd)
	}
	w.fds = nil
}
