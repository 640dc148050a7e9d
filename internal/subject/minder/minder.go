// Package minder looks after programs of the user's own while a run is under way. It ends
// one that floods its log, which no engine bounds by itself, and says of one that did not
// end as told what can be told: that it has no handler for the signal, that it ignores
// it, that it was at its limit of tasks. It stands between a run and a target's session,
// so that it is so on all.
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

// Most is how much a program may say where so many are there at once: enough for the
// access log of a server under load, and together they fill no disk.
func Most(lanes int) int64 {
	const together, least = 4 << 30, 16 << 20
	return max(least, min(lane.MaxKept, together/int64(max(lanes, 1))))
}

// interval is how often it is looked how much each has said.
const interval = 200 * time.Millisecond

// Wrap minds the programs of a session that was opened with env. One that says as much as
// most is ended.
func Wrap(s subject.Session, env subject.Env, most int64) subject.Session {
	at, ok := subject.As[subject.Reachable](s)
	if !ok {
		return s
	}
	m := &session{Session: s, at: at, signal: env.Workload.Signal(), most: most, lanes: map[int]*program{}, over: make(chan struct{})}
	m.done.Go(m.mind)
	return m
}

type session struct {
	subject.Session
	at     subject.Reachable
	signal unix.Signal
	most   int64

	lock  sync.Mutex
	lanes map[int]*program // that were begun, by lane
	over  chan struct{}
	close sync.Once
	done  sync.WaitGroup
}

// program is one that was begun.
type program struct {
	fd    int           // pidfd of its first process, -1 where that is not known to be the container's
	above int64         // how often the group above its own had refused somebody a task when it was begun
	in    *procs.Groups // those of that process, which nobody tells once it is reaped; nil where its refusals are not told
	log   string        // the file with what it says, "" where it is in none
	ended string        // what it was ended for, "" while it was not
	told  bool          // a failure has said so
}

// Unwrap implements subject.Wrapped.
func (s *session) Unwrap() subject.Session { return s.Session }

// mind looks at all programs, again and again.
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
		p.ended = fmt.Sprintf("its output grew beyond %d MiB, and it was ended for that", most>>20)
	}
}

// begun notes the program that an operation has begun on a lane.
func (s *session) begun(n int) {
	r := s.at.Reach(n)
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

// pin is a pidfd of the first process, -1 unless that is the container's own: it may be
// over, and its number another's.
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

// refused says that the program on a lane wanted more tasks than it may have, "" where it
// did not.
func (s *session) refused(n int) string {
	s.lock.Lock()
	p := s.lanes[n]
	s.lock.Unlock()
	if p == nil || p.in == nil {
		return ""
	}
	return refused(p.in, p.above)
}

// forget is for whoever holds the lock.
func (s *session) forget(n int) {
	if p := s.lanes[n]; p != nil && p.fd >= 0 {
		unix.Close(p.fd)
	}
	delete(s.lanes, n)
}

// ended says what the program on a lane was ended for. An answer to an operation is given
// once.
func (s *session) ended(n int, operation bool) string {
	s.lock.Lock()
	defer s.lock.Unlock()
	p := s.lanes[n]
	if p == nil {
		return ""
	}
	p.look(s.most)
	if operation && p.told {
		return ""
	}
	p.told = p.told || operation && p.ended != ""
	return p.ended
}

// Ended implements subject.Reachable.
func (s *session) Ended(ctx context.Context, n int) subject.Ended {
	why, advice := s.ended(n, false), quieter
	if why == "" {
		why, advice = s.refused(n), more
	}
	e := s.at.Ended(ctx, n)
	if why != "" {
		e.Why, e.Advice = why, advice
	}
	return e
}

// Reach implements subject.Reachable.
func (s *session) Reach(n int) subject.Reached { return s.at.Reach(n) }

// Prepare implements subject.Session. What is to be stopped is looked at while it can be
// seen.
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

// arriving is how long the last words of programs that are over may be on their way, and
// blocking how long it is waited until those that are there block no signal.
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
		found[n] = &finding{gone: true, over: s.at.Ended(ctx, n), tasks: s.refused(n)}
	}
	late := time.Now().Add(blocking)
	for _, n := range lanes {
		if r := s.at.Reach(n); found[n] == nil && r.Pid > 1 {
			found[n] = look(r, s.signal, late)
			found[n].tasks = s.refused(n)
		}
	}
	return found
}

// gone tells whether the program on a lane is known to have ended.
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

// Over implements subject.Minded. One whose process was not known to be the container's when
// it was begun may have ended before.
func (s *session) Over(ctx context.Context, lanes []int) (over []int, first *record.Failure) {
	for _, n := range lanes {
		if s.gone(n) || s.unseen(n) && s.at.Ended(ctx, n).Known {
			over = append(over, n)
		}
	}
	if len(over) == 0 {
		return nil, nil
	}
	time.Sleep(arriving)
	n := over[0]
	first = itself(s.at.Ended(ctx, n), s.refused(n))
	if why := s.ended(n, false); why != "" {
		first.Detail, first.Advice = why, quieter
	}
	return over, first
}

// unseen tells whether it is not known which process the program on a lane is.
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
	found map[int]*finding // of those that are to be stopped
}

// Start implements subject.Batch.
func (b *batch) Start(ctx context.Context) (released int64, samples []record.Sample, err error) {
	released, samples, err = b.StartWith(ctx, func() {})
	for i := range samples {
		x := &samples[i]
		switch {
		case x.Failure != nil && x.Failure.Kind == record.FailInterrupted:
		case b.op == subject.Start || b.op == subject.Run:
			b.s.begun(x.Lane) // one whose start failed may run on
		default:
			b.blame(x)
		}
	}
	return released, samples, err
}

// blame says of an operation that ended a program, or found it ended, what that did wrong.
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
		was := itself(found.over, found.tasks)
		if f != nil {
			was.Command = f.Command
		}
		x.Failure = was
		return
	}
	if deaf := f != nil && (f.Kind == record.FailTimeout || f.Kind == record.FailWorkload && f.Exit == 128+int(unix.SIGKILL)); deaf && found.signal != "" {
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

// itself is the failure of a program that ended by itself.
func itself(end subject.Ended, tasks string) *record.Failure {
	f := &record.Failure{Kind: record.FailWorkload, Detail: "the workload ended before it was told to", Output: end.Output, Advice: stays}
	if end.Known {
		f.Exit = end.Exit
		f.Detail += fmt.Sprintf(", with status %d", f.Exit)
	}
	if tasks != "" {
		f.Detail, f.Advice = f.Detail+"; "+tasks, more
	}
	return f
}

// What to do.
const (
	quieter = "have it say less, or write that to a file of its own"
	stays   = "have it stay until it is told to end, or look in its output for why it did not"
	more    = "give it a higher limit of tasks, if it is to have as many (--limit)"
)
