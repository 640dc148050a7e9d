package cri

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// server is an engine with fixed replies.
type server struct {
	api.UnimplementedRuntimeServiceServer
	api.UnimplementedImageServiceServer
	name   string
	status *api.StatusResponse
	stores *api.ImageFsInfoResponse // nil: layers and images, like containerd and CRI-O
}

func (s *server) Version(context.Context, *api.VersionRequest) (*api.VersionResponse, error) {
	return &api.VersionResponse{Version: "0.1.0", RuntimeName: s.name, RuntimeVersion: "9.9", RuntimeApiVersion: "v1"}, nil
}

func (s *server) Status(context.Context, *api.StatusRequest) (*api.StatusResponse, error) {
	if s.status == nil {
		return nil, status.Error(codes.Internal, "out of order")
	}
	return s.status, nil
}

func (s *server) ImageStatus(context.Context, *api.ImageStatusRequest) (*api.ImageStatusResponse, error) {
	return &api.ImageStatusResponse{}, nil
}

func (s *server) ImageFsInfo(context.Context, *api.ImageFsInfoRequest) (*api.ImageFsInfoResponse, error) {
	if s.stores != nil {
		return s.stores, nil
	}
	in := func(dir string) []*api.FilesystemUsage {
		return []*api.FilesystemUsage{{}, {FsId: &api.FilesystemIdentifier{Mountpoint: dir}}}
	}
	return &api.ImageFsInfoResponse{ImageFilesystems: in("/images"), ContainerFilesystems: in("/layers")}, nil
}

func (s *server) ListPodSandbox(context.Context, *api.ListPodSandboxRequest) (*api.ListPodSandboxResponse, error) {
	return &api.ListPodSandboxResponse{}, nil
}

func ready(info string, handlers ...string) *api.StatusResponse {
	reply := &api.StatusResponse{
		Status: &api.RuntimeStatus{Conditions: []*api.RuntimeCondition{
			{Type: api.RuntimeReady, Status: true}, {Type: api.NetworkReady, Reason: "NoNetwork", Message: "no plugin"},
		}},
		Info: map[string]string{"config": info},
	}
	for _, h := range handlers {
		reply.RuntimeHandlers = append(reply.RuntimeHandlers, &api.RuntimeHandler{Name: h})
	}
	return reply
}

// listen starts a gRPC server and returns its address.
func listen(t *testing.T, register func(s *grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sock")
	l := must.Get(net.Listen("unix", path))(t)
	s := grpc.NewServer(options...)
	register(s)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return "unix://" + path
}

func serve(t *testing.T, e *server) string {
	return listen(t, func(s *grpc.Server) {
		api.RegisterRuntimeServiceServer(s, e)
		api.RegisterImageServiceServer(s, e)
	})
}

// old serves only the version call of v1alpha2.
func old(t *testing.T, name string) string {
	return listen(t, func(s *grpc.Server) {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: "runtime.v1alpha2.RuntimeService", HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{MethodName: "Version", Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				return &api.VersionResponse{Version: "0.1.0", RuntimeName: name, RuntimeVersion: "2.0.3", RuntimeApiVersion: "v1alpha2"}, decode(new(api.VersionRequest))
			}}},
		}, nil)
	})
}

const oneHandler = `{"containerd":{"defaultRuntimeName":"runc","snapshotter":"native","runtimes":{"runc":{"runtimeType":"io.containerd.runc.v2","options":{"SystemdCgroup":true}}}},"sandboxImage":"localhost/pause:1"}`

func TestUnavailableHasReasonAndAdvice(t *testing.T) {
	for _, c := range []struct {
		name, engine, handler, address, network string
		says                                    string
	}{
		{"an unknown engine", "rkt", "", "", "", `unknown CRI engine "rkt"; use one of containerd, cri-o, isulad, cri-dockerd`},
		{"no socket", "cri-o", "", filepath.Join(t.TempDir(), "none"), "", "no such file or directory; start crio, or give its socket"},
		{"remote address", "cri-o", "", "tcp://127.0.0.1:1", "", `"tcp://127.0.0.1:1" is not the address of a unix socket`},
		{"no CRI", "cri-o", "", listen(t, func(*grpc.Server) {}), "", "does not serve CRI"},
		{"other engine", "containerd", "", serve(t, &server{name: "cri-o"}), "", "cri-o serves CRI at"},
		{"iSulad with CRI v1alpha2", "isulad", "", old(t, "iSulad"), "", `iSulad 2.0.3 serves CRI v1alpha2 only; tare weighs v1; build isulad with ENABLE_CRI_API_V1 and set "enable-cri-v1": true`},
		{"containerd with CRI v1alpha2", "containerd", "", old(t, "containerd"), "", "containerd 2.0.3 serves CRI v1alpha2 only; tare weighs v1; install a version"},
		{"no status", "cri-dockerd", "", serve(t, &server{name: "docker"}), "", "out of order"},
		{"not ready", "cri-dockerd", "", serve(t, &server{name: "docker", status: &api.StatusResponse{Status: &api.RuntimeStatus{
			Conditions: []*api.RuntimeCondition{{Type: api.RuntimeReady, Reason: "Booting", Message: "wait"}}}}}), "", "not ready: Booting wait"},
		{"missing handler", "containerd", "kata", serve(t, &server{name: "containerd", status: ready(oneHandler)}), "", `containerd has no runtime handler "kata" (configured: runc)`},
		{"missing network", "containerd", "", serve(t, &server{name: "containerd", status: ready(oneHandler)}), subject.NetworkBridge, "containerd has no network for pods: NoNetwork no plugin"},
		{"iSulad without a pause image", "isulad", "", serve(t, &server{name: "iSulad", status: ready("")}), "", `set "pod-sandbox-image" in`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(t.Context(), "cri+x/y", c.engine, c.handler, subject.Engine{Address: c.address, Network: c.network})
			if not, ok := errors.AsType[*subject.Unavailable](err); !ok || not.Name != "cri+x/y" || not.Advice == "" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want: %s", err, c.says)
			}
		})
	}
}

func TestIdentifyUsesTheRuntimeName(t *testing.T) {
	for says, want := range map[string]string{"containerd": "containerd", "cri-o": "cri-o", "iSulad": "isulad", "docker": "cri-dockerd"} {
		check.Equal(t, says, must.Get(Identify(t.Context(), serve(t, &server{name: says})))(t), want)
	}
	for address, want := range map[string]string{
		serve(t, &server{name: "frakti"}): `unknown CRI engine "frakti"`,
		old(t, "iSulad"):                  "serves CRI v1alpha2 only",
		"tcp://localhost:1":               "not the address of a unix socket",
		"/nonexistent/sock":               "no such file",
	} {
		_, err := Identify(t.Context(), address)
		check.Error(t, err, want)
	}
}

func TestRuntimesListsTheDefaultFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		engine server
		as     string
		want   string
	}{
		{"containerd, from its configuration", server{name: "containerd", status: ready(
			`{"containerd":{"defaultRuntimeName":"runc","runtimes":{"crun":{},"runc":{},"kata":{}}},"sandboxImage":"x"}`)}, "containerd", "runc crun kata"},
		{"list of a newer engine", server{name: "docker", status: ready("", "b", "a", "")}, "cri-dockerd", "a b"},
		{"engine without a list", server{name: "docker", status: ready("no JSON")}, "cri-dockerd", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Runtimes(t.Context(), c.as, subject.Engine{Address: serve(t, &c.engine)})
			if err != nil || strings.Join(got, " ") != c.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

func TestContainerdAddressVariableIsUsed(t *testing.T) {
	t.Setenv("CONTAINERD_ADDRESS", strings.TrimPrefix(serve(t, &server{name: "containerd", status: ready(oneHandler)}), "unix://"))
	must.Get(New(t.Context(), "mine", "containerd", "", subject.Engine{}))(t)
	_, err := New(t.Context(), "mine", "containerd", "", subject.Engine{Address: "unix:///given.sock"})
	check.Error(t, err, "given.sock")
}

// tare density watches the disk of this folder. iSulad and cri-dockerd only report the file
// system of images. iSulad has its layers in a sibling of that folder. cri-dockerd reports
// the folder of dockerd.
func TestLayersRootFallsBackToTheImageFolder(t *testing.T) {
	t.Parallel()
	images := func(at string) *api.ImageFsInfoResponse {
		return &api.ImageFsInfoResponse{ImageFilesystems: []*api.FilesystemUsage{{
			Timestamp: 1780000000, FsId: &api.FilesystemIdentifier{Mountpoint: at}, UsedBytes: &api.UInt64Value{Value: 7 << 20}, InodesUsed: &api.UInt64Value{Value: 210}}}}
	}
	for name, c := range map[string]struct {
		says, engine string
		stores       *api.ImageFsInfoResponse
		want         string
	}{
		"iSulad":                       {"iSulad", "isulad", images("/opt/isulad/lib/storage/overlay-images"), "/opt/isulad/lib/storage/overlay-images"},
		"dockerd behind cri-dockerd":   {"docker", "cri-dockerd", images("/var/lib/docker"), "/var/lib/docker"},
		"engine without a file system": {"docker", "cri-dockerd", &api.ImageFsInfoResponse{}, ""},
	} {
		conn, _, err := open(t.Context(), "mine", c.engine, subject.Engine{Address: serve(t, &server{name: c.says, status: ready(""), stores: c.stores})})
		must.OK(t, err)
		defer conn.close()
		check.Equal(t, name, must.Get(conn.ask(t.Context(), c.engine))(t).storage.root, c.want)
	}
}

func TestInfoIsComplete(t *testing.T) {
	e := subject.Engine{Address: serve(t, &server{name: "containerd", status: ready(oneHandler)})}
	got := must.Get(New(t.Context(), "mine", "containerd", "", e))(t)
	info := got.Info()
	if info.Name != "mine" || info.Kind != "cri" || info.Version != "9.9" || info.Clock != "host" {
		t.Errorf("%+v", info)
	}
	for _, op := range subject.Ops {
		if o := info.Operations[string(op)]; o.Absent != "" || o.Command == "" || o.Means == "" || o.Done == "" {
			t.Errorf("%s: %+v", op, o)
		}
	}
	for key, want := range map[string]string{
		"runtime": "io.containerd.runc.v2", "default handler": "runc", "snapshotter": "native", "cgroup driver": "systemd",
		"network": "host", "storage root": "/layers", "pause image": "localhost/pause:1 (made by tare: the engine has none)",
	} {
		check.Equal(t, key, info.Config[key], want)
	}
}
