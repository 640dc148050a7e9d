package proctree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

// script is a machine on which one thing happens every millisecond.
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
	s.tell(tracer.Event{Kind: tracer.Exec, Pid: pid, File: file, Args: []string{file}, CNI: tracer.CNI{Command: "ADD", Container: id, Interface: "eth0"}})
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

// told is a process of a start as one line: "runc create c1 < containerd-shim-runc-v2".
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

func expect(t *testing.T, k Start, want ...string) {
	t.Helper()
	if got := told(k); !slices.Equal(got, want) {
		t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
	sound(t, k)
}

// sound checks what is true of all starts.
func sound(t *testing.T, k Start) {
	t.Helper()
	pids := map[int]bool{0: true}
	for _, p := range k.Processes {
		pids[p.Pid] = true
	}
	for i, p := range k.Processes {
		if p.Ended != 0 && p.Ended < p.Born || p.Exec != 0 && (p.Exec < p.Born || p.Ended != 0 && p.Exec > p.Ended) || p.Born < 0 {
			t.Errorf("%+v does not live forward", p)
		}
		if !pids[p.Parent] {
			t.Errorf("%+v has a parent that is not there", p)
		}
		if i > 0 && p.Born < k.Processes[i-1].Born {
			t.Errorf("%+v is not in order", p)
		}
		if len(p.Name) > 140 || len(p.Container) > 256 || p.Kind == "" || p.CPU < -1 {
			t.Errorf("%+v is not bounded", p)
		}
	}
	for i := 1; i < len(k.Busy); i++ {
		if k.Busy[i].At <= k.Busy[i-1].At || k.Busy[i].CPU < k.Busy[i-1].CPU {
			t.Errorf("CPU time goes from %+v to %+v", k.Busy[i-1], k.Busy[i])
		}
	}
	if len(k.Processes) > Most {
		t.Errorf("%d processes", len(k.Processes))
	}
}

const (
	idA = "0abf1b20d64918a50c92936d911dcfb356a0860632ae7c161a8e85bb6d1ab89b"
	idB = "d1e992ba3948e178ba624cee388aebdf7396503696b4a6d66cfed403e2715018"
)

var daemons = []Root{{Pid: 100, Kind: record.KindDaemon, Name: "dockerd"}, {Pid: 101, Kind: record.KindDaemon, Name: "containerd"}}

// docker is what dockerd and containerd do for one container; pids from base.
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

func dockerLines(id, workload string) []string {
	return []string{
		"helper shim start of " + id + " < containerd",
		"shim containerd-shim-runc-v2 of " + id + " < shim start",
		"call runc create of " + id + " < containerd-shim-runc-v2",
		"init runc init of " + id + " < runc create",
		"init runc init of " + id + " < runc init",
		"init runc init of " + id + " < runc init",
		"helper newuidmap of " + id + " < runc init",
		"helper docker-proxy < dockerd",
		"call runc start of " + id + " < containerd-shim-runc-v2",
		"workload " + workload + " of " + id,
	}
}

func TestAStartByDockerIsFollowedThroughItsDaemons(t *testing.T) {
	s := &script{now: 1e9}
	began := s.now
	s.run(7, 50, "docker run -d busybox top")
	docker(s, 200, idA, "top")
	s.exit(50)
	// Somebody else's container is asked how it is.
	s.run(101, 900, "runc --root /run exec --process /tmp/p.json "+idB)
	s.exit(900)
	k := Gather(s.events, Asked{Began: began, Ended: s.now, Client: 50, Roots: daemons})
	expect(t, k, append([]string{"daemon dockerd", "daemon containerd", "client docker"}, dockerLines(idA, "top")...)...)
	if !slices.Equal(k.Containers, []string{idA}) || k.Sandbox != idA || len(k.Missing) != 0 {
		t.Errorf("%v in %s, missing %v", k.Containers, k.Sandbox, k.Missing)
	}
	last := k.Processes[len(k.Processes)-1]
	if last.Kind != record.KindWorkload || k.First != last.Exec || k.First == 0 || last.Ended != 0 || last.Exit != nil {
		t.Errorf("the workload begins at %d, but %+v", k.First, last)
	}
	create := k.Processes[5]
	if create.Verb != "create" || create.Program != "runc" || create.CPU != 5e5 || create.Exit == nil || *create.Exit != 0 || create.Exec <= create.Born {
		t.Errorf("%+v", create)
	}
	if k.Events != int64(len(s.events))-3 || len(k.Busy) < len(s.events)-3 {
		t.Errorf("%d of %d events, %d times of CPU", k.Events, len(s.events), len(k.Busy))
	}
}

// interleave merges what two daemons' children do, in turns.
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

func TestTwoStartsByOneDaemonAreToldApart(t *testing.T) {
	a, b := &script{}, &script{}
	a.run(7, 50, "docker run --name one -d busybox top")
	docker(a, 200, idA, "top")
	a.exit(50)
	b.run(7, 60, "docker run --name two -d busybox sleep")
	docker(b, 300, idB, "sleep")
	b.exit(60)
	events := interleave(a, b)
	window := Asked{Began: 1e9, Ended: events[len(events)-1].Time, Roots: daemons}
	without := func(lines []string) []string { // who works for both cannot be told
		return slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "docker-proxy") })
	}
	t.Run("by the ids that are known", func(t *testing.T) {
		one := window
		one.Client, one.Containers = 50, []string{idA}
		k := Gather(events, one)
		expect(t, k, append([]string{"daemon containerd", "client docker"}, without(dockerLines(idA, "top"))...)...)
		two := window
		two.Containers = []string{idB}
		k = Gather(events, two)
		expect(t, k, append([]string{"daemon containerd"}, without(dockerLines(idB, "sleep"))...)...)
	})
	t.Run("or both are left out, and that is said", func(t *testing.T) {
		both := window
		both.Client = 50
		k := Gather(events, both)
		sound(t, k)
		expect(t, k, "client docker")
		if len(k.Missing) != 1 || k.Missing[0].What != "ambiguous" || k.Missing[0].Count != 2 || k.First != 0 ||
			!strings.Contains(k.Missing[0].Detail, "left out: 0abf1b20d649, d1e992ba3948; ") || !strings.Contains(k.Missing[0].Detail, "docker run -d") {
			t.Errorf("%+v, first %d", k.Missing, k.First)
		}
	})
	t.Run("or by what the client's arguments name", func(t *testing.T) {
		for i := range events {
			if events[i].Pid == 50 && events[i].Kind == tracer.Exec {
				events[i].Args = []string{"docker", "start", idA[:12]}
			}
		}
		by := window
		by.Client = 50
		k := Gather(events, by)
		if sound(t, k); len(k.Missing) != 0 || !slices.Equal(k.Containers, []string{idA}) {
			t.Errorf("%+v, %v", k.Missing, k.Containers)
		}
	})
}

func TestTheContainersOfOtherEnginesAreNobodysBusiness(t *testing.T) {
	a, b := &script{}, &script{}
	a.run(7, 50, "docker run -d busybox top")
	docker(a, 200, idA, "top")
	b.run(7, 60, "podman run busybox true")
	b.run(60, 61, "/usr/bin/conmon -c "+idB+" -u "+idB)
	b.run(61, 62, "/usr/bin/crun create --bundle /b "+idB)
	b.exit(62, 61, 60)
	events := interleave(a, b)
	k := Gather(events, Asked{Began: 1e9, Ended: events[len(events)-1].Time, Client: 50, Roots: daemons})
	expect(t, k, append([]string{"daemon dockerd", "daemon containerd", "client docker"}, dockerLines(idA, "top")...)...)
	if len(k.Missing) != 0 {
		t.Error(k.Missing)
	}
	// Whose daemons are not known has only the ids to go by.
	k = Gather(events, Asked{Began: 1e9, Ended: events[len(events)-1].Time, Client: 50})
	if len(k.Containers) != 0 || len(k.Missing) != 1 || k.Missing[0].What != "ambiguous" {
		t.Errorf("%v, missing %v", k.Containers, k.Missing)
	}
}

func TestAStartByPodmanIsFollowedThroughItsMonitor(t *testing.T) {
	s := &script{now: 1e9}
	began := s.now
	s.run(7, 50, "podman run --rm busybox true")
	s.run(50, 51, "/usr/bin/podman unshare")
	s.exit(51)
	s.cni(50, 52, "/opt/cni/bin/bridge", idA)
	s.cni(52, 53, "/opt/cni/bin/host-local", idA)
	s.exit(53)
	s.fork(52, 54)
	s.tell(tracer.Event{Kind: tracer.Exec, Pid: 54, File: "/usr/sbin/iptables", Args: []string{"/usr/sbin/iptables"}, CNI: tracer.CNI{Command: "ADD", Container: idA}})
	s.exit(54, 52)
	s.run(50, 55, "/usr/bin/conmon --api-version 1 -c "+idA+" -u "+idA+" -r /usr/bin/crun -b /b -n happy --exit-command /usr/bin/podman")
	s.fork(55, 56)
	s.exit(55)
	s.run(56, 57, "/usr/bin/crun --systemd-cgroup --root=/run/crun create --bundle /b --pid-file /p "+idA)
	s.run(57, 60, "/usr/libexec/hook prestart")
	s.exit(60)
	s.fork(57, 58)
	s.exit(57)
	s.run(50, 59, "/usr/bin/crun --root=/run/crun start "+idA)
	s.exec(58, "true")
	s.exit(59, 58)
	s.run(56, 61, "/usr/bin/podman container cleanup "+idA)
	s.run(61, 62, "/usr/bin/crun delete --force "+idA)
	s.exit(62, 61, 56, 50)
	k := Gather(s.events, Asked{Began: began, Ended: s.now, Client: 50})
	of := " of " + idA
	expect(t, k, "client podman", "client podman < podman",
		"cni bridge"+of+" < podman", "cni host-local"+of+" < bridge", "helper iptables"+of+" < bridge",
		"monitor conmon"+of+" < podman", "monitor conmon"+of+" < conmon", "call crun create"+of+" < conmon",
		"other hook"+of+" < crun create", "init crun init"+of+" < crun create",
		"call crun start"+of+" < podman", "workload true"+of,
		"other podman"+of+" < conmon", "call crun delete"+of+" < podman")
	if k.First == 0 || k.Processes[2].Verb != "ADD" {
		t.Errorf("first %d, %+v", k.First, k.Processes[2])
	}
}

func TestAPodOfCRIIsOneStartWithTwoContainers(t *testing.T) {
	s := &script{now: 1e9}
	began := s.now
	root := []Root{{Pid: 101, Kind: record.KindDaemon, Name: "containerd"}}
	s.cni(101, 52, "/opt/cni/bin/bridge", "sb")
	s.exit(52)
	shim := "/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id sb"
	s.run(101, 53, shim+" start")
	s.run(53, 54, shim)
	s.exit(53)
	for i, id := range []string{"sb", "c1"} {
		p := 60 + i*10
		s.run(54, p, "runc --root /r create --bundle /b/"+id+" "+id)
		s.run(p, p+1, "runc init")
		s.fork(p+1, p+2)
		s.exit(p+1, p)
		s.run(54, p+3, "runc --root /r start "+id)
		s.exec(p+2, []string{"/pause", "/bin/top"}[i])
		s.exit(p + 3)
	}
	for name, ids := range map[string][]string{"with ids": {"sb", "c1"}, "with the pod's": {"sb"}, "with the container's": {"c1"}, "without": nil} {
		t.Run(name, func(t *testing.T) {
			k := Gather(s.events, Asked{Began: began, Ended: s.now, Roots: root, Containers: ids})
			sound(t, k)
			if !slices.Equal(k.Containers, []string{"sb", "c1"}) || k.Sandbox != "sb" || len(k.Missing) != 0 || len(k.Processes) != 14 {
				t.Errorf("%v in %q, missing %v, %q", k.Containers, k.Sandbox, k.Missing, told(k))
			}
			var top int64
			for _, p := range k.Processes {
				if p.Name == "top" {
					top = p.Exec
				}
			}
			if k.First != top || top == 0 {
				t.Errorf("the workload begins at %d, not at %d", k.First, top)
			}
		})
	}
}

func TestARuntimeAloneIsACall(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "/usr/sbin/runc --root /r run --bundle /b c1")
	s.run(50, 51, "/proc/self/exe init")
	s.exec(51, "/proc/self/exe init") // a copy of itself, against being overwritten
	s.fork(51, 52)
	s.fork(52, 53)
	s.exit(51, 52)
	s.exec(53, "/bin/sh -c true")
	s.exec(53, "/bin/true")
	s.exit(53, 50)
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	expect(t, k, "call runc run of c1", "init runc init of c1 < runc run", "init runc init of c1 < runc init", "init runc init of c1 < runc init",
		"workload sh of c1", "workload true of c1")
	if k.First != k.Processes[4].Exec || k.Processes[4].Ended != k.Processes[5].Born || k.Processes[4].Exit != nil {
		t.Errorf("first %d of %+v", k.First, k.Processes)
	}
}

func TestCrunAloneIsACallWhoseSlowestChildIsTheWorkload(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "crun run c1")
	s.fork(50, 51)
	s.run(50, 52, "/usr/bin/hook")
	s.exit(52)
	s.exec(51, "/bin/true")
	s.exit(51, 50)
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	expect(t, k, "call crun run of c1", "init crun init of c1 < crun run", "other hook of c1 < crun run", "workload true of c1 < crun run")
}

func TestGVisorIsASandboxAndAFileServer(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "runsc --root=/r --network=none create --bundle /b c1")
	s.run(50, 51, "runsc-gofer --root=/r gofer --bundle=/b")
	s.run(50, 52, "runsc-sandbox --root=/r boot --bundle=/b c1")
	s.exec(52, "/proc/self/exe --root=/r boot --bundle=/b c1")
	s.fork(52, 53)
	s.exit(50)
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	expect(t, k, "call runsc create of c1", "virtiofsd runsc-gofer of c1 < runsc create", "vmm runsc-sandbox of c1 < runsc create", "vmm runsc-sandbox of c1 < runsc-sandbox")
}

func TestKataIsAShimWithAVMM(t *testing.T) {
	s := &script{now: 1e9}
	s.run(101, 50, "/opt/kata/bin/containerd-shim-kata-v2 -namespace default -address /c.sock -publish-binary containerd -id kk start")
	s.run(50, 51, "/opt/kata/bin/containerd-shim-kata-v2 -namespace default -address /c.sock -publish-binary containerd -id kk")
	s.run(51, 52, "/usr/libexec/ld.so /opt/virtiofsd --syslog --fd=3")
	s.run(51, 53, "/usr/bin/qemu-system-x86_64 -name sandbox-kk")
	s.exit(50)
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Roots: daemons, Containers: []string{"kk"}})
	expect(t, k, "daemon containerd", "helper shim start of kk < containerd", "shim containerd-shim-kata-v2 of kk < shim start",
		"virtiofsd virtiofsd of kk < containerd-shim-kata-v2", "vmm qemu-system-x86_64 of kk < containerd-shim-kata-v2")
}

// A runtime that was put in place of the real one is to blame for what it does.
func TestAWrapperIsTheCall(t *testing.T) {
	line := "/tmp/x/fake-runc --root /r create --bundle /b c1"
	t.Run("that gives its process to the runtime", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(7, 50, "/bin/sh "+line)
		s.run(50, 51, "sleep 1")
		s.exit(51)
		s.exec(50, "/usr/sbin/runc --root /r create --bundle /b c1")
		s.run(50, 52, "runc init")
		s.exit(52, 50)
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
		expect(t, k, "call fake-runc create of c1", "other sleep of c1 < fake-runc create", "init runc init of c1 < fake-runc create")
		if k.Processes[0].Exit == nil || k.Processes[0].CPU != 5e5 {
			t.Errorf("%+v", k.Processes[0])
		}
	})
	t.Run("that waits for it", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(7, 50, "/bin/sh "+line)
		s.run(50, 51, "/usr/bin/crun --root /r create --bundle /b c1")
		s.fork(51, 52)
		s.exit(51, 50)
		s.exec(52, "top")
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
		expect(t, k, "call fake-runc create of c1", "helper crun create of c1 < fake-runc create", "init crun init of c1 < crun create", "workload top of c1")
	})
}

func TestWhatWasNotToldIsSaid(t *testing.T) {
	t.Run("of forks", func(t *testing.T) {
		s := &script{now: 1e9}
		s.tell(tracer.Event{Kind: tracer.Exec, Pid: 50, Parent: 101, File: "runc", Args: strings.Fields("runc --root /r create --bundle /b c1"), CPU: -1})
		s.exit(50, 51)
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Roots: daemons})
		expect(t, k, "daemon containerd", "call runc create of c1 < containerd")
		if len(k.Missing) != 1 || k.Missing[0].What != "unborn" || k.Processes[1].CPU != -1 {
			t.Errorf("%+v %+v", k.Missing, k.Processes)
		}
	})
	t.Run("of exits, when the pid is somebody else's", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(101, 50, "runc --root /r create --bundle /b c1")
		s.run(101, 50, "runc --root /r start c1")
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Roots: daemons})
		expect(t, k, "daemon containerd", "call runc create of c1 < containerd", "call runc start of c1 < containerd")
		if p := k.Processes[1]; p.Ended != k.Processes[2].Born || p.Exit != nil {
			t.Errorf("%+v", p)
		}
	})
	t.Run("of the client", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(50, 51, "/usr/bin/crun --root /r create --bundle /b c1")
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
		expect(t, k, "client client", "call crun create of c1 < client")
	})
	t.Run("beyond the bound", func(t *testing.T) {
		s := &script{now: 1e9}
		s.run(7, 50, "bomb")
		for i := range 2 * Most {
			s.fork(50+i, 51+i)
		}
		k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
		if sound(t, k); len(k.Processes) != Most || len(k.Missing) != 1 || k.Missing[0].What != "too many" || k.Missing[0].Count != Most+1 {
			t.Errorf("%d processes, missing %v", len(k.Processes), k.Missing)
		}
	})
	t.Run("of anything", func(t *testing.T) {
		if k := Gather(nil, Asked{Began: 5, Ended: 6, Roots: daemons}); len(k.Processes) != 0 || k.First != 0 || k.Sandbox != "" {
			t.Errorf("%+v", k)
		}
	})
}

func TestTheOrderOfEventsDoesNotMatter(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "docker run -d busybox top")
	docker(s, 200, idA, "top")
	a := Asked{Began: 1e9, Ended: s.now, Client: 50, Roots: daemons}
	want := fmt.Sprintf("%+v", told(Gather(s.events, a)))
	slices.Reverse(s.events)
	if got := fmt.Sprintf("%+v", told(Gather(s.events, a))); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Where arguments are read after the fact, a short-lived process has none left.
func TestAnInitWhoseArgumentsWereGoneIsNoWorkload(t *testing.T) {
	var s script
	gone := func(pid int, file string) {
		s.tell(tracer.Event{Kind: tracer.Exec, Pid: pid, File: file, Comm: "exe", Cut: true})
	}
	s.fork(10, 50)
	s.exec(50, "/usr/sbin/runc run --detach --bundle /b c1")
	s.fork(50, 51)
	gone(51, "/proc/self/exe")
	s.fork(51, 52)
	s.exit(51)
	s.fork(50, 53)
	gone(53, "/proc/100/exe") // a hook of docker's
	s.exit(53)
	s.exec(52, "/app")
	s.exit(50)
	k := Gather(s.events, Asked{Began: 0, Ended: s.now, Client: 50})
	expect(t, k, "call runc run of c1", "init runc init of c1 < runc run", "init runc init of c1 < runc init", "other runc of c1 < runc run", "workload app of c1")
	if len(k.Missing) != 1 || k.Missing[0].What != "unreadable" || k.Missing[0].Count != 2 || !strings.HasSuffix(k.Missing[0].Detail, "runc init") {
		t.Errorf("%+v", k.Missing)
	}
}
