package tracer

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// execRecord makes what the programs hand over of an exec.
func execRecord(file, args, env string, flags uint16) []byte {
	b := make([]byte, header, header+len(file)+len(args)+len(env))
	native.PutUint32(b[atKind:], uint32(Exec))
	native.PutUint32(b[atPid:], 7)
	native.PutUint32(b[atParent:], 3)
	native.PutUint64(b[atTime:], 1000)
	native.PutUint64(b[atCPU:], 20)
	native.PutUint64(b[atBusy:], 30)
	copy(b[atComm:], "runc")
	native.PutUint16(b[atFile:], uint16(len(file)))
	native.PutUint16(b[atArgs:], uint16(len(args)))
	native.PutUint16(b[atEnv:], uint16(len(env)))
	native.PutUint16(b[atFlags:], flags)
	return append(append(append(b, file...), args...), env...)
}

func TestARecordIsTakenApart(t *testing.T) {
	with := func(change func(*Event)) Event {
		e := Event{Kind: Exec, Time: 1000, Pid: 7, Parent: 3, Comm: "runc", File: "/r", CPU: 20, Busy: 30}
		change(&e)
		return e
	}
	tests := []struct {
		name string
		b    []byte
		want Event
	}{
		{"arguments", execRecord("/r\x00", "r\x00a b\x00", "", 0), with(func(e *Event) { e.Args = []string{"r", "a b"} })},
		{"an empty last argument", execRecord("/r\x00", "r\x00\x00", "", 0), with(func(e *Event) { e.Args = []string{"r", ""} })},
		{"no arguments and no file at all", execRecord("", "", "", 0), with(func(e *Event) { e.File = "" })},
		{"arguments that are cut", execRecord("/r\x00", "r\x00ab", "", flagArgsCut), with(func(e *Event) { e.Args, e.Cut = []string{"r", "ab"}, true })},
		{"arguments that could not be read", execRecord("/r\x00", "\x00\x00\x00", "", flagArgsGone), with(func(e *Event) { e.Cut = true })},
		{"a plugin's environment", execRecord("/r\x00", "", "A=b\x00CNI_COMMAND=DEL\x00CNI_IFNAME=eth1\x00", 0), with(func(e *Event) { e.CNI = CNI{Command: "DEL", Interface: "eth1"} })},
		{"the last of a name counts", execRecord("/r\x00", "", "CNI_COMMAND=ADD\x00CNI_COMMAND=DEL\x00", 0), with(func(e *Event) { e.CNI = CNI{Command: "DEL"} })},
		{"what only looks like a name", execRecord("/r\x00", "", "X=CNI_COMMAND=ADD\x00CNI_COMMANDS=ADD\x00CNI_COMMAND", 0), with(func(*Event) {})},
		{"a name whose begin is cut off", execRecord("/r\x00", "", "CNI_COMMAND=ADD\x00CNI_IFNAME=e\x00", flagEnvCut), with(func(e *Event) { e.CNI = CNI{Interface: "e"} })},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, _, err := decode(tt.b); err != nil || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, tt.want)
			}
		})
	}
	whole := execRecord("/r\x00", "r\x00", "CNI_COMMAND=ADD\x00", 0)
	for n := range whole {
		if _, _, err := decode(whole[:n]); !errors.Is(err, errRecord) {
			t.Errorf("of %d bytes %d were enough: %v", len(whole), n, err)
		}
	}
}

func TestAStatusIsThatOfAShell(t *testing.T) {
	for from, want := range map[uint32]int{0: 0, 3 << 8: 3, 255 << 8: 255, 9: 137, 15: 143, 11 | 0x80: 139} {
		if got := status(from); got != want {
			t.Errorf("%#x is %d, want %d", from, got, want)
		}
	}
}

func TestTheSecondEndOfAProcessIsKnown(t *testing.T) {
	o := newOnce()
	for i, tt := range []struct {
		pid  int
		born uint64
		time int64
		want bool
	}{
		{1, 10, 100, true}, {1, 10, 101, false}, {2, 10, 102, true},
		{1, 11, 103, true},                     // another with its pid
		{3, 12, 5e9, true}, {2, 10, 5e9, true}, // long after: not kept for ever
	} {
		if got := o.first(tt.pid, tt.born, tt.time); got != tt.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	if len(o.ended) > 3 {
		t.Errorf("%d are kept", len(o.ended))
	}
}

func TestAQueueGivesWhatHappenedInOrderAndHasAnEnd(t *testing.T) {
	var q queue
	for _, at := range []int64{5, 3, 9, 4} {
		q.add(Event{Kind: Fork, Time: at, Busy: 10 - at})
	}
	got := q.take(5)
	if len(got) != 3 || !inOrder(got) || got[0].Time != 3 || got[2].Time != 5 {
		t.Errorf("%+v", got)
	}
	if !slices.IsSortedFunc(got, func(a, b Event) int { return int(a.Busy - b.Busy) }) {
		t.Errorf("CPU time shrinks: %+v", got)
	}
	if got := q.take(8); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := q.take(100); len(got) != 1 || got[0].Time != 9 {
		t.Errorf("%+v", got)
	}
	for range maxPending + 5 {
		q.add(Event{})
	}
	if q.lost() != 5 || len(q.take(0)) != maxPending {
		t.Errorf("%d are said to be lost", q.lost())
	}
}

// page makes a page of the kernel's ring buffer.
func page(begin, commit uint64, words ...uint32) []byte {
	b := make([]byte, pageHeader, 256)
	native.PutUint64(b, begin)
	native.PutUint64(b[8:], commit|uint64(4*len(words)))
	for _, w := range words {
		b = native.AppendUint32(b, w)
	}
	return b
}

func TestAPageOfEventsIsTakenApart(t *testing.T) {
	tests := []struct {
		name string
		page []byte
		want string
		lost int64
		bad  bool
	}{
		{name: "nothing", page: page(0, 0)},
		{name: "two events", page: page(100, 0, 5<<5|1, 0xaa, 7<<5|2, 0xbb, 0xcc), want: "105:1 112:2"},
		{name: "one whose length is in a word of its own", page: page(100, 0, 5<<5, 8, 0xaa), want: "105:1"},
		{name: "a long time between", page: page(100, 0, 5<<5|typeExtend, 1, 1<<5|1, 0xaa), want: fmt.Sprintf("%d:1", 100+(1<<27+5)+1)},
		{name: "a whole time", page: page(100, 0, 5<<5|typeStamp, 2, 1<<5|1, 0xaa), want: fmt.Sprintf("%d:1", 2<<27+5+1)},
		{name: "an event that was taken back", page: page(100, 0, 3<<5|typePadding, 8, 0, 1<<5|1, 0xaa), want: "104:1"},
		{name: "an empty rest", page: page(100, 0, 5<<5|1, 0xaa, typePadding, 0xffff), want: "105:1"},
		{name: "events are missing before", page: page(100, commitMissed, 5<<5|1, 0xaa), want: "105:1", lost: 1},
		{name: "so many are missing before", page: append(page(100, commitMissed|commitStored, 5<<5|1, 0xaa), 9, 0, 0, 0, 0, 0, 0, 0), want: "105:1", lost: 9},
		{name: "an event longer than the page", page: page(100, 0, 5<<5|3, 0xaa), bad: true},
		{name: "a length that is too long", page: page(100, 0, 5<<5, 1<<31, 0xaa), bad: true},
		{name: "a length that is too short", page: page(100, 0, 5<<5, 0, 0xaa), bad: true},
		{name: "a page longer than what was read", page: page(100, 64, 5<<5|1, 0xaa)[:20], bad: true},
		{name: "less than a page", page: []byte{1, 2, 3}, bad: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			lost, err := pages(tt.page, func(time int64, payload []byte) {
				got = append(got, fmt.Sprintf("%d:%d", time, len(payload)/4))
			})
			if s := strings.Join(got, " "); s != tt.want || lost != tt.lost || (err != nil) != tt.bad {
				t.Errorf("%q, %d lost, %v; want %q, %d", s, lost, err, tt.want, tt.lost)
			}
		})
	}
}

const execFormat = `name: sched_process_exec
ID: 306
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] filename;	offset:8;	size:4;	signed:0;
	field:pid_t pid;	offset:12;	size:4;	signed:1;
	field:char comm[16];	offset:16;	size:16;	signed:0;

print fmt: "filename=%s pid=%d", __get_str(filename), REC->pid
`

func TestAnEventIsReadAsItsFormatSays(t *testing.T) {
	f, err := parseFormat(execFormat)
	if err != nil || f.id != 306 || f.name != "sched_process_exec" {
		t.Fatalf("%+v, %v", f, err)
	}
	payload := make([]byte, 40)
	native.PutUint32(payload[8:], 5<<16|32)
	native.PutUint32(payload[12:], 77)
	copy(payload[16:], "sh")
	copy(payload[32:], "/bin\x00")
	if s, ok := f.text(payload, "filename"); s != "/bin" || !ok {
		t.Errorf("%q, %v", s, ok)
	}
	if s, ok := f.text(payload, "comm"); s != "sh" || !ok {
		t.Errorf("%q, %v", s, ok)
	}
	if n, ok := f.number(payload, "pid"); n != 77 || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	native.PutUint32(payload[8:], 9<<16|32)
	if s, ok := f.text(payload, "filename"); ok {
		t.Errorf("%q lies outside", s)
	}
	if _, ok := f.number(payload[:14], "pid"); ok {
		t.Error("a number was read that is not there")
	}
	if _, err := parseFormat("name: x"); err == nil {
		t.Error("half a format was accepted")
	}
}

// message makes a datagram of the process connector.
func message(what uint32, words ...uint32) []byte {
	event := make([]byte, procHeader)
	native.PutUint32(event, what)
	native.PutUint32(event[4:], 1)
	native.PutUint64(event[8:], 500)
	for _, w := range words {
		event = native.AppendUint32(event, w)
	}
	b := make([]byte, unix.NLMSG_HDRLEN+cnHeader)
	native.PutUint32(b, uint32(len(b)+len(event)))
	m := b[unix.NLMSG_HDRLEN:]
	native.PutUint32(m, cnProc)
	native.PutUint32(m[4:], cnProc)
	native.PutUint32(m[8:], 42)
	native.PutUint16(m[16:], uint16(len(event)))
	return append(b, event...)
}

func TestAMessageOfTheConnectorIsTakenApart(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		want raw
	}{
		{"a process is born", message(procFork, 11, 10, 20, 20), raw{by: 10, Event: Event{Kind: Fork, Pid: 20}}},
		{"a thread is born", message(procFork, 11, 10, 21, 20), raw{by: 20, thread: true, Event: Event{Kind: Fork, Pid: 21}}},
		{"a program is executed", message(procExec, 20, 20), raw{by: 20, Event: Event{Kind: Exec, Pid: 20, CPU: -1}}},
		{"a thread ends", message(procExit, 21, 20, 3<<8, 17, 1, 1), raw{by: 20, Event: Event{Kind: Exit, Pid: 21, CPU: -1, Status: 3}}},
		{"on a kernel that does not name the parent", message(procExit, 21, 20, 9, 17), raw{by: 20, Event: Event{Kind: Exit, Pid: 21, CPU: -1, Status: 137}}},
		{"what nobody asked for", message(4, 20, 20, 0, 0), raw{Event: Event{CPU: -1}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Time, tt.want.Busy, tt.want.known = 500, -1, true
			var got []procMessage
			if err := messages(slices.Concat(tt.b, tt.b), func(m procMessage) { got = append(got, m) }); err != nil || len(got) != 2 {
				t.Fatalf("%+v, %v", got, err)
			}
			if !reflect.DeepEqual(got[1].raw, tt.want) || got[1].seq != 42 || got[1].cpu != 1 {
				t.Errorf("got  %+v\nwant %+v", got[1], tt.want)
			}
			for n := 1; n < len(tt.b); n++ {
				if err := messages(tt.b[:n], func(procMessage) {}); !errors.Is(err, errMessage) {
					t.Errorf("of %d bytes %d were enough: %v", len(tt.b), n, err)
				}
			}
		})
	}
	for name, b := range map[string][]byte{
		"a pid that is none":        message(procExec, 20, 1<<31),
		"a fork without a child":    message(procFork, 11, 10),
		"an exit without its code":  message(procExit, 11, 10),
		"an event without anything": message(procExec),
	} {
		if err := messages(b, func(procMessage) {}); !errors.Is(err, errMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnErrorIsSaidInOneLine(t *testing.T) {
	if got := line(fmt.Errorf("load: %w", errors.New("first\nsecond"))); got != "load: first" {
		t.Errorf("%q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(execRecord("/r\x00", "r\x00a\x00", "CNI_COMMAND=ADD\x00", 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, _, err := decode(b)
		if err == nil && (e.Kind < Fork || e.Kind > Exit || e.CPU < -1 || e.Busy < 0) {
			t.Errorf("%+v", e)
		}
	})
}

func FuzzPages(f *testing.F) {
	f.Add(page(100, 0, 5<<5|1, 0xaa, 7<<5|2, 0xbb, 0xcc))
	f.Add(page(100, commitMissed|commitStored, typePadding|1<<5, 4, typeExtend, 1, typeStamp, 1, 0, 8, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_, _ = pages(b, func(_ int64, payload []byte) { n += len(payload) })
		if n > len(b) {
			t.Errorf("%d bytes of events in %d", n, len(b))
		}
	})
}

func FuzzFormat(f *testing.F) {
	f.Add(execFormat, make([]byte, 64))
	f.Fuzz(func(_ *testing.T, text string, payload []byte) {
		if g, err := parseFormat(text); err == nil {
			for name := range g.fields {
				g.number(payload, name)
				g.text(payload, name)
			}
		}
	})
}

func FuzzMessages(f *testing.F) {
	f.Add(message(procFork, 11, 10, 20, 20))
	f.Add(message(procExit, 21, 20, 3<<8, 17, 1, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = messages(b, func(m procMessage) {
			if m.raw.Kind != 0 && (m.raw.Pid <= 0 || m.raw.Pid > maxPid) {
				t.Errorf("%+v", m)
			}
		})
	})
}
