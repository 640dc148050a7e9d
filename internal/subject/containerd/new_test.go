package containerd

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	one "github.com/containerd/cgroups/v3/cgroup1/stats"
	two "github.com/containerd/cgroups/v3/cgroup2/stats"
	types "github.com/containerd/containerd/api/types"
	"github.com/containerd/typeurl/v2"
	"google.golang.org/grpc"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestUnavailableHasReasonAndAdvice(t *testing.T) {
	d := engines.Containerd(t, engines.V1)
	dead := filepath.Join(t.TempDir(), "dead.sock")
	l := must.Get(net.Listen("unix", dead))(t)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	alien := serve(t, grpc.NewServer()) // a gRPC server without the services of containerd

	for _, c := range []struct {
		name, runtime, via string
		e                  subject.Engine
		says               string
	}{
		{"no socket", "runc", "", subject.Engine{Address: filepath.Join(t.TempDir(), "none.sock")}, "--containerd-address"},
		{"no listener", "runc", "", subject.Engine{Address: dead}, "connection refused"},
		{"other server", "runc", "", subject.Engine{Address: alien}, "does not answer like containerd"},
		{"remote address", "runc", "", subject.Engine{Address: "tcp://127.0.0.1:1"}, "is not the address of a unix socket"},
		{"missing runtime", "nonesuch", "", at(d), "nonesuch"},
		{"not a runtime", "/bin/false", "", at(d), "/bin/false --version"},
		{"missing shim", "io.containerd.nonesuch.v1", "", at(d), "no containerd-shim-nonesuch-v1 on containerd's path"},
		{"missing Kata shim", "kata", "", at(d), "containerd-shim-kata-v2"},
		{"bridge network", "runc", "", subject.Engine{Address: d.Address, Network: subject.NetworkBridge}, `does not support the network "bridge"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(t.Context(), "containerd/x", c.runtime, c.via, c.e)
			not, ok := errors.AsType[*subject.Unavailable](err)
			check.That(t, ok && not.Name == "containerd/x" && strings.Contains(err.Error(), c.says), "%v, want: %s", err, c.says)
		})
	}
}

func TestRuntimesListsTheDefaultFirst(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		got, err := Runtimes(t.Context(), at(d))
		check.That(t, err == nil && len(got) >= 2 && got[0] == "runc" && got[1] == "crun", "%q, %v", got, err)
	})
}

func TestInfoIsComplete(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		got := must.Get(New(t.Context(), "mine", "crun", "api", at(d)))(t)
		info := got.Info()
		check.That(t, info.Name == "mine" && info.Kind == "containerd" && info.Version == d.Version && info.Path == d.Address && info.Clock == "host",
			"%+v", info)
		for _, op := range subject.Ops {
			o := info.Operations[string(op)]
			check.That(t, (o.Absent == "") == (o.Command != "" && o.Means != "" && o.Done != ""), "%s: %+v", op, o)
		}
		for _, key := range []string{"runtime", "runtime path", "runtime version", "snapshotter", "namespace", "network"} {
			check.That(t, info.Config[key] != "", "no %s in the facts", key)
		}
		root := info.Config["storage root"]
		check.That(t, strings.HasPrefix(root, d.Dir+"/root/"), "storage root %q", root)
	})
}

func TestOldVersionsAreRefused(t *testing.T) {
	for version, want := range map[string]bool{
		"1.6.20~ds1": true, "v2.4.2": true, "2.4.2+unknown": true, "1.7.27": true, "3.0.0-rc.1": true, "dev": true, "": true, "v2.x": true,
		"1.5.18": false, "v1.4.13": false, "0.9.0": false,
	} {
		check.Equal(t, version, supported(version), want)
	}
}

func TestKataFactsDependOnTheEngineEnvironment(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "c.toml")
	must.OK(t, os.WriteFile(config, []byte("[hypervisor.qemu]\n[runtime]\nsandbox_cgroup_only=true\n"), 0o600))
	own := filepath.Join(dir, "sock") // this process is a daemon in the mount namespace of tare
	l := must.Get(net.Listen("unix", own))(t)
	defer func() { _ = l.Close() }()
	elsewhere := engines.Containerd(t, engines.V1).Address // its daemon is in another mount namespace

	for _, c := range []struct{ name, socket, config, only, says string }{
		{"file in the same mounts", own, config, "true", config},
		{"no file, missing shim", own, "", "", "not reported by the engine; its shim was not found"},
		{"file in other mounts", elsewhere, config, "", config + ", not read; the engine's mounts are not tare's"},
		{"no file, other mounts", elsewhere, "", "", "not reported by the engine; the engine's mounts are not tare's"},
		{"missing daemon", filepath.Join(dir, "none"), config, "", config + ", not read; the engine's environment is unavailable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := KataFacts(t.Context(), c.socket, "containerd-shim-kata-nonesuch-v2", c.config)
			check.That(t, got["sandbox_cgroup_only"] == c.only && strings.HasPrefix(got["kata config"], c.says), "%v", got)
		})
	}
}

func TestVariableMatchesTheWholeName(t *testing.T) {
	const environ = "A=1\x00XKATA_CONF_FILE=no\x00KATA_CONF_FILE=/a=b\x00EMPTY=\x00"
	for name, want := range map[string]string{"KATA_CONF_FILE": "/a=b", "A": "1", "EMPTY": ""} {
		got, ok := variable(environ, name)
		check.That(t, ok && got == want, "%s: %q, %v", name, got, ok)
	}
	got, ok := variable(environ, "CONF_FILE")
	check.That(t, !ok, "%q", got)
}

func TestStatisticsOfBothCgroupVersionsAreRead(t *testing.T) {
	for _, c := range []struct {
		name        string
		said        any
		memory, cpu int64
	}{
		{"v1", &one.Metrics{Memory: &one.MemoryStat{Usage: &one.MemoryEntry{Usage: 4096}}, CPU: &one.CPUStat{Usage: &one.CPUUsage{Total: 7}}}, 4096, 7},
		{"v2", &two.Metrics{Memory: &two.MemoryStat{Usage: 4096}, CPU: &two.CPUStat{UsageUsec: 7}}, 4096, 7000},
		{"v1 without controllers", &one.Metrics{}, -1, -1},
		{"v2 without controllers", &two.Metrics{}, -1, -1},
		{"no memory", &two.Metrics{CPU: &two.CPUStat{}}, -1, 0},
		{"overflow", &two.Metrics{Memory: &two.MemoryStat{Usage: 1 << 63}, CPU: &two.CPUStat{UsageUsec: 1 << 62}}, -1, -1},
		{"unknown type", &types.Mount{}, -1, -1},
	} {
		data := must.Get(typeurl.MarshalAny(c.said))(t)
		got := read(data)
		check.That(t, got.Memory == c.memory && got.CPU == c.cpu, "%s: %+v", c.name, got)
	}
}
