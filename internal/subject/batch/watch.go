package batch

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/record"
)

// watch stamps the exits of processes that are not tare's children: a pidfd
// each, and one thread that waits for all of them.
type watch struct {
	epoll int
	wake  int // eventfd: stop waiting
	fds   []int
	done  sync.WaitGroup

	mu    sync.Mutex
	exits []int64 // by index; 0 while it lives
	left  int
	empty chan struct{} // closed when none is left
}

// newWatch watches those pids that are not 0. A process that is gone already
// has no exit to be stamped, and gets none.
func newWatch(pids []int) (*watch, error) {
	w := &watch{epoll: -1, wake: -1, exits: make([]int64, len(pids)), empty: make(chan struct{})}
	var some bool
	for _, pid := range pids {
		some = some || pid > 0
	}
	if !some {
		close(w.empty)
		return w, nil
	}
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("watch the workloads: epoll_create1: %w", err)
	}
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(w.epoll)
		return nil, fmt.Errorf("watch the workloads: eventfd: %w", err)
	}
	add := func(fd, i int) error { // told once: an exited process stays readable
		return unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(i)})
	}
	err = add(w.wake, -1)
	for i, pid := range pids {
		if pid <= 0 || err != nil {
			continue
		}
		var fd int
		if fd, err = unix.PidfdOpen(pid, 0); errors.Is(err, unix.ESRCH) {
			err = nil
			continue
		} else if err == nil {
			w.fds = append(w.fds, fd)
			w.left++
			err = add(fd, i)
		}
	}
	if err != nil {
		for _, fd := range append(w.fds, w.epoll, w.wake) {
			unix.Close(fd)
		}
		return nil, fmt.Errorf("watch the workloads: pidfd: %w", err)
	}
	if w.left == 0 {
		close(w.empty)
	}
	w.done.Add(1)
	go w.wait()
	return w, nil
}

func (w *watch) wait() {
	defer w.done.Done()
	events := make([]unix.EpollEvent, 64)
	for {
		n, err := unix.EpollWait(w.epoll, events, -1)
		now := machine.Now()
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		for _, e := range events[:n] {
			if e.Fd < 0 {
				return
			}
			w.gone(int(e.Fd), now)
		}
	}
}

func (w *watch) gone(i int, now int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.exits[i] = now
	if w.left--; w.left == 0 {
		close(w.empty)
	}
}

// stamp writes the exits into the samples. An exit that the engine's reply
// overtook is waited for, a little.
func (w *watch) stamp(samples []record.Sample, calls []Call) {
	select {
	case <-w.empty:
	case <-time.After(exitGrace):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range samples {
		if calls[i].Watch > 0 && samples[i].Failure == nil {
			samples[i].Exited = w.exits[i]
		}
	}
}

// exitGrace is how long after an engine's "stopped" a process may still be
// seen.
const exitGrace = 2 * time.Second

func (w *watch) close() {
	if w.epoll < 0 {
		return
	}
	var one [8]byte
	one[0] = 1
	_, _ = unix.Write(w.wake, one[:])
	w.done.Wait()
	for _, fd := range append(w.fds, w.epoll, w.wake) {
		unix.Close(fd)
	}
	w.epoll = -1
}
