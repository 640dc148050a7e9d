package starts

import (
	"iter"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
)

// sandboxOf finds the sandbox of an id, and makes one if there is none. It
// returns nil for one whose start has been, unless the line begins another, or is
// older: then the log begins again.
func (b *Builder) sandboxOf(id []byte, opens bool, at int64) *sandbox {
	if s, ok := b.open[string(id)]; ok {
		b.touch(s)
		return s
	}
	if last, ok := b.done.m[string(id)]; ok {
		if !opens && at >= last-jitter {
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
	s := &sandbox{id: string(id)}
	b.open[s.id] = s
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

// named finds the sandbox that a line names. ok says that it names one, which may
// be past its start.
func (b *Builder) named(e *logs.Event, opens bool, at int64) (s *sandbox, ok bool) {
	switch {
	case isID(e.Sandbox):
		if isID(e.Container) && string(e.Container) != string(e.Sandbox) {
			if home, ok := b.containers.m[string(e.Container)]; !ok || home != string(e.Sandbox) {
				b.containers.put(string(e.Container), string(e.Sandbox))
			}
		}
		return b.sandboxOf(e.Sandbox, opens, at), true
	case isID(e.Container):
		if home, ok := b.containers.m[string(e.Container)]; ok {
			if s, ok := b.open[home]; ok {
				b.touch(s)
				return s, true
			}
			return b.sandboxOf([]byte(home), opens, at), true
		}
		return b.sandboxOf(e.Container, opens, at), true
	}
	return nil, false
}

// of finds the sandbox of a line, be it named or not, of which the start has not gone on
// for too long. A line of none is counted, unless it names one that is past its start.
func (b *Builder) of(e *logs.Event, at int64) (s *sandbox, named bool) {
	if s, named = b.named(e, false, at); s == nil && !named {
		s = b.unnamed(e)
	}
	switch {
	case s == nil && !named:
		b.Unplaced++
	case s != nil && b.settles(s, at):
		return b.of(e, at)
	}
	return s, named
}

// unnamed finds the sandbox of a line that names none: the one that its process
// spoke for last, or the only one that is being started.
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
	if who := (speaker{e.Pid, e.File}); e.Pid > 1 && b.pids.m[who] != s.id {
		b.pids.put(who, s.id)
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
	delete(b.open, s.id)
}

// finish ends what is known of a sandbox, and gives its start out if there was
// one: a line alone is no interval.
func (b *Builder) finish(s *sandbox) {
	b.forget(s)
	if s.marked {
		b.done.put(s.id, s.last)
	}
	switch {
	case !s.marked || s.edges < 2:
		b.Unplaced += s.events
	case b.err == nil:
		b.err = b.out(b.start(s), s.at.file)
	}
}

// settles gives out a start that has gone on for too long to be one, and says
// whether it did.
func (b *Builder) settles(s *sandbox, at int64) bool {
	if s.ended != 0 && at-s.ended > int64(settled) || s.began != 0 && at-s.began > int64(longest) {
		b.finish(s)
		return true
	}
	return false
}

// repeats gives out a start after which the log begins again, and says whether it
// did.
func (b *Builder) repeats(s *sandbox, at int64) bool {
	if at >= s.last-jitter {
		return false
	}
	b.finish(s)
	return true
}

// undone ends a start that its runtime takes back itself, within the call that was to
// make it: the first error since its last milestone is why. An error after which it went
// on is none, nor is one beside which lines were lost.
func (b *Builder) undone(s *sandbox) {
	if s.ended == 0 && s.error != "" && s.isCalled() {
		s.fails(s.error, s.last)
	}
	b.finish(s)
}
