package ready

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/thread"
	"github.com/tare-bench/tare/record"
)

// watch polls one lane.
type watch struct {
	*round
	lane int
	stop func()

	polls   int64
	unready int64 // start of the last failed poll
	ready   int64
	request int64 // ns of the successful poll, for a request
	last    error // of the last failed poll
	failure *record.Failure
	crashed bool
}

// Intervals between polls. A poll takes 45 to 80 µs of CPU with the wake-up, so readiness is
// known to within 1 ms for at most a tenth of a CPU. With more lanes the interval grows, so
// that together they use at most a sixth.
const (
	interval  = 750 * time.Microsecond
	eachLanes = 500 * time.Microsecond
)

// poller polls once. The error is why the workload is not ready.
type poller interface {
	// poll also returns the start of the newest poll known to have failed, 0 if unchanged.
	// Answers may arrive after the next poll.
	poll(ctx context.Context, began int64) (vain int64, err error)
	close()
}

// run polls until the workload is ready, has ended or has timed out. It uses its own thread,
// which can enter the container's network and sleep precisely.
func (w *watch) run(ctx context.Context) {
	if w.is.By == setting.ReadyExec {
		w.loop(ctx, func(d time.Duration) { _ = machine.Sleep(ctx, d) })
		return
	}
	_ = thread.Apart(func() error {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // the default adds some 50 µs to each sleep
		w.loop(ctx, func(d time.Duration) {
			ts := unix.NsecToTimespec(int64(d))
			_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // after an interruption it polls earlier
		})
		return nil
	})
}

func (w *watch) loop(ctx context.Context, sleep func(time.Duration)) {
	<-w.release
	pause := max(interval, time.Duration(w.lanes)*eachLanes)
	var p poller
	alive := process{fd: -1}
	defer func() {
		if p != nil {
			p.close()
		}
		unix.Close(alive.fd)
	}()
	for ; ctx.Err() == nil; sleep(pause) {
		started := w.deadline.Load() != 0 // the operations are done
		if p == nil || alive.pid == 0 {
			at := w.at.Reach(w.lane)
			alive.open(at.Pid)
			if p == nil {
				p = w.poller(at, started)
			}
		}
		gone := alive.gone() // checked before the poll, because a workload can become ready just before it ends
		if w.failure != nil {
			w.crashed = gone && started
			return
		}
		if p != nil {
			begin := machine.Now()
			vain, err := p.poll(ctx, begin)
			end := machine.Now()
			w.polls++
			w.unready = max(w.unready, vain)
			if err == nil {
				w.ready = end
				if r, is := p.(*request); is {
					w.request = end - r.asked
				}
				return
			}
			w.last = err
		}
		switch {
		case gone && started:
			w.crashed = true
			return
		case started && machine.Now() > w.deadline.Load():
			return
		}
	}
}

// poller returns the poller once it is known where to poll, else nil. It sets w.failure if that
// is impossible.
func (w *watch) poller(at subject.Reached, started bool) poller {
	p, err := w.newPoller(at, started)
	if err == nil {
		return p
	}
	if started || !errors.Is(err, errNotYet) {
		w.failure = &record.Failure{Kind: record.FailError, Detail: fmt.Sprintf("readiness cannot be polled (%s): %v", w.asked, err)}
	}
	return nil
}

// errNotYet means that a container does not exist yet.
var errNotYet = errors.New("the engine does not report where it is")

func (w *watch) newPoller(at subject.Reached, started bool) (poller, error) {
	switch w.is.By {
	case setting.ReadyTCP, setting.ReadyHTTP:
		return w.network(at, started)
	case setting.ReadyLog:
		if at.Log == "" && started {
			return nil, errors.New("no log file: use a log driver with files (json-file, k8s-file)")
		}
		return follow(w.is.Pattern, at, started)
	case setting.ReadyFile:
		if at.Guest {
			return w.inside(started, statedFile, probe.FileSystemArgs(w.is.Path)...)
		}
		return inRoot(at, w.is.Path)
	}
	return w.inside(started, anything, w.is.Command...)
}

// left returns the remaining time.
func (w *watch) left() time.Duration { return time.Duration(w.deadline.Load() - machine.Now()) }

// report sets the result in the sample.
func (w *watch) report(ctx context.Context, s *record.Sample) {
	s.Polls, s.Unready = w.polls, w.unready
	switch {
	case w.ready != 0 && w.ready >= max(s.First, s.Start):
		s.Ready, s.Request = w.ready, w.request
	case w.ready != 0:
		s.Failure = &record.Failure{Kind: record.FailWorkload, Detail: fmt.Sprintf("%s was true %v before the workload's first instruction, so it does not show readiness", w.asked, time.Duration(s.First-w.ready))}
	case w.failure != nil && !w.crashed:
		s.Failure = w.failure
	case ctx.Err() != nil:
		s.Failure = &record.Failure{Kind: record.FailInterrupted, Detail: "interrupted before it was ready"}
	default:
		s.Failure = w.never(ctx, s)
	}
}

// never returns the failure of a workload that was not ready in time, or ended before.
func (w *watch) never(ctx context.Context, s *record.Sample) *record.Failure {
	last := "it was never polled"
	if w.last != nil {
		last = fmt.Sprintf("the last of %d polls: %v", w.polls, w.last)
	}
	end := w.at.Ended(ctx, w.lane)
	f := &record.Failure{Kind: record.FailTimeout, Output: end.Output, Advice: end.Advice, Detail: fmt.Sprintf("not ready (%s) within %v; %s", w.asked, w.timeout, last)}
	if end.Why != "" {
		last += "; " + end.Why
		f.Detail += "; " + end.Why
	}
	if !end.Known && !w.crashed {
		return f
	}
	f.Kind, f.Detail = record.FailWorkload, fmt.Sprintf("the workload ended before it was ready (%s)", w.asked)
	if end.Known {
		f.Exit = end.Exit
		f.Detail += fmt.Sprintf(", with status %d", end.Exit)
	}
	f.Detail += fmt.Sprintf(", %v after its start; %s", time.Duration(machine.Now()-s.Start).Round(time.Millisecond), last)
	return f
}

// process detects the end of a process.
type process struct {
	pid, fd int
	ended   bool
}

// open starts the observation of a process, once.
func (p *process) open(pid int) {
	if pid <= 0 || p.pid != 0 {
		return
	}
	p.pid = pid
	fd, err := unix.PidfdOpen(pid, 0)
	if p.ended = errors.Is(err, unix.ESRCH); err == nil {
		p.fd = fd
	}
}

// gone reports whether the process has ended.
func (p *process) gone() bool {
	if p.fd < 0 {
		return p.ended
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}
