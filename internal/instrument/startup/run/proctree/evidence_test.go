package proctree

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

// busyNode is a command beside whom others start containers through the same
// daemons: what happens is told by do, in turns with docker starting idB.
func busyNode(do func(s *script)) (events []tracer.Event, ended int64) {
	own, others := &script{}, &script{}
	do(own)
	for i := range 10 { // before that
		others.fork(1, 380+i)
	}
	docker(others, 300, idB, "foreign")
	events = interleave(own, others)
	return events, events[len(events)-1].Time
}

func TestWhatDaemonsStartIsOnlyTakenWithEvidence(t *testing.T) {
	quiet := func(do func(s *script)) ([]tracer.Event, int64) {
		s := &script{now: 1e9}
		do(s)
		return s.events, s.now
	}
	shell := func(lines ...string) func(s *script) {
		return func(s *script) {
			s.run(7, 50, "sh -c x")
			for i, line := range lines {
				s.run(50, 51+i, line)
			}
		}
	}
	with := func(line string, ids ...string) func(s *script) {
		return func(s *script) {
			shell(line)(s)
			for i, id := range ids {
				docker(s, 200+20*i, id, "top")
			}
			s.exit(51, 50)
		}
	}
	a := []string{idA}
	for name, c := range map[string]struct {
		beside    bool // others start a container
		do        func(s *script)
		printed   []string
		want      []string // containers
		ambiguous int64
	}{
		"a command that asks no engine takes nothing": {true, shell("sleep 0.2"), nil, nil, 0},
		"even where only one was started":             {false, with("sleep 1", idA), nil, nil, 0},
		"a client's only container is its own":        {false, with("docker run busybox top", idA), nil, a, 0},
		"of two nobody can tell":                      {true, with("docker run busybox top", idA), nil, nil, 2},
		"unless the command printed its own":          {true, with("docker run -d busybox top", idA), a, a, 0},
		"or asked for it by its id":                   {true, with("docker start "+idA[:12], idA), nil, a, 0},
		"two clients have two containers": {false, func(s *script) {
			shell("docker run x", "docker run y")(s)
			docker(s, 200, idA, "top")
			docker(s, 300, idB, "top")
		}, nil, []string{idA, idB}, 0},
		"one after the other, too": {false, func(s *script) {
			shell("docker run x")(s)
			docker(s, 200, idA, "top")
			s.exit(51)
			s.run(50, 60, "/usr/bin/docker -H unix:///x container run y")
			docker(s, 300, idB, "top")
		}, nil, []string{idA, idB}, 0},
		"a second that was there before the second client is nobody's": {false, func(s *script) {
			shell("docker run x")(s)
			docker(s, 200, idA, "top")
			docker(s, 300, idB, "top")
			s.run(50, 60, "docker run y")
		}, nil, nil, 2},
		"what was there before the client did not come from it": {false, func(s *script) {
			s.run(7, 50, "sh -c x")
			docker(s, 300, idB, "top")
			s.run(50, 51, "docker run x")
			docker(s, 200, idA, "top")
		}, nil, a, 0},
		"one of two is known, so the other is the other's": {false, func(s *script) {
			shell("docker run -d x", "docker run y")(s)
			docker(s, 200, idA, "top")
			docker(s, 300, idB, "top")
		}, a, []string{idA, idB}, 0},
		"a client's plugin is no second client": {false, func(s *script) {
			s.run(7, 50, "docker compose up")
			s.run(50, 51, "/usr/libexec/docker/cli-plugins/docker-compose compose up")
			docker(s, 200, idA, "top")
			docker(s, 300, idB, "top")
		}, nil, nil, 2},
		"a client that starts nothing has nothing":   {false, with("docker -H unix:///x pull busybox", idB), nil, nil, 0},
		"one that may have started many is not sure": {false, with("docker build .", idB), nil, nil, 1},
		"podman starts its own":                      {false, with("podman run busybox", idB), nil, nil, 0},
		"ctr calls containers as it likes":           {true, with("ctr -a /x run --rm image proof top", "proof"), nil, []string{"proof"}, 0},
		"which no other argument is taken for":       {false, with("true proof", "proof"), nil, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tell := quiet
			if c.beside {
				tell = busyNode
			}
			events, ended := tell(c.do)
			k := Gather(events, Asked{Began: 1e9, Ended: ended, Client: 50, Roots: daemons, Containers: c.printed})
			sound(t, k)
			count := int64(0)
			for _, m := range k.Missing {
				if m.What == "ambiguous" {
					count += m.Count
				}
			}
			if !slices.Equal(k.Containers, c.want) || count != c.ambiguous {
				t.Errorf("containers %v, missing %+v", k.Containers, k.Missing)
			}
			for _, p := range k.Processes {
				below := p.Kind == record.KindDaemon || p.Kind == record.KindShim || p.Kind == record.KindCall || p.Name == "docker-proxy"
				if len(c.want) == 0 && below || p.Container != "" && !slices.Contains(c.want, p.Container) {
					t.Errorf("%s, %s of %q, belongs to others", p.Name, p.Kind, p.Container)
				}
			}
			if (k.First == 0) != (len(c.want) == 0) {
				t.Errorf("first instruction at %d", k.First)
			}
		})
	}
}

// A target of several commands is followed by the first of them.
func TestATargetsOwnCallIsEvidence(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "isula create x")
	s.exit(50)
	s.run(7, 51, "isula start x")
	docker(s, 200, idA, "top")
	a := Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons}
	if k := Gather(s.events, a); len(k.Containers) != 0 {
		t.Errorf("a command that creates has %v", k.Containers)
	}
	a.Starts = true
	if k := Gather(s.events, a); !slices.Equal(k.Containers, []string{idA}) || k.First == 0 {
		t.Errorf("%v, first %d", k.Containers, k.First)
	}
}

// What a daemon calls without an id is a container's only where one of the start's
// was started, and nobody else's.
func TestAHelperWithoutAnIDFollowsTheOnlyContainer(t *testing.T) {
	for name, c := range map[string]struct {
		client string
		ids    []string
		want   bool
	}{
		"of its own":            {"docker run x", []string{idA}, true},
		"of somebody else":      {"sleep 1", []string{idA}, false},
		"of both":               {"docker start " + idA, []string{idA, idB}, false},
		"of nobody who is seen": {"docker run x", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{now: 1e9}
			s.run(100, 90, "docker-untar /early")
			s.exit(90)
			s.run(7, 50, c.client)
			s.run(100, 91, "docker-untar /x")
			s.exit(91)
			for i, id := range c.ids {
				docker(s, 200+20*i, id, "top")
			}
			k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons})
			n := 0
			for _, p := range k.Processes {
				if p.Name == "docker-untar" {
					n++
				}
			}
			if n > 1 || (n == 1) != c.want {
				t.Errorf("%d of them: %q", n, told(k))
			}
		})
	}
}

func TestTheFirstInstructionIsOfTheStartsOwnWorkload(t *testing.T) {
	exec := func(k Start, name string) int64 {
		for _, p := range k.Processes {
			if p.Name == name && p.Kind == record.KindWorkload {
				return p.Exec
			}
		}
		return 0
	}
	t.Run("of two containers the first one's", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(7, 50, "sh -c x")
		for i, id := range []string{idA, idB} {
			s.run(50, 60+i, "docker run x")
			docker(s, 200+20*i, id, []string{"one", "two"}[i])
			s.exit(60 + i)
		}
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons})
		if k.First == 0 || k.First != exec(k, "one") || exec(k, "two") == 0 || len(k.Missing) != 0 {
			t.Errorf("first %d, missing %v of %q", k.First, k.Missing, told(k))
		}
	})
	t.Run("of a pod whose network was made, not the one that holds it", func(t *testing.T) {
		s := &script{now: 1e9}
		root := []Root{{Pid: 101, Kind: record.KindDaemon, Name: "crio"}}
		s.cni(101, 52, "/opt/cni/bin/bridge", "sb")
		s.exit(52)
		for i, id := range []string{"sb", "c1"} {
			p := 60 + 10*i
			s.run(101, p, "conmon -c "+id+" -n x")
			s.run(p, p+1, "crun --root /r create --bundle /b "+id)
			s.fork(p+1, p+2)
			s.exit(p + 1)
			s.run(101, p+3, "crun --root /r start "+id)
			s.exec(p+2, []string{"/pause", "/app"}[i])
		}
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Roots: root, Containers: []string{"sb", "c1"}})
		if k.First == 0 || k.First != exec(k, "app") {
			t.Errorf("first %d of %q", k.First, told(k))
		}
	})
	for name, c := range map[string]struct {
		late int64
		want bool
	}{"of a detached one a moment after its return": {Late, true}, "but not later": {Late + 1, false}} {
		t.Run(name, func(t *testing.T) {
			s := &script{now: 1e9}
			s.run(7, 50, "runc run -d c1")
			s.run(50, 51, "runc init")
			s.exit(50)
			ended := s.now
			s.now += c.late - 1e6
			s.exec(51, "/app")
			k := Gather(s.events, Asked{Began: 1e9, Ended: ended, Client: 50})
			sound(t, k)
			if (k.First != 0) != c.want || (exec(k, "app") != 0) != c.want {
				t.Errorf("first %d, ended %d: %q", k.First, ended, told(k))
			}
		})
	}
}

func TestASentryIsNoWorkload(t *testing.T) {
	for name, runtime := range map[string]string{"by runsc itself": "/usr/bin/runsc", "by a wrapper of it": "/bin/sh /x/slow-runc"} {
		t.Run(name, func(t *testing.T) {
			s := &script{now: 1e9}
			s.run(7, 50, runtime+" --root=/r run --bundle /b c1")
			s.run(50, 51, "runsc-gofer --root=/r gofer --bundle=/b")
			s.fork(50, 52)
			s.now += 9e6 // the slowest child
			s.exec(52, "runsc-sandbox --root=/r boot --bundle=/b c1")
			s.exec(52, "/proc/self/exe --root=/r boot --bundle=/b c1")
			s.exit(52, 51, 50)
			k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
			kinds := map[string]string{}
			for _, p := range k.Processes {
				kinds[p.Name] = p.Kind
			}
			if k.First != 0 || kinds["runsc-sandbox"] != record.KindVMM || kinds["runsc-gofer"] != record.KindVirtiofsd {
				t.Errorf("first %d of %q", k.First, told(k))
			}
		})
	}
	t.Run("nor is what else runsc or Kata's runtime executes", func(t *testing.T) {
		for _, runtime := range []string{"runsc", "kata-runtime"} {
			s := &script{now: 1e9}
			s.run(7, 50, runtime+" run --bundle /b c1")
			s.run(50, 51, "/usr/bin/qemu-system-x86_64 -name x")
			s.exit(50)
			k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
			if k.First != 0 || len(k.Processes) != 2 || k.Processes[1].Kind != record.KindVMM {
				t.Errorf("%s: first %d of %q", runtime, k.First, told(k))
			}
		}
	})
	t.Run("but a VMM in a container is", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(7, 50, "runc run c1")
		s.run(50, 51, "runc init")
		s.exec(51, "/usr/bin/qemu-system-x86_64 -name x")
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
		if last := k.Processes[len(k.Processes)-1]; k.First == 0 || last.Kind != record.KindWorkload {
			t.Errorf("first %d of %q", k.First, told(k))
		}
	})
}

func TestACallWhoseArgumentsWereGoneIsStillACall(t *testing.T) {
	s := &script{now: 1e9}
	gone := func(pid int, file, comm string) {
		s.tell(tracer.Event{Kind: tracer.Exec, Pid: pid, File: file, Comm: comm, Cut: true, CPU: -1})
	}
	s.run(7, 50, "docker run x")
	s.run(101, 60, "containerd-shim-runc-v2 -id "+idA)
	s.run(60, 61, "runc --root /r create --bundle /b "+idA)
	s.run(61, 62, "runc init")
	s.exit(61)
	s.fork(60, 63)
	gone(63, "/usr/sbin/runc", "runc") // as tracefs has it
	s.fork(63, 64)
	gone(64, "/usr/sbin/runc", "runc") // within a call
	s.exit(64)
	s.exec(62, "/app")
	s.exit(63)
	s.fork(60, 65)
	gone(65, "", "crun") // as the connector has it, of somebody who is not waited for yet
	s.exit(65)
	s.fork(60, 66)
	gone(66, "/bin/true", "true")
	s.exit(66)
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons})
	var calls []string
	for _, p := range k.Processes {
		if p.Kind == record.KindCall {
			calls = append(calls, p.Name+"|"+p.Verb+"|"+p.Container)
		}
	}
	want := []string{"runc create|create|" + idA, "runc||" + idA, "crun||" + idA}
	if !slices.Equal(calls, want) {
		t.Errorf("%q of\n%s", calls, strings.Join(told(k), "\n"))
	}
}

func TestOwnTimeIsThatOfTheStartsProcesses(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "sh -c x") // 0.3 ms until its exec
	s.run(50, 51, "sleep 1")
	docker(s, 200, idA, "top") // somebody else's
	s.exit(51)                 // 0.5 ms
	s.exit(50)
	ended := s.now + 1e6
	k := Gather(s.events, Asked{Began: 1e9, Ended: ended, Client: 50, Roots: daemons})
	if n := len(k.Own); n < 2 || k.Own[0] != (record.BusyAt{At: 1e9}) || k.Own[n-1] != (record.BusyAt{At: ended, CPU: 1e6}) {
		t.Errorf("%+v", k.Own)
	}
	survived := slices.DeleteFunc(slices.Clone(s.events), func(e tracer.Event) bool { return e.Kind == tracer.Exit && e.Pid == 51 })
	if k := Gather(survived, Asked{Began: 1e9, Ended: ended, Client: 50, Roots: daemons}); k.Own != nil {
		t.Errorf("what a child uses that lives on is not known, and not 0: %+v", k.Own)
	}
	for i := range s.events {
		s.events[i].CPU = -1
	}
	if k := Gather(s.events, Asked{Began: 1e9, Ended: ended, Client: 50}); k.Own != nil {
		t.Errorf("%+v from nowhere", k.Own)
	}
}

// session is what a shim that is there already does for docker exec.
func session(s *script, base int, id string) {
	s.run(102, base, "runc --root /r --log /l --log-format json exec --process /tmp/p --detach --pid-file /p "+id)
	s.run(base, base+1, "runc init")
	s.exec(base+1, "true")
	s.exit(base, base+1)
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

func TestACallForAContainerThatIsThereIsFoundByItsID(t *testing.T) {
	roots := append(slices.Clone(daemons), Root{Pid: 102, Kind: record.KindShim, Name: "containerd-shim-runc-v2"})
	for line, want := range map[string]bool{
		"docker exec " + idA + " true": true, "docker exec " + idA[:12] + " true": true, "docker exec " + idA[:4] + " true": true,
		"sh -c docker": false, "sleep " + idA[:4]: false, "docker exec " + idB + " true": false, "docker exec 0ab0 true": false, "docker ps": false,
	} {
		for claim, roots := range map[string][]Root{"below a shim that is known": roots, "below one that is not": daemons} {
			t.Run(line+" "+claim, func(t *testing.T) {
				s := &script{now: 1e9}
				s.run(7, 50, line)
				session(s, 60, idA)
				session(s, 70, strings.Repeat("f0", 32)) // somebody's health check
				s.exit(50)
				k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: roots})
				sound(t, k)
				calls, shims := 0, 0
				for _, p := range k.Processes {
					if p.Kind == record.KindCall && p.Verb == "exec" && p.Container == idA {
						calls++
					} else if p.Kind == record.KindCall {
						t.Errorf("%+v is somebody else's", p)
					}
					if p.Kind == record.KindShim {
						shims++
					}
				}
				if calls == 1 != want || (shims == 1) != (want && len(roots) == 3) {
					t.Errorf("%d calls, %d shims: %q", calls, shims, told(k))
				}
			})
		}
	}
}

func TestTheBeginningOfTwoIDsIsNobodys(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "docker exec 0abf true")
	session(s, 60, idA)
	session(s, 70, idA[:60]+"0000")
	s.exit(50)
	if k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons}); len(k.Containers) != 0 {
		t.Errorf("%v", k.Containers)
	}
}

func TestACallForAContainerThatIsThereIsFoundByWhatItDoes(t *testing.T) {
	other := strings.Repeat("f0", 32)
	for name, c := range map[string]struct {
		client    string
		ids       []string // what sessions are begun in
		want      []string
		ambiguous bool
	}{
		"the only one":          {"docker exec web true", []string{idA}, []string{idA}, false},
		"twice the same":        {"docker container exec -it web true", []string{idA, idA}, []string{idA}, false},
		"one of two":            {"docker exec web true", []string{idA, other}, nil, true},
		"the one that is named": {"docker exec " + idA[:12] + " true", []string{other, idA}, []string{idA}, false},
		"of another verb":       {"docker stop web", []string{idA}, nil, false},
		"of no client":          {"sleep 1", []string{idA}, nil, false},
		"of one that only asks": {"docker inspect web", []string{idA}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &script{now: 1e9}
			session(s, 90, idB) // before anybody asked
			s.run(7, 50, c.client)
			for i, id := range c.ids {
				session(s, 60+10*i, id)
			}
			s.exit(50)
			session(s, 190, idB) // and after
			k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons})
			sound(t, k)
			said := slices.ContainsFunc(k.Missing, func(m record.Missing) bool { return m.What == "ambiguous" && m.Count == int64(len(c.ids)) })
			if !slices.Equal(k.Containers, c.want) || said != c.ambiguous {
				t.Errorf("%v, want %v; missing %v", k.Containers, c.want, k.Missing)
			}
		})
	}
}

// A shim that was there before stands beside its own container: what it starts
// without an id is that container's.
func TestWhatAnOldShimStartsIsItsOwnContainers(t *testing.T) {
	for kind, want := range map[string]int{record.KindShim: 0, record.KindMonitor: 0, record.KindDaemon: 1} {
		s := &script{now: 1e9}
		s.run(7, 50, "docker run x")
		s.run(700, 91, "reaper")
		s.exit(91)
		docker(s, 200, idA, "top")
		roots := append(slices.Clone(daemons), Root{Pid: 700, Kind: kind, Name: "old"})
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: roots})
		got := 0
		for _, p := range k.Processes {
			if p.Name == "reaper" {
				got++
			}
		}
		if got != want {
			t.Errorf("%s: %d of them, not %d: %q", kind, got, want, told(k))
		}
	}
}
