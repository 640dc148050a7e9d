package starts

import (
	"iter"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// sandboxOf returns the sandbox with an id and adds it if it is missing. It returns
// nil if the start was already emitted. If the line begins another start, or is older
// than the emitted start, it adds a new sandbox. Older lines occur when a log was
// restarted.
func (b *Builder) sandboxOf(id []byte, opens bool, at int64) *sandbox {
	if s, ok := b.open[string(id)]; ok {
		return b.touch(s)
	}
	if was, ok := b.done.m[string(id)]; ok {
		if !opens && at >= was.last-jitter {
			return nil
		}
		delete(b.done.m, string(id))
	}
	for len(b.open) >= b.maxOpen {
		oldest := b.byUse.Back().Value.(*sandbox)
		if oldest.marked && oldest.ended == 0 {
			b.Dropped++
		}
		b.finish(oldest)
	}
	s := &sandbox{id: string(id), key: string(id)}
	b.open[s.key] = s
	s.place = b.byUse.PushFront(s)
	return s
}

// known returns the open sandbox with the id, or the one that has the container with
// the id. It returns nil if there is none.
func (b *Builder) known(id []byte) *sandbox {
	s := b.open[string(id)]
	if home, ok := b.containers.m[string(id)]; s == nil && ok {
		s = b.open[home]
	}
	return b.touch(s)
}

// named finds the sandbox of a line by its sandbox id or container id. ok reports
// whether the line has an id. s is nil if the start was already emitted.
func (b *Builder) named(sandbox, container []byte, opens bool, at int64) (s *sandbox, ok bool) {
	home, isKnown := b.containers.m[string(container)]
	switch {
	case sandbox != nil:
		if container != nil && string(container) != string(sandbox) && home != string(sandbox) {
			if s := b.open[home]; s != nil && s.extra != "" {
				return b.touch(s), true
			}
			if s := b.open[idless+home]; isKnown && s != nil {
				return s, true
			}
			b.containers.put(string(container), string(sandbox))
		}
		return b.sandboxOf(sandbox, opens, at), true
	case isKnown:
		if s, ok := b.open[home]; ok {
			return b.touch(s), true
		}
		return b.sandboxOf([]byte(home), opens, at), true
	case container != nil:
		return b.sandboxOf(container, opens, at), true
	}
	return nil, false
}

// ofPod returns the start of a pod by the pod's name. kubelet's view of the start is
// separate because its times differ from the engine's. It begins at the pod's creation
// time, in whole seconds.
func (b *Builder) ofPod(f *fact, at int64) *sandbox {
	key, own := b.pods.m[string(f.pod)], idless+"kubelet "+string(cut(f.pod))
	if f.own || b.open[key] == nil {
		key = own
	}
	s := b.open[key]
	if s == nil && f.opens {
		s = b.sandboxOf([]byte(key), true, at)
		s.name = string(cut(f.pod))
	}
	return b.touch(s)
}

// unnamed returns the sandbox of a line without an id. It is the last sandbox that the
// process logged about, or the only one being started.
func (b *Builder) unnamed(e *logs.Event) *sandbox {
	if key, ok := b.pids.m[speaker{e.Pid, e.File}]; ok {
		return b.touch(b.open[key])
	}
	if len(b.underWay) == 1 {
		for s := range b.underWay {
			return s
		}
	}
	return nil
}

// speaker is a process that logs to a file. Processes of different nodes may have the
// same pid.
type speaker struct{ pid, file int }

// speaks records the sandbox that a process last logged about.
func (b *Builder) speaks(e *logs.Event, s *sandbox) {
	if who := (speaker{e.Pid, e.File}); e.Pid > 1 && b.pids.m[who] != s.key {
		b.pids.put(who, s.key)
	}
}

// newestFirst iterates over the open sandboxes, most recently used first.
func (b *Builder) newestFirst() iter.Seq[*sandbox] {
	return func(yield func(*sandbox) bool) {
		for at := b.byUse.Front(); at != nil && yield(at.Value.(*sandbox)); at = at.Next() {
		}
	}
}

// touch marks a sandbox as the most recently used one and returns it. It may be nil.
func (b *Builder) touch(s *sandbox) *sandbox {
	if s != nil {
		b.byUse.MoveToFront(s.place)
	}
	return s
}

// forget removes a sandbox from the open sandboxes.
func (b *Builder) forget(s *sandbox) {
	delete(b.underWay, s)
	b.byUse.Remove(s.place)
	delete(b.open, s.key)
}

// finish closes a sandbox and emits its start, if any. A single line is not a start,
// unless it begins a call.
func (b *Builder) finish(s *sandbox) {
	b.forget(s)
	if s.marked {
		b.done.put(s.key, past{s.last, s.name, s.labels()})
	}
	switch {
	case !s.marked || s.edges < 2 && len(s.calls) == 0 || s.unasked && s.ended == 0:
		b.Unplaced += s.events
	case b.err == nil:
		b.err = b.out(b.start(s), s.at.file)
	}
	*s = sandbox{} // retained calls still point to it
}

// settles emits a start that is too old to continue. It reports whether it did.
func (b *Builder) settles(s *sandbox, at int64) bool {
	if s.ended != 0 && at-max(s.ended, s.exit) > int64(settled) && !s.isStarting() || s.began != 0 && at-s.began > int64(longest) {
		b.finish(s)
		return true
	}
	return false
}
