package starts

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

const (
	pod1 = "f667548134d1cb82a7742d8ecd440034fdae10e9c5ce6ca7899fd9e0621e5303"
	con1 = "a03834c983b79e0835fcaafc8b0129b850fff67ffd45ddf1059f9cb63704c825"
)

// ofAPod are the phases of a pod with one container.
var ofAPod = []string{
	"RunPodSandbox called → RunPodSandbox returned", "RunPodSandbox returned → CreateContainer called", "CreateContainer called → CreateContainer returned",
	"CreateContainer returned → StartContainer called", "StartContainer called → StartContainer returned",
}

// crioLine is a line of CRI-O's, of a request.
func crioLine(ms int, level, msg, id, method string) string {
	return strings.Replace(engineLine(ms, msg, "id="+id+" name=/runtime.v1.RuntimeService/"+method), "level=info", "level="+level, 1)
}

// TestFormsThatNoFixtureHas tries what real logs at hand do not show: each case is
// a start of 1000 ms, perhaps with another one beside it.
func TestFormsThatNoFixtureHas(t *testing.T) {
	rs := func(ms int, msg, subsystem string) string {
		at := strings.SplitN(line(ms, "", ""), `"`, 3)[1]
		return `{"msg":"` + msg + `","level":"INFO","ts":"` + at + `","name":"kata-runtime","source":"sb-rs-1","subsystem":"` + subsystem + `","pid":"8150","version":"0.1.0"}` + "\n"
	}
	for name, test := range map[string]struct {
		text    string
		target  string
		phases  []string
		calls   []string
		sandbox string
	}{
		"runtime-rs": {
			rs(0, "new runtime handler virt_container", "runtimes") + rs(200, "start vm", "virt-container") +
				rs(900, "<==== task service CreateContainer(ShimPID { pid: 8 })", "service") +
				rs(910, `====> task service StartProcess(ContainerProcess { container_id: \"sb-rs-1\" })`, "service") +
				rs(1000, "<==== task service StartProcess(PID { pid: 8 })", "service") + rs(2000, "begin stop sandbox", "virt-container"),
			"kata",
			[]string{
				"runtime called → VM started", "VM started → container created", "container created → container's start called",
				"container's start called → container started",
			},
			[]string{"kata create", "kata start"}, "sb-rs-1",
		},
		"CRI-O's debug log": {
			crioLine(0, "debug", "Request: &RunPodSandboxRequest{Config:&PodSandboxConfig{},}", "r1", "RunPodSandbox") +
				crioLine(1, "info", "Running pod sandbox: n/p/POD", "r1", "RunPodSandbox") +
				crioLine(500, "info", "Ran pod sandbox "+pod1+" with infra container: n/p/POD", "r1", "RunPodSandbox") +
				crioLine(501, "debug", "Response: &RunPodSandboxResponse{PodSandboxId:"+pod1+",}", "r1", "RunPodSandbox") +
				crioLine(510, "debug", "Request: &CreateContainerRequest{PodSandboxId:"+pod1+",Config:nil,}", "r2", "CreateContainer") +
				crioLine(600, "debug", "Response: &CreateContainerResponse{ContainerId:"+con1+",}", "r2", "CreateContainer") +
				crioLine(700, "debug", "Request: &StartContainerRequest{ContainerId:"+con1+",}", "r3", "StartContainer") +
				crioLine(1000, "debug", "Response: &StartContainerResponse{}", "r3", "StartContainer") +
				crioLine(3000, "debug", "Request: &StopContainerRequest{ContainerId:"+con1+",Timeout:0,}", "r4", "StopContainer"),
			"cri-o",
			ofAPod,
			[]string{"RunPodSandbox", "CreateContainer", "StartContainer"}, pod1,
		},
		"an image that is pulled meanwhile": {
			engineLine(0, `RunPodSandbox for name:"a"  uid:"u"  namespace:"n"`, "") +
				engineLine(100, `RunPodSandbox for name:"a"  uid:"u"  namespace:"n" returns sandbox id "aaaa"`, "") +
				engineLine(110, `PullImage "busybox:latest"`, "") + engineLine(400, `Pulled image "busybox:latest" with image id "sha256:1"`, "") +
				engineLine(800, `PullImage "busybox:latest" returns image reference "sha256:1"`, "") +
				engineLine(810, `CreateContainer within sandbox "aaaa" for container name:"c"`, "") +
				engineLine(820, `CreateContainer within sandbox "aaaa" for name:"c" returns container id "ac"`, "") +
				engineLine(830, `StartContainer for "ac"`, "") + engineLine(1000, `StartContainer for "ac" returns successfully`, ""),
			"containerd",
			ofAPod,
			[]string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"}, "aaaa",
		},
		"an image that CRI-O pulls": {
			crioLine(0, "info", "Running pod sandbox: n/p/POD", "r1", "RunPodSandbox") +
				crioLine(500, "info", "Ran pod sandbox "+pod1+" with infra container: n/p/POD", "r1", "RunPodSandbox") +
				crioLine(510, "info", "Pulling image: busybox", "r9", "PullImage") + crioLine(600, "info", "Pulled image: busybox@sha256:1", "r9", "PullImage") +
				crioLine(610, "info", "Creating container: n/p/c", "r2", "CreateContainer") + crioLine(700, "info", "Created container "+con1+": n/p/c", "r2", "CreateContainer") +
				crioLine(710, "info", "Starting container: "+con1, "r3", "StartContainer") +
				strings.Replace(crioLine(1000, "info", "Started container", "r3", "StartContainer"), "\n", " PID=7 containerID="+con1+" sandboxID="+pod1+"\n", 1),
			"cri-o",
			ofAPod,
			[]string{"RunPodSandbox", "PullImage", "CreateContainer", "StartContainer"}, pod1,
		},
		"Kata below CRI-O": {
			crioLine(0, "info", "Running pod sandbox: n/p/POD", "r1", "RunPodSandbox") +
				line(100, "Create() start", "sandbox="+pod1+" container="+pod1) + line(800, "Create() end", "sandbox="+pod1+" container="+pod1) +
				line(850, "Start() start", "sandbox="+pod1+" container="+pod1) + line(900, "Start() end", "sandbox="+pod1+" container="+pod1) +
				crioLine(1000, "info", "Ran pod sandbox "+pod1+" with infra container: n/p/POD", "r1", "RunPodSandbox"),
			"cri-o/kata",
			[]string{
				"RunPodSandbox called → runtime called", "runtime called → container created", "container created → container's start called",
				"container's start called → container started", "container started → RunPodSandbox returned",
			},
			[]string{"RunPodSandbox", "kata create", "kata start"}, pod1,
		},
		"two pods of containerd at once": {
			engineLine(0, `RunPodSandbox for name:"a"  uid:"u"  namespace:"n"`, "") + engineLine(1, `RunPodSandbox for name:"b"  uid:"u"  namespace:"n"`, "") +
				engineLine(20, "connecting to shim bbbb", "") + engineLine(30, "connecting to shim aaaa", "") +
				engineLine(400, `RunPodSandbox for name:"b"  uid:"u"  namespace:"n" returns sandbox id "bbbb"`, "") +
				engineLine(500, `RunPodSandbox for name:"a"  uid:"u"  namespace:"n" returns sandbox id "aaaa"`, "") +
				engineLine(510, `CreateContainer within sandbox "aaaa" for container name:"c"`, "") + engineLine(511, `CreateContainer within sandbox "bbbb" for container name:"c"`, "") +
				engineLine(520, `CreateContainer within sandbox "bbbb" for name:"c" returns container id "bc"`, "") +
				engineLine(530, `CreateContainer within sandbox "aaaa" for name:"c" returns container id "ac"`, "") +
				engineLine(540, `StartContainer for "ac"`, "") + engineLine(541, `StartContainer for "bc"`, "") +
				engineLine(900, `StartContainer for "bc" returns successfully`, "") + engineLine(1000, `StartContainer for "ac" returns successfully`, ""),
			"containerd",
			[]string{
				"RunPodSandbox called → shim started", "shim started → RunPodSandbox returned", "RunPodSandbox returned → CreateContainer called",
				"CreateContainer called → CreateContainer returned", "CreateContainer returned → StartContainer called", "StartContainer called → StartContainer returned",
			},
			[]string{"RunPodSandbox", "CreateContainer", "StartContainer"}, "aaaa",
		},
		"a process that says its sandbox once": {
			line(0, "Create() start", whole) + line(10, "Starting VM", "") + line(500, "VM started", "") + line(1000, "Start() end", whole) +
				strings.Replace(line(1001, "Starting VM", ""), "pid=77", "pid=78", 1),
			"kata", []string{"runtime called → VM begun", "VM begun → VM started", "VM started → container started"}, nil, "box1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			starts, _ := read(t, map[string]io.Reader{"log": strings.NewReader(test.text)}, "log")
			i := slices.IndexFunc(starts, func(s record.Start) bool { return s.Sandbox == test.sandbox })
			if i < 0 {
				t.Fatalf("no start of %s: %+v", test.sandbox, starts)
			}
			s := starts[i]
			if s.Target != test.target || (s.Ended-s.Began)/1e6 != 1000 {
				t.Errorf("%s of %d ns", s.Target, s.Ended-s.Began)
			}
			var phases, calls []string
			for _, x := range s.Spans {
				if x.Kind == record.KindPhase {
					phases = append(phases, x.Name)
				} else {
					calls = append(calls, x.Name)
				}
			}
			if !slices.Equal(phases, test.phases) || !slices.Equal(calls, test.calls) {
				t.Errorf("phases %q, calls %q", phases, calls)
			}
		})
	}
}
