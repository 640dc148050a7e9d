// Package minder supervises programs of the user's own during a run. It kills a program that
// floods its log, since no engine limits that. If a program did not end as expected, it adds the
// reason to the failure: no handler for the signal, the signal ignored, or the task limit
// reached. It wraps a target's session, so this holds for all targets.
package minder

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Most returns the output limit of a program, in bytes, for a number of lanes. It is enough for
// the access log of a server under load, and all programs together do not fill a disk.
func Most(lanes int) int64 {
	const together, least = 4 << 30, 16 << 20
	return max(least, min(lane.MaxKept, together/int64(max(lanes, 1))))
}

// interval is the time between checks of the output's size.
const interval = 200 * time.Millisecond

// Wrap supervises the programs of a session that was opened with env. A program whose output
// reaches most is killed.
func Wrap(s subject.Session, env subject.Env, most int64) subject.Session {
	at, ok := subject.As[subject.Reachable](s)
	if !ok {
		return s
	}
	m := &session{Session: s, Reachable: at, signal: env.Workload.Signal(), most: most, lanes: map[int]*program{}, over: make(chan struct{})}
	m.done.Go(m.mind)
	return m
}

type session struct {
	subject.Session
	subject.Reachable
	signal unix.Signal
	most   int64

	lock  sync.Mutex
	lanes map[int]*program // started programs, by lane
	over  chan struct{}
	close sync.Once
	done  sync.WaitGroup
}

// program is a started program.
type program struct {
	fd    int           // pidfd of its first process; -1 if that is not known to be the container's
	above int64         // refusals of tasks by the parent of its cgroup before the start
	in    *procs.Groups // cgroups of the process, which are unknown once it is reaped; nil if refusals are unknown
	log   string        // file with its output; "" for none
	ended string        // why it was killed; "" if it was not
	noted bool          // a failure has the reason
}

// Unwrap implements subject.Wrapped.
func (s *session) Unwrap() subject.Session { return s.Session }

// mind checks all programs periodically.
func (s *session) mind() {
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-look.C:
		}
		s.lock.Lock()
		for _, p := range s.lanes {
			p.look(s.most)
		}
		s.lock.Unlock()
	}
}

func (p *program) look(most int64) {
	if p.log == "" || p.fd < 0 || p.ended != "" {
		return
	}
	info, err := os.Lstat(p.log)
	if err != nil || !info.Mode().IsRegular() || info.Size() < most {
		return
	}
	if err := unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0); err == nil {
		p.ended = fmt.Sprintf("its output exceeded %d MiB, so it was killed", most>>20)
	}
}

// begun records the program that was started on a lane.
func (s *session) begun(n int) {
	r := s.Reachable.Reach(n)
	p := &program{fd: -1, log: r.Log}
	if r.Pid > 1 {
		p.fd = pin(r)
	}
	if p.fd >= 0 && !r.Host {
		if in, err := procs.GroupsOf(r.Pid); err == nil {
			p.in = in
			_, p.above, _ = refusals(in)
		}
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	s.forget(n)
	s.lanes[n] = p
}

// pin returns a pidfd of the first process, or -1 unless the process is the container's: that
// process may have ended, and its pid may be reused.
func pin(r subject.Reached) int {
	fd, err := unix.PidfdOpen(r.Pid, 0)
	if err != nil {
		return -1
	}
	if r.Own == nil || !r.Own(r.Pid) {
		unix.Close(fd)
		return -1
	}
	return fd
}

// refused describes the refused tasks of the program on a lane; "" if there are none.
func (s *session) refused(n int) string {
	s.lock.Lock()
	p := s.lanes[n]
	s.lock.Unlock()
	if p == nil || p.in == nil {
		return ""
	}
	return refused(p.in, p.above)
}

// forget removes a program. The caller holds the lock.
func (s *session) forget(n int) {
	if p := s.lanes[n]; p != nil && p.fd >= 0 {
		unix.Close(p.fd)
	}
	delete(s.lanes, n)
}

// ended returns why the program on a lane was killed. It returns the reason to an operation once.
func (s *session) ended(n int, operation bool) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.lanes[n]
	if p == nil {
		return ""
	}
	p.look(s.most)
	if operation && p.noted {
		return ""
	}
	p.noted = p.noted || operation && p.ended != ""
	return p.ended
}

// Ended implements subject.Reachable.
func (s *session) Ended(ctx context.Context, n int) subject.Ended {
	why, advice := s.ended(n, false), quieter
	if why == "" {
		why, advice = s.refused(n), more
	}
	e := s.Reachable.Ended(ctx, n)
	if why != "" {
		e.Why, e.Advice = why, advice
	}
	return e
}

// Prepare implements subject.Session. Before a stop it inspects the programs.
func (s *session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	out := &batch{s: s, op: op, found: map[int]*finding{}}
	if op == subject.Stop {
		out.found = s.find(ctx, lanes)
	}
	var err error
	out.Batch, err = s.Session.Prepare(ctx, op, lanes)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// arriving is how long the last output of ended programs may take, and blocking how long to
// wait for programs that temporarily block signals.
const (
	arriving = 200 * time.Millisecond
	blocking = 100 * time.Millisecond
)

func (s *session) find(ctx context.Context, lanes []int) map[int]*finding {
	found := map[int]*finding{}
	var over []int
	for _, n := range lanes {
		if s.gone(n) {
			over = append(over, n)
		}
	}
	if len(over) > 0 {
		time.Sleep(arriving)
	}
	for _, n := range over {
		found[n] = &finding{gone: true, over: s.Reachable.Ended(ctx, n), tasks: s.refused(n)}
	}
	late := time.Now().Add(blocking)
	for _, n := range lanes {
		if r := s.Reachable.Reach(n); found[n] == nil && r.Pid > 1 {
			found[n] = look(r, s.signal, late)
			found[n].tasks = s.refused(n)
		}
	}
	return found
}

// gone reports whether the program on a lane is known to have ended.
func (s *session) gone(n int) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.lanes[n]
	if p == nil || p.fd < 0 {
		return false
	}
	ready, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 0)
	return err == nil && ready > 0
}

// Over implements subject.Minded. A program whose process was unknown at its start may have
// ended before.
func (s *session) Over(ctx context.Context, lanes []int) (over []int, first *record.Failure) {
	for _, n := range lanes {
		if s.gone(n) || s.unseen(n) && s.Reachable.Ended(ctx, n).Known {
			over = append(over, n)
		}
	}
	if len(over) == 0 {
		return nil, nil
	}
	time.Sleep(arriving)
	n := over[0]
	first = endedEarly(s.Reachable.Ended(ctx, n), s.refused(n))
	if why := s.ended(n, false); why != "" {
		first.Detail, first.Advice = why, quieter
	}
	return over, first
}

// unseen reports whether the process of the program on a lane is unknown.
func (s *session) unseen(n int) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.lanes[n]
	return p != nil && p.fd < 0
}

// Discard implements subject.Session.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	s.lock.Lock()
	for _, n := range lanes {
		s.forget(n)
	}
	s.lock.Unlock()
	return s.Session.Discard(ctx, lanes)
}

// Close implements subject.Session.
func (s *session) Close(ctx context.Context) error {
	s.close.Do(func() { close(s.over) })
	s.done.Wait()
	for n := range s.lanes {
		s.forget(n)
	}
	return s.Session.Close(ctx)
}

type batch struct {
	subject.Around
	s     *session
	op    subject.Op
	found map[int]*finding // of the programs to be stopped
}

// Start implements subject.Batch.
func (b *batch) Start(ctx context.Context) (released int64, samples []record.Sample, err error) {
	released, samples, err = b.StartWith(ctx, func() {})
	for i := range samples {
		x := &samples[i]
		switch {
		case x.Failure != nil && x.Failure.Kind == record.FailInterrupted:
		case b.op == subject.Start || b.op == subject.Run:
			b.s.begun(x.Lane) // also after a failed start, it may run
		default:
			b.blame(x)
		}
	}
	return released, samples, err
}

// blame makes the failure of an operation say what the program did wrong, if the operation ended
// the program or found it ended. A success can become a failure.
func (b *batch) blame(x *record.Sample) {
	if why := b.s.ended(x.Lane, true); why != "" {
		f := &record.Failure{Kind: record.FailWorkload, Detail: why, Advice: quieter}
		if was := x.Failure; was != nil {
			f.Command, f.Exit, f.Output = was.Command, was.Exit, was.Output
		}
		x.Failure = f
		return
	}
	found := b.found[x.Lane]
	if found == nil {
		return
	}
	f := x.Failure
	if found.gone {
		was := endedEarly(found.over, found.tasks)
		if f != nil {
			was.Command = f.Command
		}
		x.Failure = was
		return
	}
	if survived := f != nil && (f.Kind == record.FailTimeout || f.Kind == record.FailWorkload && f.Exit == 128+int(unix.SIGKILL)); survived && found.signal != "" {
		f.Detail, f.Advice = f.Detail+": "+found.signal, found.advice
	}
	switch {
	case found.tasks == "":
	case f == nil:
		x.Failure = &record.Failure{Kind: record.FailWorkload, Detail: found.tasks, Advice: more}
	default:
		f.Detail += "; " + found.tasks
	}
}

// endedEarly returns the failure of a program that ended before it was stopped.
func endedEarly(end subject.Ended, tasks string) *record.Failure {
	f := &record.Failure{Kind: record.FailWorkload, Detail: "the workload ended before it was stopped", Output: end.Output, Advice: stays}
	if end.Known {
		f.Exit = end.Exit
		f.Detail += fmt.Sprintf(", with status %d", f.Exit)
	}
	if tasks != "" {
		f.Detail, f.Advice = f.Detail+"; "+tasks, more
	}
	return f
}

// The advice of failures.
const (
	quieter = "reduce its output, or have it log to a file of its own"
	stays   = "have it run until the stop signal, or see its output for the reason"
	more    = "raise its task limit if it needs as many (--limit)"
)
