package proctree

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/tracer"
)

func TestTheTextOfAProgramIsNeverItsName(t *testing.T) {
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

func TestAProcessesOwnTitleIsNotItsName(t *testing.T) {
	c := read(&tracer.Event{File: "/usr/bin/sleep", Args: []string{"login as hunter2", "1"}, Comm: "sleep"})
	if c.base != "sleep" {
		t.Errorf("it is called %q", c.base)
	}
	c = read(&tracer.Event{Args: []string{"sshd: hunter2@pts/0"}, Comm: "sshd"})
	if c.base != "sshd" {
		t.Errorf("it is called %q", c.base)
	}
}
