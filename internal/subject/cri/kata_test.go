package cri

import (
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
	"github.com/tare-bench/tare/internal/testing/must"
)

// configurations are two of Kata's that differ in sandbox_cgroup_only.
func configurations(t *testing.T) (no, yes string) {
	t.Helper()
	dir := t.TempDir()
	for only, path := range map[string]*string{"false": &no, "true": &yes} {
		*path = filepath.Join(dir, only+".toml")
		must.OK(t, os.WriteFile(*path, []byte("[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only="+only+"\n"), 0o600))
	}
	return no, yes
}

// shims has every shim be there.
func shims(t *testing.T) {
	t.Helper()
	asked := noShim
	noShim = func(string, string) string { return "" }
	t.Cleanup(func() { noShim = asked })
}

func TestAHandlerWithoutItsShimIsSaidBeforeTheRun(t *testing.T) {
	e := subject.Engine{Address: serve(t, &server{name: "containerd", status: ready(containerds["1.6"])})}
	_, err := New(t.Context(), "x", "containerd", "kata", e) // the test's own PATH has none
	if err == nil || !strings.Contains(err.Error(), "has the handler configured, but its shim containerd-shim-kata-v2 is not in "+os.Getenv("PATH")) {
		t.Error(err)
	}
	if _, err = New(t.Context(), "x", "containerd", "runc", e); err != nil {
		t.Error(err)
	}
}

// The parts of containerd's Status with two handlers of Kata's. NO and YES stand
// for the files.
var containerds = map[string]string{
	"1.6": `{"containerd":{"snapshotter":"overlayfs","defaultRuntimeName":"runc","defaultRuntime":{"runtimeType":"","options":null},"untrustedWorkloadRuntime":{"runtimeType":"","options":null},"runtimes":{
"runc":{"runtimeType":"io.containerd.runc.v2","runtimePath":"","runtimeEngine":"","PodAnnotations":null,"ContainerAnnotations":null,"runtimeRoot":"","options":{"BinaryName":"/usr/sbin/runc"},"privileged_without_host_devices":false,"baseRuntimeSpec":"","cniConfDir":"","cniMaxConfNum":0},
"kata":{"runtimeType":"io.containerd.kata.v2","runtimePath":"","runtimeEngine":"","PodAnnotations":null,"ContainerAnnotations":null,"runtimeRoot":"","options":{"ConfigPath":"NO"},"privileged_without_host_devices":false,"baseRuntimeSpec":"","cniConfDir":"","cniMaxConfNum":0},
"kata-sandbox-cgroup-only":{"runtimeType":"io.containerd.kata.v2","runtimePath":"/opt/kata/bin/containerd-shim-kata-v2","runtimeEngine":"","PodAnnotations":null,"ContainerAnnotations":null,"runtimeRoot":"","options":{"TypeUrl":"","configpath":"YES"},"privileged_without_host_devices":false,"baseRuntimeSpec":"","cniConfDir":"","cniMaxConfNum":0}}},
"sandboxImage":"localhost/pause:1"}`,
	"1.7": `{"containerd":{"snapshotter":"overlayfs","defaultRuntimeName":"runc","runtimes":{
"runc":{"runtimeType":"io.containerd.runc.v2","runtimePath":"","runtimeEngine":"","PodAnnotations":null,"options":{"SystemdCgroup":true},"snapshotter":"","sandboxMode":"podsandbox"},
"kata":{"runtimeType":"io.containerd.kata-qemu.v2","runtimePath":"/opt/kata/bin/containerd-shim-kata-v2","runtimeEngine":"","PodAnnotations":["io.katacontainers.*"],"options":{"ConfigPath":"NO"},"snapshotter":"","sandboxMode":"podsandbox"},
"kata-sandbox-cgroup-only":{"runtimeType":"io.containerd.kata.v2","runtimePath":"","runtimeEngine":"","PodAnnotations":["io.katacontainers.*"],"options":{"ConfigPath":"YES","ConfigBody":""},"snapshotter":"devmapper","sandboxMode":"podsandbox"}}},
"sandboxImage":"localhost/pause:1"}`,
	"2.4": `{"containerd":{"defaultRuntimeName":"runc","runtimes":{
"runc":{"runtimeType":"io.containerd.runc.v2","runtimePath":"","options":{"BinaryName":"","CriuImagePath":"","IoGid":0,"NoNewKeyring":false,"SystemdCgroup":false},"cgroupWritable":false,"sandboxer":"podsandbox","io_type":""},
"kata":{"runtimeType":"io.containerd.kata.v2","runtimePath":"","options":{"ConfigPath":"NO"},"cgroupWritable":false,"sandboxer":"podsandbox","io_type":""},
"kata-sandbox-cgroup-only":{"runtimeType":"io.containerd.kata.v2","runtimePath":"","options":{"TypeUrl":"x","ConfigPath":"YES"},"cgroupWritable":false,"sandboxer":"podsandbox","io_type":""}},
"ignoreBlockIONotEnabledErrors":false},"sandboxImage":"localhost/pause:1"}`,
}

func TestEachHandlerOfContainerdHasItsOwnKata(t *testing.T) {
	shims(t)
	no, yes := configurations(t)
	for version, status := range containerds {
		t.Run(version, func(t *testing.T) {
			status := strings.NewReplacer("NO", no, "YES", yes).Replace(status)
			e := subject.Engine{Address: serve(t, &server{name: "containerd", status: ready(status)})}
			for handler, want := range map[string]string{"runc": "", "kata": no, "kata-sandbox-cgroup-only": yes} {
				got, err := New(t.Context(), "x", "containerd", handler, e)
				must.OK(t, err)
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

func TestWhatAnEngineDoesNotTellIsNotGuessed(t *testing.T) {
	shims(t)
	const notTold = "not told by the engine"
	for _, c := range []struct{ name, engine, status, says string }{
		{"no configuration in the status", "containerd", `no JSON`, notTold},
		{"options that are no table", "containerd", `{"containerd":{"runtimes":{"kata":{"runtimeType":"io.containerd.kata.v2","options":"x"}}}}`, notTold},
		{"a path that is no text", "containerd", `{"containerd":{"runtimes":{"kata":{"runtimeType":"io.containerd.kata.v2","options":{"ConfigPath":7}}}}}`, notTold},
		{"two paths", "containerd", `{"containerd":{"runtimes":{"kata":{"runtimeType":"io.containerd.kata.v2","options":{"ConfigPath":"/a","configpath":"/b"}}}}}`, notTold},
		{"runc's shim, which has no such option", "containerd", `{"containerd":{"runtimes":{"kata":{"runtimeType":"io.containerd.runc.v2","options":{"ConfigPath":"/a"}}}}}`, notTold},
		{"no options, and a shim that is not here", "containerd", `{"containerd":{"runtimes":{"kata":{"runtimeType":"io.containerd.kata-nonesuch.v2","options":null}}}}`, notTold + "; its shim was not found"},
		{"a relative path", "containerd", `{"containerd":{"runtimes":{"kata":{"runtimeType":"io.containerd.kata.v2","options":{"ConfigPath":"a"}}}}}`, `the engine names "a", which is no absolute path`},
		{"an engine that never tells", "docker", `{}`, notTold},
	} {
		t.Run(c.name, func(t *testing.T) {
			as := map[string]string{"docker": "cri-dockerd"}[c.engine]
			if as == "" {
				as = c.engine
			}
			e := subject.Engine{Address: serve(t, &server{name: c.engine, status: ready(c.status, "kata")})}
			got, err := New(t.Context(), "x", as, "kata", e)
			must.OK(t, err)
			config := got.Info().Config
			if _, guessed := config["sandbox_cgroup_only"]; guessed || config["kata config"] != c.says {
				t.Errorf("%v", config)
			}
		})
	}
}

func TestBrokenOptionsCostNoOtherHandler(t *testing.T) {
	f := facts{handlers: map[string]handler{}}
	f.fromContainerd(`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"bad":{"runtimeType":"b","options":[]},"runc":{"runtimeType":"io.containerd.runc.v2","options":{"BinaryName":"/r"}}}}}`)
	if f.standard != "runc" || f.handlers["runc"].path != "/r" || f.handlers["bad"].kind != "b" || f.handlers["bad"].told {
		t.Errorf("%+v", f)
	}
	var o options
	if err := json.Unmarshal([]byte("null"), &o); err != nil || o.broken {
		t.Errorf("no options: %+v, %v", o, err)
	}
}

func TestEachHandlerOfCRIOHasItsOwnKata(t *testing.T) {
	shims(t)
	no, yes := configurations(t)
	text := fmt.Sprintf(`[crio]
storage_driver = "overlay"
storage_option = ["overlay.mount_program=/usr/bin/fuse-overlayfs", "overlay.mountopt=nodev"]
[crio.runtime]
default_runtime = "kata"
drop_infra_ctr = false
infra_ctr_cpuset = "0-1"
[crio.runtime.runtimes.kata]
runtime_config_path = %q
runtime_path = "/opt/kata/bin/containerd-shim-kata-v2"
runtime_type = "vm"
[crio.runtime.runtimes.kata-sandbox-cgroup-only]
runtime_config_path = %q
runtime_path = "/opt/kata/bin/containerd-shim-kata-v2"
runtime_type = "vm"
[crio.runtime.runtimes.kata-bare]
runtime_config_path = ""
runtime_path = "/nonexistent/containerd-shim-kata-v2"
runtime_type = "vm"
[crio.runtime.runtimes.kata-oci]
runtime_path = "/usr/bin/kata-runtime"
runtime_type = "oci"
[crio.runtime.runtimes.crun]
runtime_config_path = ""
runtime_path = "/usr/bin/crun"
runtime_type = "oci"
`, no, yes)
	socket := filepath.Join(t.TempDir(), "sock")
	l, err := net.Listen("unix", socket)
	must.OK(t, err)
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
		"kata-bare":                {"not told by the engine; look at its shim: ", ""},
		"kata-oci":                 {"not told by the engine", ""},
		"crun":                     {},
	} {
		target := &Target{engineName: crioEngine, handler: name, facts: f, socket: socket, version: new(api.VersionResponse)}
		must.OK(t, target.askKata(t.Context()))
		c := target.config()
		if c["drop_infra_ctr"] != "false" || c["infra_ctr_cpuset"] != "0-1" || c["storage driver"] != "overlay" || c["storage options"] != "overlay.mount_program=/usr/bin/fuse-overlayfs overlay.mountopt=nodev" {
			t.Errorf("what decides of a start is %v", c)
		}
		got := target.kata
		if got["sandbox_cgroup_only"] != want.only || !strings.HasPrefix(got["kata config"], want.config) || (got == nil) != (want.config == "") {
			t.Errorf("%q: %v", name, got)
		}
	}
}
