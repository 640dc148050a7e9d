package starts

import (
	"iter"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// sandboxOf finds the sandbox of an id, and makes one if there is none. It returns nil
// where the start of the id has been given out, unless the line begins another, or is
// older: then the log begins again.
func (b *Builder) sandboxOf(id []byte, opens bool, at int64) *sandbox {
	if s, ok := b.open[string(id)]; ok {
		b.touch(s)
		return s
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

// known returns the sandbox of an id if it is open.
func (b *Builder) known(id []byte) *sandbox {
	s := b.open[string(id)]
	if s == nil {
		if home, ok := b.containers.m[string(id)]; ok {
			s = b.open[home]
		}
	}
	if s != nil {
		b.touch(s)
	}
	return s
}

// named finds the sandbox that a line names by its id or a container's. ok reports whether
// it names one, which may be past its start.
func (b *Builder) named(sandbox, container []byte, opens bool, at int64) (s *sandbox, ok bool) {
	home, isKnown := b.containers.m[string(container)]
	switch {
	case sandbox != nil:
		if container != nil && string(container) != string(sandbox) && home != string(sandbox) {
			if s := b.open[home]; s != nil && s.extra != "" {
				b.touch(s)
				return s, true
			}
			if s := b.open[idless+home]; isKnown && s != nil {
				return s, true
			}
			b.containers.put(string(container), string(sandbox))
		}
		return b.sandboxOf(sandbox, opens, at), true
	case isKnown:
		if s, ok := b.open[home]; ok {
			b.touch(s)
			return s, true
		}
		return b.sandboxOf([]byte(home), opens, at), true
	case container != nil:
		return b.sandboxOf(container, opens, at), true
	}
	return nil, false
}

// ofPod finds the start of a pod by its name. That which kubelet sees is one of its own, as
// its times are not those of the engine: it begins when the pod is created, by a clock of
// whole seconds.
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
	if s != nil {
		b.touch(s)
	}
	return s
}

// unnamed finds the sandbox of a line that names none: that for which its process spoke
// last, or the only one that is being started.
func (b *Builder) unnamed(e *logs.Event) *sandbox {
	if e.Pid > 1 {
		if id, ok := b.pids.m[speaker{e.Pid, e.File}]; ok {
			if s, ok := b.open[id]; ok {
				b.touch(s)
				return s
			}
			return nil
		}
	}
	return b.theOnly()
}

// speaker is a process as one file knows it: those of two nodes have the same pids.
type speaker struct{ pid, file int }

// speaks remembers for which sandbox a process spoke.
func (b *Builder) speaks(e *logs.Event, s *sandbox) {
	if who := (speaker{e.Pid, e.File}); e.Pid > 1 && b.pids.m[who] != s.key {
		b.pids.put(who, s.key)
	}
}

// theOnly is the start under way if there is one only.
func (b *Builder) theOnly() *sandbox {
	if len(b.underWay) == 1 {
		for s := range b.underWay {
			return s
		}
	}
	return nil
}

// newestFirst are the open sandboxes, the one that was seen last first.
func (b *Builder) newestFirst() iter.Seq[*sandbox] {
	return func(yield func(*sandbox) bool) {
		for at := b.byUse.Front(); at != nil && yield(at.Value.(*sandbox)); at = at.Next() {
		}
	}
}

func (b *Builder) touch(s *sandbox) { b.byUse.MoveToFront(s.place) }

// forget takes a sandbox out of those that are open.
func (b *Builder) forget(s *sandbox) {
	delete(b.underWay, s)
	b.byUse.Remove(s.place)
	delete(b.open, s.key)
}

// finish ends what is known of a sandbox, and gives its start out if there was one: a line
// alone is no interval, unless a call begins with it.
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
	*s = sandbox{} // calls that are remembered point at it
}

// settles gives out a start that has gone on for too long to be one, and reports whether
// it did.
func (b *Builder) settles(s *sandbox, at int64) bool {
	if s.ended != 0 && at-max(s.ended, s.exit) > int64(settled) && !s.isStarting() || s.began != 0 && at-s.began > int64(longest) {
		b.finish(s)
		return true
	}
	return false
}
