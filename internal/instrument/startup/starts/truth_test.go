package starts

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/startup/logs"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// one reads a text as one file, of which one start is expected.
func one(t *testing.T, name, text string) record.Start {
	t.Helper()
	all, _ := read(t, map[string]io.Reader{name: strings.NewReader(text)}, name)
	if len(all) != 1 {
		t.Fatalf("%d starts: %+v", len(all), all)
	}
	return all[0]
}

// tookOf is what the calls of a name took in a start, in ms.
func tookOf(s *record.Start, name string) (ms int64) {
	for _, x := range s.Spans {
		if x.Name == name {
			ms += (x.Ended - x.Began) / 1e6
		}
	}
	return ms
}

// podOfContainerd is a pod with a container, a second long.
func podOfContainerd(between string) string {
	return engineLine(0, `RunPodSandbox for name:"a"  uid:"u"  namespace:"n"`, "") + engineLine(20, "connecting to shim aaaa", "") + between +
		engineLine(400, `RunPodSandbox for name:"a"  uid:"u"  namespace:"n" returns sandbox id "aaaa"`, "") +
		engineLine(510, `CreateContainer within sandbox "aaaa" for container name:"c"`, "") +
		engineLine(530, `CreateContainer within sandbox "aaaa" for name:"c" returns container id "ac"`, "") +
		engineLine(540, `StartContainer for "ac"`, "") + engineLine(1000, `StartContainer for "ac" returns successfully`, "")
}

func TestOnlyKatasOwnLinesMakeAPodKatas(t *testing.T) {
	stranger := "2026-01-02T03:04:05.300000+00:00 host systemd[1]: Started libcontainer container aaaa.\n2026-01-02T03:04:05.310000+00:00 host sshd[77]: Accepted publickey for root\n"
	if s := one(t, "log", podOfContainerd(stranger)); s.Target != "containerd" {
		t.Errorf("a pod beside which systemd and sshd write is %s", s.Target)
	}
	if s := one(t, "log", podOfContainerd(line(200, "Starting VM", "sandbox=aaaa"))); s.Target != "containerd/kata" {
		t.Errorf("a pod of Kata's is %s", s.Target)
	}
}

func TestACallWithoutAnEndIsSaidAndItsTimeIsNotTheEngines(t *testing.T) {
	text := line(0, "Create() start", whole) + line(10, "Starting VM", "sandbox=box1") + line(11_100, "VM started", "sandbox=box1") +
		line(11_200, "Start() start", whole) + line(11_300, "Start() end", whole)
	s := one(t, "log", text)
	if !slices.Equal(whatIsMissing(&s), []string{record.MissingCall}) || !strings.Contains(s.Missing[0].Detail, "of kata create, which began at log:1") {
		t.Errorf("%+v", s.Missing)
	}
	if s := one(t, "log", text[strings.Index(text, "\n")+1:]); !slices.Contains(whatIsMissing(&s), record.MissingCall) {
		t.Errorf("where its begin is not told either: %+v", s.Missing)
	}
}

func TestAPodsNetworkThatIsToldLongAfterItsStartIsNotOfIt(t *testing.T) {
	var out []record.Start
	b := New([]string{"crio.log"}, func(s *record.Start, _ int) error { out = append(out, *s); return nil })
	network := func(ms int) string {
		return engineLine(ms, "Got pod network &{Name:p Namespace:n ID:"+pod1+" UID:u NetNS:/run/netns/x}", "")
	}
	text := crioLine(0, "info", "Running pod sandbox: n/p/POD", "r1", "RunPodSandbox") + network(100) +
		crioLine(500, "info", "Ran pod sandbox "+pod1+" with infra container: n/p/POD", "r1", "RunPodSandbox") +
		engineLine(int(settled.Milliseconds())+600, "Adding pod n_p to CNI network \"x\"", "") + network(int(settled.Milliseconds())+700)
	_, err := logs.Read(t.Context(), []logs.Source{{Name: "crio.log", Reader: strings.NewReader(text)}}, b.Add)
	must.OK(t, err)
	if len(out) != 1 || (out[0].Ended-out[0].Began)/1e6 != 500 || out[0].Events != 3 {
		t.Errorf("given out before the log's end: %+v", out)
	}
	must.OK(t, b.Close())
	if len(out) != 1 {
		t.Errorf("the line made another start: %+v", out)
	}
}

func TestCRIOsOwnTimesAndPidsAreRead(t *testing.T) {
	object := func(at, msg, id, method, more string) string {
		return `{"PID":4711,"file":"server/x.go:1","id":"` + id + `","level":"info","msg":"` + msg + `","name":"/runtime.v1.RuntimeService/` + method + `","time":"` + at + `"` + more + "}\n"
	}
	text := func(at func(ms string) string) string {
		return object(at("100"), "Running pod sandbox: n/p/POD", "r1", "RunPodSandbox", "") + object(at("150"), "Ran pod sandbox "+pod1+" with infra container: n/p/POD", "r1", "RunPodSandbox", "") +
			object(at("160"), "Creating container: n/p/c", "r2", "CreateContainer", "") + object(at("200"), "Created container "+con1+": n/p/c", "r2", "CreateContainer", "") +
			object(at("210"), "Starting container: "+con1, "r3", "StartContainer", "") + object(at("288"), "Started container", "r3", "StartContainer", `,"containerID":"`+con1+`","sandboxID":"`+pod1+`"`)
	}
	for name, lines := range map[string]string{
		"a PID among JSON's keys":   text(func(ms string) string { return "2026-01-02T03:04:05." + ms + "Z" }),
		"a blank before the time":   text(func(ms string) string { return "2026-01-02 03:04:05." + ms + "000000Z" }),
		"a blank, and logfmt":       logfmtOf(text(func(ms string) string { return "2026-01-02 03:04:05." + ms + "000000+00:00" })),
		"a blank, behind a journal": "Jan  2 03:04:05 node crio[9]: " + strings.ReplaceAll(strings.TrimSpace(logfmtOf(text(func(ms string) string { return "2026-01-02 03:04:05." + ms + "000000Z" }))), "\n", "\nJan  2 03:04:05 node crio[9]: "),
	} {
		s := one(t, "crio.log", lines)
		if s.Target != "cri-o" || (s.Ended-s.Began)/1e6 != 188 {
			t.Errorf("%s: %s of %d ns", name, s.Target, s.Ended-s.Began)
		}
	}
}

// logfmtOf writes objects as logrus writes text, the time first.
func logfmtOf(objects string) string {
	var out strings.Builder
	for object := range strings.Lines(objects) {
		time, rest := "", ""
		for pair := range strings.SplitSeq(strings.Trim(object, "{}\n"), `,"`) {
			key, value, _ := strings.Cut(strings.TrimPrefix(pair, `"`), `":`)
			if key == "time" {
				time = "time=" + value
			} else {
				rest += " " + key + "=" + value
			}
		}
		out.WriteString(time + rest + "\n")
	}
	return out.String()
}

// runscLog is the log of one command of runsc's, which has a file of its own.
func runscLog(ms int, args string, lines ...string) string {
	at := func(ms int) string {
		return fmt.Sprintf("I0102 03:04:%02d.%06d     100 cli.go:1] ", 5+ms/1000, ms%1000*1000)
	}
	text := at(ms) + "**************** gVisor ****************\n" + at(ms) + "Args: [/usr/bin/runsc --root=/r " + args + "]\n" + at(ms) + "**************** gVisor ****************\n"
	for _, l := range lines {
		after, message, _ := strings.Cut(l, " ")
		n, _ := strconv.Atoi(after)
		text += at(ms+n) + message + "\n"
	}
	return text
}

func TestThePodsOtherContainersAreItsStartInGVisorsLogsToo(t *testing.T) {
	logs := map[string]io.Reader{
		"1.create": strings.NewReader(runscLog(0, "create --bundle /b pod1", "5 Creating new sandbox for container, cid: pod1", "300 Exiting with status: 0")),
		"2.start":  strings.NewReader(runscLog(310, "start pod1", "37 Exiting with status: 0")),
		"3.create": strings.NewReader(runscLog(400, "create --bundle /c con1", "5 Creating new container, cid: con1, sandbox: pod1", "90 Exiting with status: 0")),
		"4.start":  strings.NewReader(runscLog(500, "start con1", "77 Exiting with status: 0")),
	}
	all, _ := read(t, logs, "1.create", "2.start", "3.create", "4.start")
	if len(all) != 1 || (all[0].Ended-all[0].Began)/1e6 != 577 || !slices.Equal(all[0].Containers, []string{"pod1", "con1"}) {
		t.Fatalf("%+v", all)
	}
	if tookOf(&all[0], "runsc create") != 390 || tookOf(&all[0], "runsc start") != 114 || len(all[0].Missing) != 0 {
		t.Errorf("%+v, missing %v", all[0].Spans, all[0].Missing)
	}
	object := ""
	for l := range strings.Lines(runscLog(0, "create --bundle /b pod1", "5 Creating new sandbox for container, cid: pod1", "300 Exiting with status: 0")) {
		object += fmt.Sprintf(`{"msg":"cli.go:1] %s","level":"info","time":"2026-01-02T%sZ"}`+"\n", strings.TrimSpace(l[strings.Index(l, "] ")+2:]), l[6:21])
	}
	if s := one(t, "debug.json", object); s.Target != "runsc" || tookOf(&s, "runsc create") != 300 {
		t.Errorf("in JSON: %+v", s)
	}
	if s := one(t, "start.log", runscLog(0, "start pod1", "37 Exiting with status: 0")); (s.Ended-s.Began)/1e6 != 37 || tookOf(&s, "runsc start") != 37 {
		t.Errorf("a start alone: %+v", s)
	}
}

func TestAStartFailedWhereItsRuntimeTookItBackForTheFirstErrorSinceItWentOn(t *testing.T) {
	bad := func(ms int, what, more string) string {
		return strings.Replace(line(ms, what, whole+" "+more), "level=debug", "level=error", 1)
	}
	usual := bad(5, "scanner return error", `error="use of closed network connection"`) + line(10, "Starting VM", "sandbox=box1")
	for name, test := range map[string]struct{ text, want string }{
		"the last error is of the cleaning up": {
			line(0, "Create() start", whole) + usual + bad(50, "failed to hotplug", `error="no slot"`) + bad(60, "failed to stop", `error="no such VM"`) + line(80, "Stopping VM", "sandbox=box1"), "no slot"},
		"what it went on from is no cause": {line(0, "Create() start", whole) + usual + line(80, "Stopping VM", "sandbox=box1"), ""},
		"lost lines and an error are none": {
			line(0, "Create() start", whole) + usual + bad(70, "Failed to read guest console logs", `error="closed"`) + line(5000, "Kill() start", whole), ""},
		"a container that is not created": {podOfContainerd("") + engineLine(2000, `CreateContainer within sandbox "aaaa" for container name:"d"`, "") +
			strings.Replace(engineLine(2100, `CreateContainer within sandbox "aaaa" for name:"d" failed`, `error="no such image"`), "level=info", "level=error", 1), "CreateContainer: no such image"},
		"runsc that says so by its status": {runscLog(0, "create --bundle /b pod1", "20 Exiting with status: 128"), "runsc create exited with 128"},
	} {
		got := ""
		s := one(t, "log", test.text)
		if s.Failure != nil {
			got = s.Failure.Detail
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	busy := strings.Replace(engineLine(700, `StartContainer for "ac" failed`, `error="busy"`), "level=info", "level=error", 1)
	tried := podOfContainerd("")
	at := strings.LastIndex(tried, "time=")
	if s := one(t, "log", tried[:at]+busy+tried[at:]); s.Failure != nil || (s.Ended-s.Began)/1e6 != 1000 {
		t.Errorf("one that was tried again: %+v", s.Failure)
	}
}

func TestDockersDebugLogSaysWhenItsCallsCameAndTasksBegan(t *testing.T) {
	const id = "9dd2b629320270c4d84df5d85e0bb0930deb3e6e8b63d933ceec3120bdbc682d"
	debug := func(ms int, msg, more string) string {
		return strings.Replace(engineLine(ms, msg, more), "level=info", "level=debug", 1)
	}
	rest := func(topic string) string {
		return debug(160, "sandbox set key processing took 37.5ms for container "+id, "") + debug(200, "event", "module=libcontainerd namespace=moby topic=/tasks/create"+topic) +
			debug(250, "event", "module=libcontainerd namespace=moby topic=/tasks/start"+topic) + debug(300, "Calling GET /v1.41/containers/"+id+"/json", "")
	}
	for name, text := range map[string]string{
		"20.10": debug(0, "Calling POST /v1.41/containers/create?name=web", "") + debug(80, "Calling POST /v1.41/containers/"+id+"/attach?stream=1", "") +
			debug(100, "Calling POST /v1.41/containers/"+id+"/start", "") + rest(""),
		"28": debug(0, "handling POST request", "method=POST module=api request-url=/v1.51/containers/create vars=\"map[version:1.51]\"") +
			debug(100, "handling POST request", "method=POST module=api request-url=/v1.51/containers/"+id+"/start") + rest(" container="+id),
	} {
		s := one(t, "dockerd.log", text)
		if s.Target != "docker" || s.Sandbox != id || (s.Ended-s.Began)/1e6 != 250 || len(s.Missing) != 0 {
			t.Errorf("%s: %s %s of %d ns, missing %v", name, s.Target, s.Sandbox, s.Ended-s.Began, s.Missing)
		}
		if tookOf(&s, "CreateContainer called → StartContainer called") != 100 || tookOf(&s, "POST start") != 150 || tookOf(&s, "sandbox key") != 37 || tookOf(&s, "container created → container started") != 50 {
			t.Errorf("%s: %+v", name, s.Spans)
		}
	}
	two := debug(0, "Calling POST /v1.41/containers/create", "") + debug(10, "Calling POST /v1.41/containers/create", "") + debug(100, "Calling POST /v1.41/containers/"+id+"/start", "") + rest("")
	if s := one(t, "dockerd.log", two); (s.Ended-s.Began)/1e6 != 150 {
		t.Errorf("of two creates none is known to be this container's: %+v", s.Spans)
	}
}

func TestALineOfContainerdsThatNamesATasksFolderBelongsToIt(t *testing.T) {
	pod := strings.ReplaceAll(podOfContainerd(""), "aaaa", pod1)
	at := strings.Index(pod, engineLine(400, "", "")[:30])
	folder := engineLine(100, "starting signal loop", "namespace=k8s.io path=/run/containerd/io.containerd.runtime.v2.task/k8s.io/"+pod1) + engineLine(150, "prepare snapshot", "key=k8s.io/7/"+pod1)
	for _, g := range one(t, "log", pod[:at]+folder+pod[at:]).Gaps {
		if g.After == "starting signal loop" && g.Before == "prepare snapshot" {
			return
		}
	}
	t.Error("nothing lies between its lines")
}

func TestKubeletSaysWhenItSawAPodAndWhenItRan(t *testing.T) {
	klog := func(ms int, file, text string) string {
		return fmt.Sprintf("I0102 03:04:%02d.%06d    1234 %s:2405] %s\n", 5+ms/1000, ms%1000*1000, file, text)
	}
	for name, prefix := range map[string]string{"alone": "", "in a journal": "Jan  2 03:04:05 node kubelet[1234]: "} {
		text := ""
		for l := range strings.Lines(klog(0, "kubelet.go", `"SyncLoop ADD" source="api" pods=["shop/web","shop/db"]`) +
			klog(2300, "kubelet.go", `"SyncLoop (PLEG): event for pod" pod="shop/web" event={"ID":"u","Type":"ContainerStarted","Data":"`+pod1+`"}`) +
			klog(3300, "kubelet.go", `"SyncLoop (PLEG): event for pod" pod="shop/web" event={"ID":"u","Type":"ContainerStarted","Data":"`+con1+`"}`) +
			klog(3400, "pod_startup_latency_tracker.go", `"Observed pod startup duration" pod="shop/web" podStartSLOduration=3.4 podStartE2EDuration="3.4s"`)) {
			text += prefix + l
		}
		all, _ := read(t, map[string]io.Reader{"kubelet.log": strings.NewReader(text)}, "kubelet.log")
		i := slices.IndexFunc(all, func(s record.Start) bool { return s.Name == "shop/web" })
		if i < 0 || all[i].Target != "kubelet" || (all[i].Ended-all[i].Began)/1e6 != 3400 || tookOf(&all[i], "pod added → container started") != 2300 || tookOf(&all[i], "container started → pod observed running") != 100 {
			t.Errorf("%s: %+v", name, all)
		}
	}
}
