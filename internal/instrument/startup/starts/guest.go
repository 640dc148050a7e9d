package starts

import (
	"bytes"
	"slices"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/record"
)

// clock estimates the offset to add to guest times to get host times.
//
// If a line written by the guest at G arrives at the host at H, the offset is at most
// H-G. If an event caused by the host at H is logged by the guest at G, the offset is
// at least H-G. Three pairs of lines count as cause and effect:
//   - the runtime is asked to create a container, and the guest logs the container's
//     id;
//   - the n-th Start() of the runtime, and the n-th start_container of the agent;
//   - the runtime logs that the agent started, and then queries the guest's details.
type clock struct {
	pairs int64
	most  int64 // upper bound of the offset: minimum of H-G over lines that arrived
	least int64 // lower bound of the offset: maximum of H-G over events the host caused
	bound bool  // least is set
	waits []cause
	calls []guestCall
	done  []guestCall

	answers int64   // when the runtime logged the start of the agent
	begun   []int64 // times of the runtime's Start() calls, in order
	started int     // number of start_container calls logged by the agent

	kernel kernel
	spoken bool // the agent has logged a line
}

// kernel is the time of the guest's kernel before the agent's first line. A line with
// uptime U that arrives at H limits the boot time to at most H-U.
type kernel struct {
	began, up int64
	place     place
}

// booted records a line from the guest's kernel.
func (c *clock) booted(e *logs.Event, at int64) {
	if c.spoken || e.Uptime <= 0 {
		return
	}
	if k := &c.kernel; k.up == 0 || at-e.Uptime < k.began {
		k.began = at - e.Uptime
	}
	if c.kernel.up == 0 {
		c.kernel.place = placeOf(e)
	}
	c.kernel.up = max(c.kernel.up, e.Uptime)
}

// cause is a container whose id the guest has not logged yet.
type cause struct {
	at int64
	id []byte
}

// guestCall is a call served by the agent, in guest time.
type guestCall struct {
	name        string
	began, done int64
	place       place
}

// agentCalls are the calls with a beginning and an end in the agent's log, by message
// prefix. The agent serves the calls of each kind one at a time.
var agentCalls = []struct{ name, begin, end string }{
	{"agent create_container", `rpc call from shim to agent: "create_container"`, "created container!"},
	{"agent start_container", `rpc call from shim to agent: "start_container"`, "container started"},
	{"agent rootfs", "receive createcontainer, storages", "new cgroup_manager"},
	{agentBegins, "", "ttRPC server started"}, // begins with the agent's first line
}

const agentBegins = "agent starts"

// guest processes a line from a guest.
func (b *Builder) guest(e *logs.Event, at int64) {
	s, _ := b.find(e, &fact{sandbox: idOr(e.Sandbox, nil), container: idOr(e.Container, nil)}, at)
	if s == nil {
		return
	}
	s.count(e, at)
	x := edge{at: at, text: e.Message, in: e.Source, place: placeOf(e)}
	if len(x.in) == 0 {
		x.in = []byte("guest")
	}
	for i := range s.lanes {
		s.lanes[i].passGuest(&x)
	}
	s.clock.booted(e, at)
	if e.Guest && e.Time > 0 {
		s.clock.arrived(e, at)
	}
}

// arrived records a guest line with a guest time.
func (c *clock) arrived(e *logs.Event, at int64) {
	d := at - e.Time
	if c.pairs == 0 || d < c.most {
		c.most = d
	}
	c.pairs++
	c.waits = slices.DeleteFunc(c.waits, func(w cause) bool {
		if !bytes.Equal(e.Container, w.id) && !speaksOf(e.Message, w.id) {
			return false
		}
		c.notBefore(w.at, e)
		return true
	})
	if c.answers != 0 && c.answers <= at && bytes.HasPrefix(e.Message, []byte(`rpc call from shim to agent: "get_guest_details"`)) {
		c.notBefore(c.answers, e)
	}
	if bytes.HasPrefix(e.Message, []byte(agentCalls[1].begin)) {
		if c.started < len(c.begun) && c.begun[c.started] <= at {
			c.notBefore(c.begun[c.started], e)
		}
		c.started++
	}
	c.serves(e)
}

// notBefore records a line that the guest wrote at or after the host time at.
func (c *clock) notBefore(at int64, e *logs.Event) {
	if d := at - e.Time; !c.bound || d > c.least {
		c.bound, c.least = true, d
	}
}

// speaksOf reports whether a message contains the id as a separate word. Ids that may
// be ordinary words never match.
func speaksOf(msg, id []byte) bool {
	if len(id) < 6 || !bytes.ContainsAny(id, "0123456789") {
		return false
	}
	i := bytes.Index(msg, id)
	if i < 0 {
		return false
	}
	end := i + len(id)
	return (i == 0 || !idByte[msg[i-1]]) && (end == len(msg) || !idByte[msg[end]])
}

// caused records a host event that the guest will log later.
func (c *clock) caused(e *logs.Event, m mark, container []byte, at int64) {
	if string(e.Message) == "Agent started in the sandbox" {
		c.answers = at
	}
	if m.point == called && !m.weak && len(c.waits) < 4 {
		c.waits = append(c.waits, cause{at, bytes.Clone(container)})
	}
	if m.point == begun && !m.weak && len(c.begun) < maxOfPod {
		c.begun = append(c.begun, at)
	}
}

// serves records the beginning and the end of the agent's calls.
func (c *clock) serves(e *logs.Event) {
	if !c.spoken {
		c.spoken = true
		c.calls = append(c.calls, guestCall{name: agentBegins, began: e.Time, place: placeOf(e)})
	}
	for i := range agentCalls {
		a := &agentCalls[i]
		switch msg := e.Message; {
		case a.begin != "" && bytes.HasPrefix(msg, []byte(a.begin)):
			if len(c.calls) < 8 {
				c.calls = append(c.calls, guestCall{name: a.name, began: e.Time, place: placeOf(e)})
			}
		case bytes.HasPrefix(msg, []byte(a.end)):
			for j, g := range slices.Backward(c.calls) {
				if g.name != a.name {
					continue
				}
				c.calls = slices.Delete(c.calls, j, j+1)
				if g.done = e.Time; g.done >= g.began && len(c.done) < maxSpans {
					c.done = append(c.done, g)
				}
				break
			}
		}
	}
}

// guests returns the estimated clock offset, or nil without lines from the guest.
func (c *clock) guests(id string) []record.GuestClock {
	if c.pairs == 0 {
		return nil
	}
	g := record.GuestClock{Name: id, Offset: c.most, Uncertainty: -1, Pairs: c.pairs}
	if c.bound && c.least <= c.most {
		g.Uncertainty = c.most - c.least
	}
	return []record.GuestClock{g}
}

// spans returns the spans of the kernel and of the agent's calls, in host time.
func (c *clock) spans(b *Builder) []record.Span {
	var out []record.Span
	if k := &c.kernel; k.up > 0 {
		out = append(out, record.Span{Name: "guest kernel", Kind: record.KindGuest, Began: k.began, Ended: k.began + k.up, Source: b.source(k.place)})
	}
	for _, g := range c.done {
		out = append(out, record.Span{Name: g.name, Kind: record.KindGuest, Began: g.began + c.most, Ended: g.done + c.most, Source: b.source(g.place)})
	}
	return out
}
