package cri

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// answering is an engine whose answers are made up.
type answering struct {
	server
	exec  func(ctx context.Context) (*api.ExecSyncResponse, error)
	asked chan *api.ExecSyncRequest
	stats []*api.ContainerStats
}

func (a *answering) ExecSync(ctx context.Context, r *api.ExecSyncRequest) (*api.ExecSyncResponse, error) {
	a.asked <- r
	return a.exec(ctx)
}

func (a *answering) ListContainerStats(context.Context, *api.ListContainerStatsRequest) (*api.ListContainerStatsResponse, error) {
	return &api.ListContainerStatsResponse{Stats: a.stats}, nil
}

// session is one with that engine, with a pod on each of two lanes and a
// container in the first.
func (a *answering) session(t *testing.T) *session {
	t.Helper()
	a.asked = make(chan *api.ExecSyncRequest, 1)
	a.server = server{name: "containerd", status: ready("{}", "runc")}
	address := listen(t, func(s *grpc.Server) {
		api.RegisterRuntimeServiceServer(s, a)
		api.RegisterImageServiceServer(s, a)
	})
	conn, version, err := open(t.Context(), "x", "containerd", subject.Engine{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.close)
	return &session{
		Target: &Target{name: "x", engineName: "containerd", version: version}, conn: conn,
		held: []*held{{pod: "pod", container: "container", token: "token"}, {lane: 1, pod: "other"}},
	}
}

func TestAnswersToACommandAreBoundedAndJudged(t *testing.T) {
	for _, c := range []struct {
		name   string
		reply  *api.ExecSyncResponse
		err    error
		exit   int
		output int
		says   string // "" for no error
	}{
		{name: "a success", reply: &api.ExecSyncResponse{Stdout: []byte("yes")}, output: 3},
		{name: "two streams of 16 MiB", reply: &api.ExecSyncResponse{Stdout: bytes.Repeat([]byte("x"), 16<<20), Stderr: bytes.Repeat([]byte("y"), 16<<20)}, output: subject.MaxOutput},
		{name: "a failure", reply: &api.ExecSyncResponse{ExitCode: 137}, exit: 137},
		{name: "a command that could not be run", reply: &api.ExecSyncResponse{ExitCode: -1, Stderr: []byte("no monitor")}, exit: -1, says: "could not run it"},
		{name: "an error", err: errors.New("no such container"), says: "no such container"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &answering{exec: func(context.Context) (*api.ExecSyncResponse, error) { return c.reply, c.err }}
			got, err := a.session(t).Exec(t.Context(), 0, []string{"/probe", "a b"})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v", err)
			}
			if got.Exit != c.exit || len(got.Output) != c.output || len(got.Stderr) > subject.MaxOutput || got.Command != "ExecSync token /probe 'a b'" {
				t.Errorf("exit %d, %d bytes, %s", got.Exit, len(got.Output), got.Command)
			}
			if asked := <-a.asked; asked.Timeout != 0 || !slices.Equal(asked.Cmd, []string{"/probe", "a b"}) {
				t.Errorf("%v", asked)
			}
		})
	}
}

func TestAnEngineThatDoesNotEndACommandIsLeft(t *testing.T) {
	a := &answering{exec: func(ctx context.Context) (*api.ExecSyncResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	s := a.session(t)
	ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := s.Exec(ctx, 0, []string{"/probe"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "may still run") || time.Since(began) > 2*giveUp {
		t.Errorf("after %v: %v", time.Since(began), err)
	}
	if asked := <-a.asked; asked.Timeout != 3 { // what is left, rounded up, and one
		t.Errorf("a time-out of %d s", asked.Timeout)
	}
	for n, says := range map[int]string{1: "lane 1 has no container", 7: "lane 7", -1: "lane -1"} {
		if _, err := s.Exec(t.Context(), n, []string{"/probe"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v", err)
		}
	}
}

func TestWhatIsNotReportedIsNoFigure(t *testing.T) {
	of := func(id string) *api.ContainerAttributes { return &api.ContainerAttributes{Id: id} }
	for _, c := range []struct {
		name  string
		stats []*api.ContainerStats
		want  record.Statistic
	}{
		{"nothing", nil, record.Statistic{Memory: -1, CPU: -1}},
		{"those of others", []*api.ContainerStats{{Attributes: of("alien"), Memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{Value: 1}}}}, record.Statistic{Memory: -1, CPU: -1}},
		{"no attributes", []*api.ContainerStats{{}}, record.Statistic{Memory: -1, CPU: -1}},
		{"no figures", []*api.ContainerStats{{Attributes: of("container"), Memory: &api.MemoryUsage{}}}, record.Statistic{Memory: -1, CPU: -1}},
		{"a zero", []*api.ContainerStats{{Attributes: of("container"), Memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{}}}}, record.Statistic{CPU: -1}},
		{"more than there can be", []*api.ContainerStats{{Attributes: of("container"), Memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{Value: 1 << 63}}, Cpu: &api.CpuUsage{UsageCoreNanoSeconds: &api.UInt64Value{Value: 5}}}},
			record.Statistic{Memory: -1, CPU: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &answering{stats: c.stats}
			got, err := a.session(t).Statistics(t.Context()) // it serves none of pods
			c.want.Source = ofContainers
			if err != nil || len(got) != 1 || got[0] != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
