package tracer

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// listener reads what the kernel tells of threads as soon as it does, on
// descriptors that can be polled, and makes events of processes of it.
type listener struct {
	q       *queue
	fds     []int
	fill    func() error // reads them to their ends, into held
	held    []raw        // what may have happened after something that is still to come
	threads threads
	missed  atomic.Int64
	wake    *os.File // an eventfd
	wants   chan chan struct{}
	quit    chan struct{} // closed once, to end the reader
	worker  *worker
}

// listen begins with what is there already: it is called once the kernel tells.
func (l *listener) listen(q *queue, fds []int, fill func() error) error {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return fmt.Errorf("eventfd: %w", err)
	}
	l.wake = os.NewFile(uintptr(wake), "eventfd")
	l.q, l.fds, l.fill = q, fds, fill
	l.wants, l.quit = make(chan chan struct{}, 1), make(chan struct{})
	l.threads = scan()
	l.worker = work(l.read)
	return nil
}

func (l *listener) read() {
	// What is not read at once is gone: a short-lived process takes its arguments
	// along. The thread ends with this goroutine, and its priority with it. Without
	// CAP_SYS_NICE it is as urgent as everybody.
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	wake := int(l.wake.Fd())
	var polled []unix.PollFd
	for _, fd := range append(slices.Clone(l.fds), wake) {
		polled = append(polled, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	for {
		wait := -1
		if len(l.held) > 0 {
			wait = 1 // ms, for what other CPUs tell of the time before
		}
		if _, err := unix.Poll(polled, wait); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
		var word [8]byte
		_, _ = unix.Read(wake, word[:])
		if l.settle() != nil {
			return
		}
		select {
		case <-l.quit:
			return
		case done := <-l.wants:
			if l.settle() != nil { // what was held comes with the second look
				return
			}
			close(done)
		default:
		}
	}
}

// settle reads what is there. That is in order of time only up to the moment at
// which it began; what came later waits for the next time.
func (l *listener) settle() error {
	begin := now()
	err := l.fill()
	slices.SortStableFunc(l.held, func(a, b raw) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
	n := 0
	for ; n < len(l.held) && l.held[n].Time <= begin; n++ {
		if e, ok := l.threads.event(l.held[n]); ok {
			l.q.add(e)
		}
	}
	l.held = slices.Delete(l.held, 0, n)
	return err
}

func (l *listener) drain(limit time.Duration) error {
	deadline := time.After(limit)
	done := make(chan struct{})
	select {
	case l.wants <- done:
	case <-l.worker.done:
		return fmt.Errorf("the reader has ended: %w", os.ErrClosed)
	case <-deadline: // of one who did not wait to the end, and was not heard yet
		return fmt.Errorf("the reader does not answer within %v", limit)
	}
	l.nudge()
	select {
	case <-done:
		return nil
	case <-l.worker.done:
		return fmt.Errorf("the reader has ended: %w", os.ErrClosed)
	case <-deadline:
		return fmt.Errorf("not read within %v", limit)
	}
}

func (l *listener) nudge() {
	var one [8]byte
	native.PutUint64(one[:], 1)
	_, _ = unix.Write(int(l.wake.Fd()), one[:])
}

func (*listener) track([]int) error    { return nil }
func (*listener) busy() int64          { return -1 }
func (l *listener) lost() int64        { return l.missed.Load() }
func (l *listener) cpu() time.Duration { return l.worker.cpu() }

func (l *listener) stop() error {
	if l.worker == nil {
		return nil
	}
	close(l.quit)
	l.nudge()
	<-l.worker.done
	return l.wake.Close()
}
