package floor

import (
	"context"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Reach implements subject.Reachable.
func (s *session) Reach(n int) subject.Reached {
	return subject.Reached{Pid: s.pool.Pid(n), Own: s.pool.Owns, Log: engine.Said(s.env, n), Plain: true}
}

// Ended implements subject.Reachable.
func (s *session) Ended(_ context.Context, n int) subject.Ended {
	return engine.EndOf(s.pool.Pid(n), engine.Said(s.env, n))
}
