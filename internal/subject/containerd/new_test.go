package containerd

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestWhatCannotBeWeighedSaysWhy(t *testing.T) {
	d := engines.Containerd(t, engines.V1)
	dead := filepath.Join(t.TempDir(), "dead.sock")
	l, err := net.Listen("unix", dead)
	must.OK(t, err)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
	alien := serve(t, grpc.NewServer()) // speaks gRPC, and none of containerd's services

	for _, c := range []struct {
		name, runtime, via string
		e                  subject.Engine
		says               string
	}{
		{"no socket", "runc", "", subject.Engine{Address: filepath.Join(t.TempDir(), "none.sock")}, "--containerd-address"},
		{"nobody listens", "runc", "", subject.Engine{Address: dead}, "connection refused"},
		{"another server", "runc", "", subject.Engine{Address: alien}, "does not answer as containerd does"},
		{"an address elsewhere", "runc", "", subject.Engine{Address: "tcp://127.0.0.1:1"}, "is no unix socket's"},
		{"a runtime that is not here", "nonesuch", "", at(d), "there is no nonesuch"},
		{"a program that is no runtime", "/bin/false", "", at(d), "/bin/false --version"},
		{"a shim that is not here", "io.containerd.nonesuch.v1", "", at(d), "there is no containerd-shim-nonesuch-v1 on containerd's path"},
		{"kata without its shim", "kata", "", at(d), "containerd-shim-kata-v2"},
		{"a command line", "runc", "cli", at(d), "through its API only"},
		{"a bridge", "runc", "", subject.Engine{Address: d.Address, Network: subject.NetworkBridge}, `gives its containers no network "bridge"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(t.Context(), "containerd/x", c.runtime, c.via, c.e)
			if not, ok := errors.AsType[*subject.Unavailable](err); !ok || not.Name != "containerd/x" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, not: %s", err, c.says)
			}
		})
	}
}

func TestRuntimesBeginWithTheDefault(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		got, err := Runtimes(t.Context(), at(d))
		if err != nil || len(got) < 2 || got[0] != "runc" || got[1] != "crun" {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestInfoTellsWhatIsWeighed(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		got, err := New(t.Context(), "mine", "crun", "api", at(d))
		must.OK(t, err)
		info := got.Info()
		if info.Name != "mine" || info.Kind != "containerd" || info.Version != d.Version || info.Path != d.Address || info.Clock != "host" {
			t.Errorf("%+v", info)
		}
		for _, op := range subject.Ops {
			if o := info.Operations[string(op)]; (o.Absent == "") != (o.Command != "" && o.Means != "" && o.Done != "") {
				t.Errorf("%s: %+v", op, o)
			}
		}
		for _, key := range []string{"runtime", "runtime path", "runtime version", "snapshotter", "namespace", "network"} {
			if info.Config[key] == "" {
				t.Errorf("it does not tell the %s", key)
			}
		}
		if root := info.Config["storage root"]; !strings.HasPrefix(root, d.Dir+"/root/") {
			t.Errorf("it stores in %q", root)
		}
	})
}

func TestOldVersionsAreRefused(t *testing.T) {
	for version, want := range map[string]bool{
		"1.6.20~ds1": true, "v2.4.2": true, "2.4.2+unknown": true, "1.7.27": true, "3.0.0-rc.1": true, "dev": true, "": true, "v2.x": true,
		"1.5.18": false, "v1.4.13": false, "0.9.0": false,
	} {
		if supported(version) != want {
			t.Errorf("%q: %v", version, !want)
		}
	}
}
