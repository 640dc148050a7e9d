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

// Reach implements subject.Reachable from the last known state.
func (s *Session) Reach(lane int) subject.Reached {
	if r := s.reach[lane].Load(); r != nil {
		return *r
	}
	return subject.Reached{}
}

// reached records where the container on a lane can be reached, from its last known state.
func (s *Session) reached(n int) {
	c := s.lanes[n].known
	r := subject.Reached{Pid: c.Pid, Guest: s.o.Guest, Address: c.Address, Log: c.Log, Plain: s.o.PlainLog}
	r.Near, r.Own = c.Monitor, c.owns
	near, sharing := s.o.Guest && r.Near == 0 && c.Address != "", r.Pid == 0 && c.PidUnknown && s.o.OnHost && !s.o.Guest
	if near || sharing {
		if all := s.o.Daemons(); len(all) > 0 && near {
			r.Near = all[0]
		} else if len(all) > 0 {
			r.Sharing = all[0]
		}
	}
	switch {
	case c.Remote:
		r.Pid, r.Log = 0, ""
		r.Why = "its network is on another machine, where " + s.o.Called + " runs: run tare there"
	case s.o.Guest && c.ID != "" && c.Address == "":
		r.Why = "its sandbox has its own network without an address: use --network bridge (pods need CNI for it)"
	}
	s.reach[n].Store(&r)
}

// owns reports whether a process is in a cgroup of the container or its pod.
func (c State) owns(pid int) bool {
	return c.ID != "" && InGroupOf(pid, c.ID) || c.Pod.ID != "" && InGroupOf(pid, c.Pod.ID) ||
		c.GroupRequested && c.Group != "" && cgroup.Holds(c.Group, pid)
}

// noticeTimeout is how long an engine may take to notice that a process has ended.
const noticeTimeout = 2 * time.Second

// Ended implements subject.Reachable.
func (s *Session) Ended(ctx context.Context, lane int) subject.Ended {
	c := &s.lanes[lane]
	for began := time.Now(); ; {
		known, err := s.o.Driver.Look(ctx, []string{c.name})
		state, ok := known[c.name]
		gone := !c.known.PidUnknown && !c.known.Remote && !Alive(c.known.Pid)
		if err == nil && ok && (state.Status == Exited || !gone) || time.Since(began) > noticeTimeout || machine.Sleep(ctx, pollRemoval) != nil {
			if !ok {
				state = State{Log: c.known.Log}
			}
			return subject.Ended{Exit: state.Exit, Known: state.Status == Exited && !state.ExitUnseen, Output: s.lastOutput(ctx, state)}
		}
	}
}

// lastOutput returns the end of a container's output, "" if unavailable.
func (s *Session) lastOutput(ctx context.Context, c State) string {
	if text := tail(c.Log, s.o.PlainLog); text != "" || c.Name == "" {
		return text
	}
	text, _ := s.o.Driver.Output(ctx, []State{c})
	return Last(text)
}

// Said returns the file to which a lane writes the output of a user's program, see
// [lane.Order]. It returns "" for the probe alone.
func Said(env subject.Env, lane int) string {
	if env.Workload.Cargo == nil {
		return ""
	}
	return filepath.Join(env.Dir, fmt.Sprintf("output-%d", lane))
}

// outputDelay is how long output of a workload may take to reach its file.
const outputDelay = 50 * time.Millisecond

// LastOutput returns the end of the output of an ended user's program that a lane started; ""
// for the probe alone. On a busy machine output may arrive late: while there is only the
// probe's line, it waits up to 2 s for more.
func LastOutput(env subject.Env, lane int) string {
	if env.Workload.Cargo == nil {
		return ""
	}
	for began := time.Now(); ; {
		time.Sleep(outputDelay)
		text := strings.TrimSpace(tail(Said(env, lane), true))
		if strings.Contains(text, "\n") || text != "" && !strings.HasPrefix(text, "tare-probe/") || time.Since(began) > noticeTimeout {
			return text
		}
	}
}

// EarlyEnd returns the failure of a user's program that a lane started and that ended right
// after its first instruction; nil if it is running.
func EarlyEnd(ctx context.Context, s subject.Reachable, env subject.Env, lane, pid int) *record.Failure {
	if env.Workload.Cargo == nil || !Ended(pid, outputDelay) {
		return nil
	}
	f := &record.Failure{Kind: record.FailWorkload, Output: LastOutput(env, lane), Detail: "the workload ended right after its first instruction"}
	if e := s.Ended(ctx, lane); e.Known {
		f.Exit = e.Exit
		f.Detail += fmt.Sprintf(", with status %d", f.Exit)
	}
	return f
}

// EndOf returns the end of a workload that a lane started and has not waited for yet. said is
// the file with its output.
func EndOf(pid int, said string) subject.Ended {
	e := subject.Ended{Output: tail(said, true)}
	if s, err := procs.StatOf(pid); pid > 0 && err == nil && s.Ended() {
		e.Exit, e.Known = s.Exit, true
	}
	return e
}
