package proctree

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/tracer"
	"github.com/tare-bench/tare/record"
)

func TestACommandLineIsReadAsEnginesAndPeopleWriteIt(t *testing.T) {
	id := idA
	for line, want := range map[string]string{ // kind, name, id
		// What containerd's go-runc calls, for docker, for CRI and for ctr.
		"runc --root /var/run/docker/runtime-runc/moby --log /run/containerd/io.containerd.runtime.v2.task/moby/" + id + "/log.json --log-format json create --bundle /run/b --pid-file /run/b/init.pid " + id: "call runc create " + id,
		"runc --root /run/containerd/runc/k8s.io --log /l --log-format json --systemd-cgroup create --bundle /b --pid-file /p --console-socket /s c1":                                                          "call runc create c1",
		"runc --root /r --log /l --log-format json start c1":                                        "call runc start c1",
		"runc --root /r --log /l --log-format json kill --all c1 9":                                 "call runc kill c1",
		"runc --root /r --log /l --log-format json kill c1 SIGTERM":                                 "call runc kill c1",
		"runc --root /r --log /l --log-format json delete --force c1":                               "call runc delete c1",
		"runc --root /r --log /l --log-format json state c1":                                        "call runc state c1",
		"runc --root /r --log /l --log-format json exec --process /tmp/p --detach --pid-file /p c1": "call runc exec c1",
		"runc --root /r --log /l --log-format json update --resources - c1":                         "call runc update c1",
		"runc --root /r --log /l --log-format json ps --format json c1":                             "call runc ps c1",
		"runc --root /r --log /l --log-format json events --stats c1":                               "call runc events c1",
		"runc features": "call runc features ",
		// What conmon, podman and CRI-O call.
		"/usr/bin/crun --systemd-cgroup --root=/run/crun create --bundle /b --pid-file /p " + id: "call crun create " + id,
		"/usr/bin/crun --root=/run/crun --log-format=json --log=/l start " + id:                  "call crun start " + id,
		"/usr/bin/runc --root=/run/runc --systemd-cgroup create --bundle /b --pid-file /p c1":    "call runc create c1",
		"/usr/local/bin/youki --root /run/youki --log /l create --bundle /b --pid-file /p c1":    "call youki create c1",
		// What people type.
		"runc run c1":                          "call runc run c1",
		"runc --debug run -d -b /b c1":         "call runc run c1",
		"runc exec -t -e A=create c1 sh -c ls": "call runc exec c1",
		"crun --cgroup-manager=disabled run --detach --bundle . c.1_+":         "call crun run c.1_+",
		"runsc --platform=systrap --network=none --root /r run --bundle /b c1": "call runsc run c1",
		"runsc --rootless run c1": "call runsc run c1",
		"/usr/bin/kata-runtime --kata-config /c --root /r create --bundle /b c1": "call kata-runtime create c1",
		"/tmp/x/fake-runc start c1":                                        "call fake-runc start c1",
		"/opt/oci --root /r --log /l start c1":                             "call oci start c1",
		"/bin/sh /tmp/x/fake-runc --root /r state c1":                      "call fake-runc state c1",
		"/usr/bin/python3 -u /tmp/x/my-crun delete c1":                     "call my-crun delete c1",
		"/lib64/ld-linux-x86-64.so.2 --library-path /l /opt/runc start c1": "call runc start c1",
		"env -u FOO runc create --bundle /b c1":                            "call runc create c1",
		"runc update --cpuset-cpus 0 c1":                                   "call runc update c1",
		"runc update --memory-swap 1 --pids-limit 5 -r /f c1":              "call runc update c1",
		"crun run -f config.json c1":                                       "call crun run c1",
		"runc delete -f c1":                                                "call runc delete c1",
		"runc ps -f json c1 -ef":                                           "call runc ps c1",
		"runsc --root=/r exec -cwd / -user 0 c1 ls --bundle x":             "call runsc exec c1",
		"runc exec --pidfd-socket /s --cgroup x -c CAP_KILL c1 hunter2":    "call runc exec c1",
		"runc exec --to-come hunter2 c1 ls":                                "call runc exec ", // it may be the flag's
		// An id that can be none is none.
		"runc --root /r start ../../etc":         "call runc start ",
		"runc --root /r start \x1b[2J":           "call runc start ",
		"runc start " + strings.Repeat("a", 300): "call runc start ",
		"runc --root /r --log start":             "other runc ",
		"runc --version":                         "other runc ",
		// What has the same verbs and is none.
		"docker start c1":         "other docker ",
		"podman run --rm busybox": "other podman ",
		"systemctl start docker":  "other systemctl ",
		"git commit create":       "other git ",
		"truncate -s 1 create":    "other truncate ",
		"apt update":              "other apt ",
		"sh -c create":            "other sh ",

		"runc init":           "init runc init ",
		"/usr/sbin/runc init": "init runc init ",
		"bash init":           "other init ",
		"containerd-shim-runc-v2 -namespace moby -address /a -publish-binary /p -id c1 start":             "helper shim start c1",
		"containerd-shim-runc-v2 -namespace moby -address /a -publish-binary /p -id c1 -bundle /b delete": "helper shim delete c1",
		"/usr/bin/containerd-shim-runc-v2 -namespace k8s.io -id c1 -address /a":                           "shim containerd-shim-runc-v2 c1",
		"/usr/bin/containerd-shim-runc-v2 -info":                                                          "helper shim info ",
		"/opt/kata/bin/containerd-shim-kata-v2 -namespace default -address /c -publish-binary  -id kk":    "shim containerd-shim-kata-v2 kk",
		"isulad-shim c1 /run/isulad/runc/c1 runc info 2m0s":                                               "shim isulad-shim c1",
		"/usr/bin/conmon --api-version 1 -c c1 -u c1 -r /usr/bin/crun -n name":                            "monitor conmon c1",
		"/usr/bin/conmon -b /b --cid=c1 --exit-dir /e -r /usr/bin/runc --runtime-arg --root=/run/runc":    "monitor conmon c1",
		"runsc-sandbox --root=/r --log-fd=3 boot --bundle=/b c1":                                          "vmm runsc-sandbox ",
		"runsc-gofer --root=/r gofer --bundle=/b":                                                         "virtiofsd runsc-gofer ",
		"/usr/bin/qemu-system-x86_64 -name sandbox-kk":                                                    "vmm qemu-system-x86_64 ",
		"/usr/bin/cloud-hypervisor --api-socket /s":                                                       "vmm cloud-hypervisor ",
		"/usr/libexec/virtiofsd --syslog":                                                                 "virtiofsd virtiofsd ",
		"/usr/libexec/ld.so /opt/virtiofsd --fd=3":                                                        "virtiofsd virtiofsd ",
		"/usr/bin/pinns -d /var/run/crio/ns -f x --net":                                                   "helper pinns ",
		"/usr/sbin/iptables-restore --wait":                                                               "helper iptables-restore ",
		"newgidmap 12 0 0 1":                                                                              "helper newgidmap ",
		"/usr/libexec/podman/netavark --config /c setup /run/netns/x":                                     "cni netavark ",
		"busybox sleep 1": "other sleep ",
		"-bash":           "other bash ",
	} {
		t.Run(line, func(t *testing.T) {
			args := strings.Split(line, " ")
			k := Gather(append(shimOf("c1"),
				tracer.Event{Kind: tracer.Fork, Time: 10, Pid: 2, Parent: 1},
				tracer.Event{Kind: tracer.Exec, Time: 11, Pid: 2, File: args[0], Args: args, Comm: comm(args[0])},
			), Asked{Roots: []Root{{Pid: 1, Kind: record.KindOther, Name: "somebody"}}, Ended: 20, Containers: []string{"c1", "c.1_+", "kk", id}})
			if len(k.Processes) != 3 {
				t.Fatalf("%+v", k.Processes)
			}
			p := k.Processes[2]
			if got := p.Kind + " " + p.Name + " " + p.Container; got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

// shimOf is a container that is started below process 1.
func shimOf(id string) []tracer.Event {
	return []tracer.Event{
		{Kind: tracer.Fork, Time: 8, Pid: 3, Parent: 1},
		{Kind: tracer.Exec, Time: 9, Pid: 3, File: "containerd-shim-runc-v2", Args: []string{"containerd-shim-runc-v2", "-id", id}},
	}
}

func TestAnEngineMayCallARuntimeOfAnyName(t *testing.T) {
	for parent, want := range map[string]string{
		record.KindShim: "call box start", record.KindDaemon: "call box start", record.KindMonitor: "call box start", record.KindOther: "other box",
	} {
		k := Gather(append(shimOf("c1"),
			tracer.Event{Kind: tracer.Fork, Time: 10, Pid: 2, Parent: 1},
			tracer.Event{Kind: tracer.Exec, Time: 11, Pid: 2, File: "/opt/box", Args: []string{"/opt/box", "start", "c1"}},
		), Asked{Roots: []Root{{Pid: 1, Kind: parent}}, Containers: []string{"c1"}})
		if p := k.Processes[2]; p.Kind+" "+p.Name != want {
			t.Errorf("below a %s: %s %s, want %s", parent, p.Kind, p.Name, want)
		}
	}
}

// Arguments may hold secrets: nothing of them is kept but ids.
func TestNothingOfTheArgumentsIsKept(t *testing.T) {
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
		if got := clean(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
