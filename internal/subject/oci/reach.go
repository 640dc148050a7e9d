package oci

import (
	"context"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Reach implements subject.Reachable. The runtime writes its pid file before it lets
// the workload go, so that a container is reached before the runtime's command returns.
func (s *session) Reach(n int) subject.Reached {
	r := subject.Reached{Guest: s.flavour.guestClock, Address: s.containers[n].address, Log: engine.Said(s.env, n), Plain: true}
	if pid, err := s.process(&s.containers[n]); err == nil {
		group := filepath.Join(s.group, s.containers[n].id)
		r.Pid, r.Own = pid, func(pid int) bool { return cgroup.Holds(group, pid) }
	}
	if r.Guest && r.Address == "" {
		r.Why = "its network is its sandbox's own, and there is no way into that from outside"
	}
	return r
}

// Ended implements subject.Reachable. The first process of gVisor is the sandbox, whose
// end says nothing of the workload's.
func (s *session) Ended(_ context.Context, n int) subject.Ended {
	pid, _ := readPid(s.containers[n].pidFile()) // or it has none, and is not known to have ended
	e := engine.EndOf(pid, engine.Said(s.env, n))
	e.Known = e.Known && !s.flavour.guestClock
	return e
}
