package cri

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/isula"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// engineUnderTest is a running engine.
type engineUnderTest struct {
	name  string // as in cri+NAME
	e     subject.Engine
	pid   int
	dir   string // parent of all its storage
	pause string
	left  func(t *testing.T) []string // lists pods, containers and images
	pods  bool                        // the engine serves pod statistics
}

func onContainerd(t *testing.T, v engines.ContainerdVersion, opts ...engines.Option) engineUnderTest {
	d := engines.Containerd(t, v, opts...)
	return engineUnderTest{
		name: "containerd", e: subject.Engine{Address: d.Address}, pid: d.Pid, dir: d.Dir, pause: d.PauseImage, pods: true,
		left: func(t *testing.T) []string {
			out := append(d.Sandboxes(t), d.Containers(t, "k8s.io")...)
			out = append(out, d.Images(t, "k8s.io")...)
			return append(out, d.Snapshots(t, "k8s.io")...)
		},
	}
}

func onCRIO(t *testing.T) engineUnderTest {
	d := engines.CRIO(t)
	return engineUnderTest{
		name: "cri-o", e: subject.Engine{Address: "unix://" + d.Socket, Command: d.Skopeo}, pid: d.Pid, dir: d.Dir, pause: d.PauseImage,
		left: func(t *testing.T) []string {
			return append(append(d.Sandboxes(t), d.Containers(t)...), d.Images(t)...)
		},
	}
}

// onAll runs a test on every engine, with one of its handlers.
func onAll(t *testing.T, test func(t *testing.T, u engineUnderTest, handler string)) {
	for _, c := range []struct {
		name, handler string
		start         func(t *testing.T) engineUnderTest
	}{
		{"containerd 1.6", "crun", func(t *testing.T) engineUnderTest { return onContainerd(t, engines.V1) }},
		{"containerd 2.4", "", func(t *testing.T) engineUnderTest { return onContainerd(t, engines.V2) }},
		{"CRI-O 1.34", "crun", onCRIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // the engines are independent
			test(t, c.start(t), c.handler)
		})
	}
}

func weigh(t *testing.T, u engineUnderTest, handler string) *Target {
	t.Helper()
	got := must.Get(New(t.Context(), "cri+"+u.name+"/"+handler, u.name, handler, u.e))(t)
	return got.(*Target)
}

// opened opens a handler of an engine. At the end it checks for leftovers.
func opened(t *testing.T, u engineUnderTest, handler string, env subject.Env) *session {
	t.Helper()
	t.Cleanup(func() {
		if left := u.left(t); len(left) > 0 {
			t.Errorf("%s: leftovers %q", u.name, left)
		}
	})
	return enginetest.Open(t, weigh(t, u, handler), env).(*session)
}

func TestEnginesReportTheirStorage(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		root := weigh(t, u, handler).Info().Config["storage root"]
		if info, err := os.Stat(root); err != nil || !info.IsDir() || !strings.HasPrefix(root, u.dir+"/") {
			t.Errorf("%q, %v; all is below %s", root, err, u.dir)
		}
	})
}

func TestPodsConform(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		enginetest.Conforms(t, enginetest.Case{
			Name: "handler " + handler, Target: func(t *testing.T) subject.Target { return weigh(t, u, handler) },
			Left: u.left, Source: ofContainers, Swept: 4, Pods: true,
		})
	})
}

func TestKubeletIsMatchedByItsEndpoint(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"own.sock": "", "other.sock": "",
		"own.yaml":   "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///own.sock\n",
		"other.yaml": "containerRuntimeEndpoint: 'unix:///other.sock'\nunknown: {a: [1]}\n",
		"none.yaml":  "kind: KubeletConfiguration\n",
		"not.yaml":   "\x00{",
	} {
		must.OK(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	must.OK(t, os.Symlink("own.sock", filepath.Join(root, "link.sock")))
	golden.Cases(t, "testdata/kubelets.txt", func(_ *testing.T, args string) string {
		return fmt.Sprint(uses(append([]string{"kubelet"}, strings.Fields(args)...), root, filepath.Join(root, "own.sock")))
	})
}

// configurations returns two Kata configurations that differ in sandbox_cgroup_only.
func configurations(t *testing.T) (no, yes string) {
	t.Helper()
	dir := t.TempDir()
	for only, path := range map[string]*string{"false": &no, "true": &yes} {
		*path = filepath.Join(dir, only+".toml")
		must.OK(t, os.WriteFile(*path, []byte("[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only="+only+"\n"), 0o600))
	}
	return no, yes
}

// shims makes every shim lookup succeed.
func shims(t *testing.T) {
	t.Helper()
	asked := noShim
	noShim = func(string, string) string { return "" }
	t.Cleanup(func() { noShim = asked })
}

func TestMissingShimIsUnavailable(t *testing.T) {
	need.Root(t)
	e := subject.Engine{Address: serve(t, &server{name: "containerd", status: ready(containerds(t, "1.6"))})}
	_, err := New(t.Context(), "x", "containerd", "kata", e) // not on PATH
	check.Error(t, err, "has the handler, but its shim containerd-shim-kata-v2 is not in "+os.Getenv("PATH"))
	if _, err = New(t.Context(), "x", "containerd", "runc", e); err != nil {
		t.Error(err)
	}
}

// containerds returns a part of containerd's status with two Kata handlers. NO and YES are
// placeholders for their files.
func containerds(t *testing.T, version string) string {
	t.Helper()
	return must.Read(t, "testdata/containerd-"+version+".json")
}

func TestContainerdHandlersHaveTheirOwnKataFacts(t *testing.T) {
	need.Root(t)
	shims(t)
	no, yes := configurations(t)
	for _, version := range []string{"1.6", "1.7", "2.4"} {
		t.Run(version, func(t *testing.T) {
			status := strings.NewReplacer("NO", no, "YES", yes).Replace(containerds(t, version))
			e := subject.Engine{Address: serve(t, &server{name: "containerd", status: ready(status)})}
			for handler, want := range map[string]string{"runc": "", "kata": no, "kata-sandbox-cgroup-only": yes} {
				got := must.Get(New(t.Context(), "x", "containerd", handler, e))(t)
				config := got.Info().Config
				only := map[string]string{no: "false", yes: "true"}[want]
				if config["kata config"] != want || config["sandbox_cgroup_only"] != only {
					t.Errorf("%s: %v", handler, config)
				}
				made := map[string]string{"1.7": "podsandbox", "2.4": "podsandbox"}[version]
				own := map[string]string{"1.7 kata-sandbox-cgroup-only": "devmapper"}[version+" "+handler]
				if config["sandboxer"] != made || config["handler's snapshotter"] != own {
					t.Errorf("%s: pods are made by %q, want %q, on %q, want %q", handler, config["sandboxer"], made, config["handler's snapshotter"], own)
				}
			}
		})
	}
}

// An input has the name of an engine and its status. The result has the known facts about
// Kata.
func TestUnreportedKataFactsAreUnknown(t *testing.T) {
	need.Root(t)
	shims(t)
	golden.Cases(t, "testdata/unreported.txt", func(t *testing.T, input string) string {
		says, status, _ := strings.Cut(input, "\n")
		as := cmp.Or(map[string]string{"docker": "cri-dockerd"}[says], says)
		e := subject.Engine{Address: serve(t, &server{name: says, status: ready(status, "kata")})}
		config := must.Get(New(t.Context(), "x", as, "kata", e))(t).Info().Config
		return config["kata config"] + config["sandbox_cgroup_only"]
	})
}

func TestBrokenOptionsAffectOneHandler(t *testing.T) {
	f := facts{handlers: map[string]handler{}}
	f.fromContainerd(`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"bad":{"runtimeType":"b","options":[]},"runc":{"runtimeType":"io.containerd.runc.v2","options":{"BinaryName":"/r"}}}}}`)
	if f.standard != "runc" || f.handlers["runc"].path != "/r" || f.handlers["bad"].kind != "b" || f.handlers["bad"].configKnown {
		t.Errorf("%+v", f)
	}
	var o options
	if err := json.Unmarshal([]byte("null"), &o); err != nil || o.broken {
		t.Errorf("no options: %+v, %v", o, err)
	}
}

func TestCRIOHandlersHaveTheirOwnKataFacts(t *testing.T) {
	need.Root(t)
	shims(t)
	no, yes := configurations(t)
	text := strings.NewReplacer("NO", no, "YES", yes).Replace(must.Read(t, "testdata/crio.toml"))
	socket := filepath.Join(t.TempDir(), "sock")
	l := must.Get(net.Listen("unix", socket))(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/config", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })

	f := facts{handlers: map[string]handler{}}
	must.OK(t, f.fromCRIO(t.Context(), socket))
	for name, want := range map[string]struct{ config, only string }{
		"":                         {no, "false"},
		"kata":                     {no, "false"},
		"kata-sandbox-cgroup-only": {yes, "true"},
		"kata-bare":                {"not reported by the engine; inspect its shim: ", ""},
		"kata-oci":                 {"not reported by the engine", ""},
		"crun":                     {},
	} {
		target := &Target{engineName: crioEngine, handler: name, facts: f, socket: socket, version: new(api.VersionResponse)}
		must.OK(t, target.askKata(t.Context()))
		c := target.config()
		if c["drop_infra_ctr"] != "false" || c["infra_ctr_cpuset"] != "0-1" || c["storage driver"] != "overlay" || c["storage options"] != "overlay.mount_program=/usr/bin/fuse-overlayfs overlay.mountopt=nodev" {
			t.Errorf("settings: %v", c)
		}
		got := target.kata
		if got["sandbox_cgroup_only"] != want.only || !strings.HasPrefix(got["kata config"], want.config) || (got == nil) != (want.config == "") {
			t.Errorf("%q: %v", name, got)
		}
	}
}

// Here the daemon is in the mount namespace of this process. If a daemon is in another
// namespace, tare only executes programs that it finds itself.
func TestRuntimeVersionIsKnownForEachEngine(t *testing.T) {
	need.Root(t)
	runc := need.Tool(t, "runc")
	dir := t.TempDir()
	own := filepath.Join(dir, "runc")
	must.OK(t, os.WriteFile(own, []byte("#!/bin/sh\nexec "+runc+" \"$@\"\n"), 0o755))
	was := isula.DaemonConfig
	defer func() { isula.DaemonConfig = was }()
	isula.DaemonConfig = filepath.Join(dir, "daemon.json")
	must.Write(t, isula.DaemonConfig, `{"default-runtime":"mine","runtimes":{"mine":{"path":"`+own+`"}}}`)
	n := onNode(t)
	ofIsulad := facts{handlers: map[string]handler{}}
	ofIsulad.fromIsulad(engine.Socket(n.address))
	for name, target := range map[string]*Target{
		"default of isulad":     {engineName: isuladEngine, facts: ofIsulad},
		"isulad's":              {engineName: isuladEngine, handler: "mine", facts: ofIsulad},
		"path in CRI-O":         {engineName: crioEngine, handler: "mine", facts: facts{handlers: map[string]handler{"mine": {kind: "oci", path: own}}}},
		"name on PATH in CRI-O": {engineName: crioEngine, handler: "runc", facts: facts{handlers: map[string]handler{"runc": {}}}},
	} {
		if containerd.RuntimeVersion(t.Context(), engine.Socket(n.address), target.program().path) == "" {
			t.Errorf("%s: %+v", name, target.program())
		}
	}
}
