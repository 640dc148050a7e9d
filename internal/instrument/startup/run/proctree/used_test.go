package proctree

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const id1 = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// The processes are docker run, the containerd and dockerd that serve it, and a daemon
// and a shim of other engines. All of them work at the same time.
func TestOnlyProcessesOfTheStartCount(t *testing.T) {
	roots := []Root{
		{Pid: 1, Kind: record.KindDaemon, Name: "containerd"}, {Pid: 2, Kind: record.KindDaemon, Name: "dockerd"},
		{Pid: 3, Kind: record.KindDaemon, Name: "crio"}, {Pid: 4, Kind: record.KindShim, Name: "containerd-shim-runc-v2"},
	}
	const ms = int64(1e6)
	for name, c := range map[string]struct {
		more []Root
		used map[int]int64 // increase since the beginning; total for new processes
		want int64
	}{
		// The client and the start command of the shim used 0.5 ms each before they
		// exited.
		"engines that served the start":   {nil, map[int]int64{1: 20 * ms, 2: 10 * ms, 3: 500 * ms, 4: 900 * ms, 12: 7 * ms}, 38 * ms},
		"two possible daemons: neither":   {[]Root{{Pid: 5, Kind: record.KindDaemon, Name: "dockerd"}}, map[int]int64{1: 20 * ms, 2: 10 * ms, 3: 500 * ms, 4: 900 * ms, 5: 3 * ms, 12: 7 * ms}, 28 * ms},
		"unknown CPU time of one process": {nil, map[int]int64{1: 20 * ms, 2: 10 * ms, 3: 500 * ms, 4: 900 * ms}, -1},
	} {
		s := &script{}
		s.run(9, 10, "/usr/bin/docker run web")
		s.run(1, 11, "/bin/containerd-shim-runc-v2 -id "+id1+" start")
		s.run(11, 12, "/bin/containerd-shim-runc-v2 -id "+id1)
		s.exit(11, 10)
		a := Asked{Ended: s.now + ms, Client: 10, Roots: append(c.more, roots...)}
		first, last := map[int]int64{}, map[int]int64{}
		for pid, used := range c.used {
			if pid < 10 {
				first[pid], last[pid] = 3600e9, 3600e9
			}
			last[pid] += used
		}
		a.Used = []Used{{At: 0, CPU: first}, {At: s.now, CPU: last}}
		k := Gather(s.events, a)
		got := int64(-1)
		if n := len(k.Own); n > 0 {
			got = k.Own[n-1].CPU - k.Own[0].CPU
		}
		// From fork to exec the shim used 0.3 ms, reported by its exec event.
		if got >= 0 {
			got = got / ms * ms
		}
		check.That(t, got == c.want, "%s: %d ns, want %d: %+v", name, got, c.want, k.Own)
	}
}

// Kata's configuration may use a script, or a program of any name, as QEMU.
func TestVMMIsDetectedUnderAnyName(t *testing.T) {
	s := &script{}
	s.run(1, 11, "/bin/containerd-shim-kata-v2 -id "+id1)
	s.fork(11, 12)
	s.exec(12, "/bin/sh /opt/kata/qemu-wrapper -name sandbox-"+id1)
	s.exec(12, "/opt/kata/hypervisor -name sandbox-"+id1)
	s.run(11, 13, "/opt/kata/vhost-thing --vm")
	a := Asked{Ended: s.now + 1e6, Roots: []Root{{Pid: 1, Kind: record.KindDaemon, Name: "containerd"}}, Containers: []string{id1}, Guests: []int{11, 12}}
	a.Used = []Used{{At: 3e6, CPU: map[int]int64{12: 3e5}}, {At: 4e6, CPU: map[int]int64{12: 3e5}}, {At: 5e6, CPU: map[int]int64{12: 3e5}}, {At: 6e6, CPU: map[int]int64{12: 2e6}}}
	kinds := map[string]string{}
	for _, p := range Gather(s.events, a).Processes {
		kinds[p.Name] = p.Kind
		if p.Kind == record.KindVMM && (p.CPU != 17e5 || len(p.Used) == 0 || p.Ended != 0) {
			t.Errorf("%+v", p)
		}
	}
	for name, want := range map[string]string{"hypervisor": record.KindVMM, "containerd-shim-kata-v2": record.KindShim, "vhost-thing": record.KindOther} {
		check.That(t, kinds[name] == want, "%s: got %q of %v", name, kinds[name], kinds)
	}
}

// The results are kinds, names and ids.
func TestParseCommandLines(t *testing.T) {
	golden.Cases(t, "testdata/commands.txt", func(t *testing.T, lines string) string {
		var out []string
		for line := range strings.SplitSeq(ids.Replace(lines), "\n") {
			s := &script{now: 1e9}
			s.run(1, 3, "containerd-shim-runc-v2 -id c1")
			s.run(1, 2, line)
			k := Gather(s.events, Asked{
				Began: 1e9, Ended: s.now, Roots: []Root{{Pid: 1, Kind: record.KindOther, Name: "somebody"}},
				Containers: []string{"c1", "c.1_+", "kk", idA},
			})
			if len(k.Processes) != 3 {
				t.Fatalf("%+v", k.Processes)
			}
			p := k.Processes[2]
			out = append(out, p.Kind+" "+p.Name+" "+p.Container)
		}
		return names.Replace(strings.Join(out, "\n"))
	})
}

// Arguments may contain secrets: only ids are kept.
func TestArgumentsAreNotKept(t *testing.T) {
	s := &script{now: 1e9}
	s.run(7, 50, "docker run -e PASSWORD=hunter2 busybox")
	s.run(50, 51, "sh -c hunter2")
	s.run(50, 52, "runc exec -e hunter2 c1 hunter2")
	k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
	if text := strings.Join(told(k), "\n"); strings.Contains(text, "hunter2") || len(k.Processes) != 3 {
		t.Error(text)
	}
	for _, p := range k.Processes {
		if strings.Contains(p.Program+p.Verb+p.Name+p.Container, "hunter2") {
			t.Errorf("%+v", p)
		}
	}
}

func TestNamesAreCleanAndShort(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b[2Jrm\n": "[2Jrm", strings.Repeat("é", 500): strings.Repeat("é", 32), "a\xffb": "ab", "\u202eevil": "evil", " \t": "",
	} {
		check.Equal(t, in, clean(in), want)
	}
}

func TestInlineProgramTextIsNotAName(t *testing.T) {
	const text = "PASSWORD=hunter2 sleep 0.02; sleep hunter2"
	for _, args := range [][]string{
		{"bash", "-ec", text}, {"sh", "-lc", text}, {"sh", "-xec", "hunter2"}, {"/bin/sh", "-c", "--", "hunter2"}, {"bash", "-o", "pipefail", "-c", text},
		{"bash", "-eo", "pipefail", "-c", "hunter2"}, {"bash", "-O", "extglob", "+o", "posix", "-c", "hunter2"}, {"bash", "-s", "hunter2"},
		{"bash", "--noprofile", "--norc", "-c", "hunter2"}, {"bash", "--unknown", "hunter2"}, {"zsh", "-oerrexit", "/x", "hunter2"},
		{"python3", "-Ic", "hunter2"}, {"python3", "-W", "ignore", "-c", text}, {"python3.12", "-m", "hunter2"}, {"python3", "-", "hunter2"},
		{"perl", "-ne", "hunter2"}, {"perl", "-0777ne", "hunter2"}, {"perl", "-E", "hunter2"}, {"perl", "-I", "/lib", "-lane", "hunter2"},
		{"ruby", "-rjson", "-e", "hunter2"}, {"ruby", "-r", "json", "-ne", "hunter2"},
		{"node", "--eval", "hunter2"}, {"node", "-p", "hunter2"}, {"node", "-pe", "hunter2"}, {"node", "--print", "hunter2"}, {"nodejs", "-e", "hunter2"},
		{"node", "--title", "hunter2"}, {"env", "-S", text}, {"env", "-i", "bash", "-ec", text}, {"env", "--split-string", "hunter2"},
		{"busybox", "sh", "-c", "hunter2"}, {"busybox", "ash", "-ec", text}, {"/lib64/ld-linux-x86-64.so.2", "/bin/sh", "-c", "hunter2"},
		{"/lib64/ld-linux-x86-64.so.2", text}, {"sh", text}, {"sh", "A=hunter2"}, {"env", "A=hunter2", "B=hunter2"}, {"sh", "-e", text},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			s := &script{now: 1e9}
			s.fork(7, 50)
			s.tell(tracer.Event{Kind: tracer.Exec, Pid: 50, File: args[0], Args: args, Comm: comm(args[0])})
			k := Gather(s.events, Asked{Began: 1e9, Ended: s.now, Client: 50})
			if len(k.Processes) != 1 {
				t.Fatalf("%+v", k.Processes)
			}
			p := k.Processes[0]
			if all := p.Name + p.Program + p.Verb + p.Container; strings.Contains(all, "hunter2") || strings.Contains(all, "PASSWORD") || strings.Contains(all, "pipefail") || p.Name == "" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestProcessTitleIsNotItsName(t *testing.T) {
	c := read(&tracer.Event{File: "/usr/bin/sleep", Args: []string{"login as hunter2", "1"}, Comm: "sleep"})
	check.Equal(t, "name", c.base, "sleep")
	c = read(&tracer.Event{Args: []string{"sshd: hunter2@pts/0"}, Comm: "sshd"})
	check.Equal(t, "name", c.base, "sshd")
}

// lines are the command lines of processes in the fuzzed machine.
var lines = [][]string{
	{"docker", "run", "busybox"}, {"runc", "--root", "/r", "create", "--bundle", "/b", "c1"}, {"runc", "init"}, {"runc", "start", "c1"},
	{"/usr/bin/crun", "run", "c2"}, {"containerd-shim-runc-v2", "-id", "c1", "start"}, {"containerd-shim-runc-v2", "-id", "c1"},
	{"conmon", "-c", "c2", "-n", "x"}, {"sleep", "1"}, {"/opt/cni/bin/bridge"}, {"/proc/self/exe", "init"}, {"/bin/sh", "/x/fake-runc", "create", "c1"},
	{}, {""}, {"sh", "-c"}, {"ld.so"}, {"env"}, {"runc", "--log"}, {"newuidmap"},
}

// machine converts bytes to events, five bytes per event.
func machine(data []byte) []tracer.Event {
	var events []tracer.Event
	at := int64(0)
	for ; len(data) >= 5; data = data[5:] {
		at += int64(int8(data[0])) // the clock may step back
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

// spent returns the CPU time of this process; wall-clock time includes other processes.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var at unix.Timespec
	must.OK(t, unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &at))
	return time.Duration(at.Nano())
}

// The time grows linearly with the number of processes, for any nesting and names.
func TestHostileTreesAreProcessedInLinearTime(t *testing.T) {
	const many = 6_000
	for name, each := range map[string]func(s *script, i int){
		"chain of forks":          func(s *script, i int) { s.fork(50+i, 51+i) },
		"chain of runtimes":       func(s *script, i int) { s.run(50+i, 51+i, "runc run c"+string(rune('a'+i%26))) },
		"children of a runtime":   func(s *script, i int) { s.run(50, 51+i, "hook") },
		"programs in one process": func(s *script, _ int) { s.exec(50, "runc create c1"); s.exec(50, "true") },
		"nested calls": func(s *script, i int) {
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
		"clients and their calls": func(s *script, i int) {
			s.run(50, 51+i, "docker exec web true")
			s.run(9, 51+many+i, "runc exec c"+strconv.Itoa(i))
		},
		"chain of starts":                  func(s *script, i int) { s.run(50+i, 51+i, "runc start c1") },
		"inits that re-execute themselves": func(s *script, i int) { s.run(50+i, 51+i, "runc init") },
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
				t.Errorf("CPU time of %v for %d events", took, len(s.events))
			}
			sound(t, k)
		})
	}
}
