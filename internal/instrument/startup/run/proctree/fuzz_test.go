package proctree

import (
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// lines are what processes of the fuzzed machine execute.
var lines = [][]string{
	{"docker", "run", "busybox"}, {"runc", "--root", "/r", "create", "--bundle", "/b", "c1"}, {"runc", "init"}, {"runc", "start", "c1"},
	{"/usr/bin/crun", "run", "c2"}, {"containerd-shim-runc-v2", "-id", "c1", "start"}, {"containerd-shim-runc-v2", "-id", "c1"},
	{"conmon", "-c", "c2", "-n", "x"}, {"sleep", "1"}, {"/opt/cni/bin/bridge"}, {"/proc/self/exe", "init"}, {"/bin/sh", "/x/fake-runc", "create", "c1"},
	{}, {""}, {"sh", "-c"}, {"ld.so"}, {"env"}, {"runc", "--log"}, {"newuidmap"},
}

// machine makes events of any bytes: five for each.
func machine(data []byte) []tracer.Event {
	var events []tracer.Event
	at := int64(0)
	for ; len(data) >= 5; data = data[5:] {
		at += int64(int8(data[0])) // the clock may go back
		e := tracer.Event{
			Kind: tracer.Kind(data[1] % 5), Time: at, Pid: int(data[2]%12) - 1, Parent: int(data[2]/12) % 12,
			CPU: int64(int8(data[3])), Status: int(int8(data[3])), Busy: int64(int8(data[4])) * 10, Cut: data[3] == 9,
		}
		if e.Kind == tracer.Exec {
			e.Args = lines[int(data[4])%len(lines)]
			if len(e.Args) > 0 {
				e.File, e.Comm = e.Args[0], comm(e.Args[0])
			}
			if data[3]&1 == 1 {
				e.CNI = tracer.CNI{Command: "ADD", Container: "c1"}
			}
		}
		events = append(events, e)
	}
	return events
}

func FuzzGather(f *testing.F) {
	f.Add([]byte("\x01\x01\x16\x00\x00" + "\x01\x02\x16\x05\x01" + "\x01\x01\x88\x00\x01" + "\x01\x02\x88\x00\x02" + "\x01\x03\x88\x00\x00"))
	f.Add([]byte("\x01\x01\x0e\x00\x00" + "\x01\x02\x0e\x05\x00" + "\x01\x01\x1b\x00\x01" + "\xf0\x02\x1b\x00\x04" + "\x01\x01\x1b\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		events := machine(data)
		for _, a := range []Asked{
			{Began: 0, Ended: 1000, Client: 1, Roots: []Root{{2, record.KindDaemon, "dockerd"}, {3, record.KindShim, "shim"}, {2, "", ""}}},
			{Began: 50, Roots: []Root{{1, record.KindClient, "x"}, {4, record.KindDaemon, "y"}}, Containers: []string{"c1", "../x"}},
			{Began: 50, Ended: 10, Client: 1, Roots: []Root{{1, record.KindMonitor, "conmon"}, {-1, "", ""}}, Containers: []string{"c2"}},
		} {
			sound(t, Gather(events, a))
		}
	})
}

// spent is the time that CPUs have spent on this process: that of a clock is others' as well.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var at unix.Timespec
	must.OK(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at))
	return time.Duration(at.Nano())
}

// However deep processes are nested, and whatever they are called, the time that
// is taken grows with their number.
func TestHostileTreesTakeLittleTime(t *testing.T) {
	const many = 6_000
	for name, each := range map[string]func(s *script, i int){
		"a chain of forks":        func(s *script, i int) { s.fork(50+i, 51+i) },
		"a chain of runtimes":     func(s *script, i int) { s.run(50+i, 51+i, "runc run c"+string(rune('a'+i%26))) },
		"children of a runtime":   func(s *script, i int) { s.run(50, 51+i, "hook") },
		"programs in one process": func(s *script, _ int) { s.exec(50, "runc create c1"); s.exec(50, "true") },
		"calls within calls": func(s *script, i int) {
			s.fork(50+i, 51+i)
			if i == many-1 {
				for j := many; j > 0; j-- {
					s.exec(50+j, "runc create c1")
				}
			}
		},
		"programs after all forks": func(s *script, i int) {
			s.fork(50+i, 51+i)
			if i == many-1 {
				for j := many; j > 0; j-- {
					s.exec(50+j, "hook")
				}
			}
		},
		"clients and what is done": func(s *script, i int) {
			s.run(50, 51+i, "docker exec web true")
			s.run(9, 51+many+i, "runc exec c"+strconv.Itoa(i))
		},
		"a chain of starts":             func(s *script, i int) { s.run(50+i, 51+i, "runc start c1") },
		"inits that execute themselves": func(s *script, i int) { s.run(50+i, 51+i, "runc init") },
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{now: 1e9}
			s.run(7, 50, "crun run c1")
			for i := range many {
				each(s, i)
			}
			began := spent(t)
			k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
			if took := spent(t) - began; took > 2*time.Second || len(k.Processes) == 0 {
				t.Errorf("%v of a CPU for %d events", took, len(s.events))
			}
			sound(t, k)
		})
	}
}
