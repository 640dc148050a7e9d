package starts

import (
	"bytes"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// pulled takes a line of containerd's about an image: `PullImage "busybox:latest"`,
// `PullImage "busybox:latest" returns image reference "sha256:…"`. It says whether
// it is one.
func (b *Builder) pulled(e *logs.Event, at int64) bool {
	image := after(e.Message, `PullImage "`, '"')
	if image == nil || !bytes.HasPrefix(e.Message, []byte(`PullImage "`)) {
		return false
	}
	key := string(cut(image))
	if !bytes.Contains(e.Message, []byte(`" returns image reference `)) {
		b.pulls.put(key, &call{name: pullName, kind: record.KindEngine, at: at, text: b.words.keep(e.Message), place: placeOf(e)})
		return true
	}
	c, ok := b.pulls.take(key)
	if !ok {
		b.unplaced++
		return true
	}
	b.pull(c, e, at, engineName(e))
	return true
}

const pullName = "PullImage"

// pull adds the pulling of an image to the start that waits for it. No engine says
// which that is, so it is done only where one pod alone is up that has no
// container yet.
func (b *Builder) pull(c *call, e *logs.Event, at int64, engine []byte) {
	var s *sandbox
	for x := b.newest; x != nil; x = x.older {
		if !x.has(podReturned) || x.has(createCalled) || x.ended > c.at || c.at-x.ended > int64(settled) {
			continue
		}
		if s != nil {
			b.unplaced += 2
			return
		}
		s = x
	}
	if s == nil {
		b.unplaced += 2
		return
	}
	first := logs.Event{Form: e.Form, Time: c.at, Message: []byte(c.text), File: c.place.file, Line: c.place.line}
	s.said(b, &first, c.at, host, mark{}, true, engine)
	s.said(b, e, at, host, mark{}, true, engine)
	s.span(b, *c, at)
}
