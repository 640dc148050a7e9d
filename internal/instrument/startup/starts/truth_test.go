package starts

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/record"
)

// one reads a text as one file, of which one start is expected.
func one(t *testing.T, name, text string) record.Start {
	t.Helper()
	all, _ := read(t, Options{}, map[string]io.Reader{name: strings.NewReader(text)}, name)
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
		for _, pair := range strings.Split(strings.Trim(object, "{}\n"), `,"`) {
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
