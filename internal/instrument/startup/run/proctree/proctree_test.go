package proctree

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/record"
)

// script simulates a machine on which one event happens per millisecond.
type script struct {
	now    int64
	busy   int64
	events []tracer.Event
}

func (s *script) tell(e tracer.Event) {
	s.now += 1e6
	s.busy += 1e5
	e.Time, e.Busy = s.now, s.busy
	s.events = append(s.events, e)
}

func (s *script) fork(parent, pid int) {
	s.tell(tracer.Event{Kind: tracer.Fork, Pid: pid, Parent: parent})
}

func (s *script) exec(pid int, line string) {
	args := strings.Fields(line)
	s.tell(tracer.Event{Kind: tracer.Exec, Pid: pid, File: args[0], Args: args, Comm: comm(args[0]), CPU: 3e5})
}

func (s *script) run(parent, pid int, line string) {
	s.fork(parent, pid)
	s.exec(pid, line)
}

func (s *script) cni(parent, pid int, file, id string) {
	s.fork(parent, pid)
	call := tracer.CNI{Command: "ADD", Container: id, Interface: "eth0"}
	s.tell(tracer.Event{Kind: tracer.Exec, Pid: pid, File: file, Args: []string{file}, CNI: call})
}

func (s *script) exit(pids ...int) {
	for _, pid := range pids {
		s.tell(tracer.Event{Kind: tracer.Exit, Pid: pid, CPU: 5e5})
	}
}

func comm(file string) string {
	file = file[strings.LastIndexByte(file, '/')+1:]
	return file[:min(len(file), 15)]
}

// ids and names map the short ids in scripts to long ids and back.
var (
	idF   = strings.Repeat("f0", 32)
	ids   = strings.NewReplacer("$A", idA, "$B", idB, "$F", idF)
	names = strings.NewReplacer(idA, "$A", idB, "$B", idF, "$F")
)

// play executes the lines of a script. "run 7 50 docker run x" means that process 50
// forks process 7, which executes the command. play returns when the measured call
// returns.
func (s *script) play(t *testing.T, text string) (returned int64) {
	t.Helper()
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		var n []int
		for _, word := range words[1:] {
			number, _ := strconv.Atoi(word)
			n = append(n, number)
		}
		rest := func(from int) string { return strings.Join(words[from:], " ") }
		switch words[0] {
		case "fork":
			s.fork(n[0], n[1])
		case "exec":
			s.exec(n[0], rest(2))
		case "run":
			s.run(n[0], n[1], rest(3))
		case "exit":
			s.exit(n...)
		case "cni":
			s.cni(n[0], n[1], words[3], words[4])
		case "docker":
			docker(s, n[0], words[2], words[3])
		case "session":
			session(s, n[0], words[2])
		case "gone": // exited before its arguments could be read
			s.tell(tracer.Event{Kind: tracer.Exec, Pid: n[0], File: strings.Trim(words[2], `"`), Comm: words[3], Cut: true, CPU: -1})
		case "unborn": // the fork was not traced
			s.tell(tracer.Event{Kind: tracer.Exec, Pid: n[1], Parent: n[0], File: words[3], Args: words[3:], CPU: -1})
		case "wait": // in ns
			s.now += int64(n[0])
		case "return":
			returned = s.now
		default:
			t.Fatalf("invalid script line %q", line)
		}
	}
	if returned == 0 {
		returned = s.now
	}
	return returned
}

// asked parses a request: "client 50, daemons, root 1 shim old, of c1, starts".
func asked(text string) Asked {
	a := Asked{Began: 1e9}
	for field := range strings.SplitSeq(text, ", ") {
		words := strings.Fields(field)
		switch words[0] {
		case "client":
			a.Client, _ = strconv.Atoi(words[1])
		case "daemons":
			a.Roots = append(a.Roots, daemons...)
		case "root":
			pid, _ := strconv.Atoi(words[1])
			a.Roots = append(a.Roots, Root{Pid: pid, Kind: words[2], Name: words[3]})
		case "of":
			a.Containers = words[1:]
		case "starts":
			a.Starts = true
		}
	}
	return a
}

// page formats a start as text, with times in ms since its beginning.
func page(k Start) string {
	ms := func(at int64) string { return strconv.FormatFloat(float64(at-1e9)/1e6, 'f', -1, 64) }
	lines := told(k)
	first := "none"
	for i, p := range k.Processes {
		if p.Exec != 0 {
			lines[i] += ", executed at " + ms(p.Exec)
		}
		if p.Verb != "" {
			lines[i] += ", " + p.Program + " " + p.Verb
		}
		if p.Exit != nil {
			lines[i] += fmt.Sprintf(", exited with %d at %s", *p.Exit, ms(p.Ended))
		} else if p.Ended != 0 {
			lines[i] += ", ended at " + ms(p.Ended)
		}
		if p.CPU > 0 {
			lines[i] += fmt.Sprintf(", CPU %g ms", float64(p.CPU)/1e6)
		}
		if k.First != 0 && p.Exec == k.First {
			first = p.Name
		}
	}
	for _, m := range k.Missing {
		lines = append(lines, fmt.Sprintf("missing: %s %d, %s", m.What, m.Count, m.Detail))
	}
	lines = append(lines, fmt.Sprintf("containers %v in %q, first instruction of %s, %d events, CPU at %d times",
		k.Containers, k.Sandbox, first, k.Events, len(k.Busy)))
	return names.Replace(strings.Join(lines, "\n"))
}

// Two scripts run two daemons at the same time, alternating their steps.
func TestStartHasItsProcesses(t *testing.T) {
	for _, file := range []string{"engines", "evidence", "first", "calls"} {
		t.Run(file, func(t *testing.T) {
			golden.Cases(t, "testdata/"+file+".txt", func(t *testing.T, input string) string {
				text, asks, _ := strings.Cut("\n"+ids.Replace(input), "\nask ")
				own, beside, two := strings.Cut(text, "--- beside\n")
				s := &script{now: 1e9}
				ended := s.play(t, strings.TrimPrefix(own, "\n"))
				events := s.events
				if two {
					other := &script{}
					other.play(t, beside)
					events = interleave(s, other)
					ended = events[len(events)-1].Time
				}
				var out []string
				for ask := range strings.SplitSeq(asks, "\nask ") {
					a := asked(ask)
					a.Ended = ended
					k := Gather(events, a)
					sound(t, k)
					out = append(out, page(k))
				}
				return strings.Join(out, "\n\n")
			})
		})
	}
}

// told formats a process of a start as one line: "runc create c1 <
// containerd-shim-runc-v2".
func told(k Start) []string {
	lines := make([]string, 0, len(k.Processes))
	for _, p := range k.Processes {
		line := p.Kind + " " + p.Name
		if p.Container != "" {
			line += " of " + p.Container
		}
		for _, q := range k.Processes {
			if q.Pid == p.Parent && q.Born <= p.Born && (q.Ended == 0 || q.Ended >= p.Born) {
				line += " < " + q.Name
				break
			}
		}
		lines = append(lines, line)
	}
	return lines
}

// sound checks the invariants of a start.
func sound(t *testing.T, k Start) {
	t.Helper()
	pids := map[int]bool{0: true}
	for _, p := range k.Processes {
		pids[p.Pid] = true
	}
	for i, p := range k.Processes {
		if p.Ended != 0 && p.Ended < p.Born || p.Exec != 0 && (p.Exec < p.Born || p.Ended != 0 && p.Exec > p.Ended) || p.Born < 0 {
			t.Errorf("%+v has times out of order", p)
		}
		check.That(t, pids[p.Parent], "%+v has an unknown parent", p)
		if i > 0 && p.Born < k.Processes[i-1].Born {
			t.Errorf("%+v is not in order", p)
		}
		if len(p.Name) > 140 || len(p.Container) > 256 || p.Kind == "" || p.CPU < -1 {
			t.Errorf("%+v is not bounded", p)
		}
	}
	for i := 1; i < len(k.Busy); i++ {
		if k.Busy[i].At <= k.Busy[i-1].At || k.Busy[i].CPU < k.Busy[i-1].CPU {
			t.Errorf("CPU time decreases from %+v to %+v", k.Busy[i-1], k.Busy[i])
		}
	}
	if len(k.Processes) > Most {
		t.Errorf("%d processes", len(k.Processes))
	}
}

// session simulates an existing shim during docker exec.
func session(s *script, base int, id string) {
	s.run(102, base, "runc --root /r --log /l --log-format json exec --process /tmp/p --detach --pid-file /p "+id)
	s.run(base, base+1, "runc init")
	s.exec(base+1, "true")
	s.exit(base, base+1)
}

const (
	idA = "0abf1b20d64918a50c92936d911dcfb356a0860632ae7c161a8e85bb6d1ab89b"
	idB = "d1e992ba3948e178ba624cee388aebdf7396503696b4a6d66cfed403e2715018"
)

var daemons = []Root{{Pid: 100, Kind: record.KindDaemon, Name: "dockerd"}, {Pid: 101, Kind: record.KindDaemon, Name: "containerd"}}

// docker simulates dockerd and containerd for one container, with pids from base.
func docker(s *script, base int, id, workload string) {
	shim := "/usr/bin/containerd-shim-runc-v2 -namespace moby -id " + id + " -address /run/containerd.sock"
	runc := "runc --root /run/docker/runtime-runc/moby --log /run/log.json --log-format json "
	s.run(101, base, shim+" -publish-binary /usr/bin/containerd start")
	s.run(base, base+1, shim)
	s.exit(base)
	s.run(base+1, base+2, runc+"create --bundle /run/"+id+" --pid-file /run/init.pid "+id)
	s.run(base+2, base+3, "runc init")
	s.fork(base+3, base+4)
	s.fork(base+4, base+5)
	s.run(base+5, base+6, "/usr/bin/newuidmap 1 0 0 1")
	s.exit(base+6, base+3, base+4, base+2)
	s.run(100, base+7, "/usr/bin/docker-proxy -proto tcp")
	s.run(base+1, base+8, runc+"start "+id)
	s.exec(base+5, workload)
	s.exit(base + 8)
}

// interleave merges the events of two daemons' children in turns.
func interleave(a, b *script) (events []tracer.Event) {
	for i := 0; i < len(a.events) || i < len(b.events); i++ {
		for _, s := range []*script{a, b} {
			if i < len(s.events) {
				e := s.events[i]
				e.Time = 1e9 + int64(len(events))*1e6
				e.Busy = int64(len(events)) * 1e4
				events = append(events, e)
			}
		}
	}
	return events
}

func TestProcessesBeyondTheBoundAreMissing(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "bomb")
	for i := range 2 * Most {
		s.fork(50+i, 51+i)
	}
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	if sound(t, k); len(k.Processes) != Most || len(k.Missing) != 1 || k.Missing[0].What != "too many" || k.Missing[0].Count != Most+1 {
		t.Errorf("%d processes, missing %v", len(k.Processes), k.Missing)
	}
}

func TestOwnTimeIsTheTimeOfTheStartsProcesses(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "sh -c x") // 0.3 ms until its exec
	s.run(50, 51, "sleep 1")
	docker(s, 200, idA, "top") // another container's
	s.exit(51)                 // 0.5 ms
	s.exit(50)
	ended := s.now + 1e6
	k := Gather(s.events, Asked{Began: 1e9, Ended: ended, Client: 50, Roots: daemons})
	if n := len(k.Own); n < 2 || k.Own[0] != (record.BusyAt{At: 1e9}) || k.Own[n-1] != (record.BusyAt{At: ended, CPU: 1e6}) {
		t.Errorf("%+v", k.Own)
	}
	survived := slices.DeleteFunc(slices.Clone(s.events), func(e tracer.Event) bool { return e.Kind == tracer.Exit && e.Pid == 51 })
	if k := Gather(survived, Asked{Began: 1e9, Ended: ended, Client: 50, Roots: daemons}); k.Own != nil {
		t.Errorf("CPU time of a running child must be unknown, not 0: %+v", k.Own)
	}
	for i := range s.events {
		s.events[i].CPU = -1
	}
	if k := Gather(s.events, Asked{Began: 1e9, Ended: ended, Client: 50}); k.Own != nil {
		t.Errorf("unexpected %+v", k.Own)
	}
}

func TestEveryExecOfAChainIsShown(t *testing.T) {
	s := &script{now: 1e9}
	s.fork(7, 50)
	for range 20 {
		s.exec(50, "sh -c exec")
	}
	s.exit(50)
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	if sound(t, k); len(k.Processes) != 20 {
		t.Errorf("%d of 20: %+v", len(k.Processes), told(k))
	}
}

func TestEventOrderDoesNotMatter(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "docker run -d busybox top")
	docker(s, 200, idA, "top")
	a := Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons}
	want := fmt.Sprintf("%+v", told(Gather(s.events, a)))
	slices.Reverse(s.events)
	check.Equal(t, "value", fmt.Sprintf("%+v", told(Gather(s.events, a))), want)
}
