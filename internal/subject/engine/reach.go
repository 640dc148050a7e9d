package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// Reach implements subject.Reachable by what the engine said last.
func (s *Session) Reach(lane int) subject.Reached {
	if r := s.reach[lane].Load(); r != nil {
		return *r
	}
	return subject.Reached{}
}

// reached notes where the container on a lane can be reached, as it was last seen.
func (s *Session) reached(n int) {
	c := s.lanes[n].known
	r := subject.Reached{Pid: c.Pid, Guest: s.o.Guest, Address: c.Address, Log: c.Log, Plain: s.o.PlainLog}
	if r.Near = c.Monitor; s.o.Guest && r.Near == 0 && c.Address != "" && s.o.Daemons != nil {
		if all := s.o.Daemons(); len(all) > 0 {
			r.Near = all[0]
		}
	}
	if r.Pid == 0 && c.Untold && s.o.OnHost && !s.o.Guest && s.o.Daemons != nil {
		if all := s.o.Daemons(); len(all) > 0 {
			r.Sharing = all[0]
		}
	}
	r.Own = c.owns
	switch {
	case c.Afar:
		r.Pid, r.Log = 0, ""
		r.Why = "its network is that of another machine, on which " + s.o.Called + " runs: run tare there"
	case s.o.Guest && c.ID != "" && c.Address == "":
		r.Why = "its network is its sandbox's own, and there is no way into that from outside: give it an address (--network bridge; pods then need CNI)"
	}
	s.reach[n].Store(&r)
}

// owns tells whether a process is in a cgroup of the container's or its pod's.
func (c State) owns(pid int) bool {
	for _, id := range []string{c.ID, c.Pod.ID} {
		if id != "" && InGroupOf(pid, id) {
			return true
		}
	}
	return c.Asked && c.Group != "" && cgroup.Holds(c.Group, pid)
}

// noticing is how long the engine may take to notice that a process has ended.
const noticing = 2 * time.Second

// Ended implements subject.Reachable.
func (s *Session) Ended(ctx context.Context, lane int) subject.Ended {
	c := &s.lanes[lane]
	for began := time.Now(); ; {
		known, err := s.o.Driver.Look(ctx, []string{c.name})
		state, ok := known[c.name]
		gone := !c.known.Untold && !c.known.Afar && !Alive(c.known.Pid)
		if err == nil && ok && (state.Status == Exited || !gone) || time.Since(began) > noticing || machine.Sleep(ctx, step) != nil {
			if !ok {
				state = State{Log: c.known.Log}
			}
			return subject.Ended{Exit: state.Exit, Known: state.Status == Exited && !state.Unseen, Output: s.lastWords(ctx, state)}
		}
	}
}

// lastWords are the last that a container has said, "" where that cannot be told.
func (s *Session) lastWords(ctx context.Context, c State) string {
	if text := tail(c.Log, s.o.PlainLog); text != "" || c.Name == "" {
		return text
	}
	text, _ := s.o.Driver.Output(ctx, []State{c})
	return Last(text)
}

// Said is the file into which a lane keeps what a user's own program says, see
// [lane.Order]; "" where there is none, and nothing to be said.
func Said(env subject.Env, lane int) string {
	if env.Workload.Cargo == nil {
		return ""
	}
	return filepath.Join(env.Dir, fmt.Sprintf("output-%d", lane))
}

// arriving is how long what a workload said may be on its way into the file that keeps it.
const arriving = 50 * time.Millisecond

// LastWords are the last that a program of the user's own said which a lane started and
// that is over; "" of the probe. If there is nothing but the probe's own line, what the
// program said may still be on its way on a busy machine.
func LastWords(env subject.Env, lane int) string {
	if env.Workload.Cargo == nil {
		return ""
	}
	for began := time.Now(); ; {
		time.Sleep(arriving)
		text := strings.TrimSpace(tail(Said(env, lane), true))
		if strings.Contains(text, "\n") || text != "" && !strings.HasPrefix(text, "tare-probe/") || time.Since(began) > noticing {
			return text
		}
	}
}

// Lasting is the failure of a program of the user's own that a lane has started and that
// was over right after its first instruction: it could not be run, or ended by itself.
func Lasting(ctx context.Context, s subject.Reachable, env subject.Env, lane, pid int) *record.Failure {
	if env.Workload.Cargo == nil || !Ended(pid, arriving) {
		return nil
	}
	f := &record.Failure{Kind: record.FailWorkload, Output: LastWords(env, lane), Detail: "the workload ended right after its first instruction"}
	if e := s.Ended(ctx, lane); e.Known {
		f.Exit = e.Exit
		f.Detail += fmt.Sprintf(", with status %d", f.Exit)
	}
	return f
}

// EndOf is the end of a workload that a lane has made, which waits for it with its next
// order only; said is what it said.
func EndOf(pid int, said string) subject.Ended {
	e := subject.Ended{Output: tail(said, true)}
	if s, err := procs.StatOf(pid); pid > 0 && err == nil && s.Ended() {
		e.Exit, e.Known = s.Exit, true
	}
	return e
}
