package cri

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/record"
)

// holding opens a session with a container on lane 0 and a pod on lane 1.
func (n *node) holding() (s *session, name string) {
	n.t.Helper()
	s = n.open()
	n.t.Cleanup(func() { _ = s.Close(context.Background()) })
	enginetest.Must(n.t, s, subject.RunPod, 2)
	enginetest.Must(n.t, s, subject.Create, 1)
	return s, s.Held()[0].Name
}

func TestExecRepliesAreBoundedAndChecked(t *testing.T) {
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
			n := onNode(t)
			s, name := n.holding()
			n.exec = func(_ context.Context, asked *api.ExecSyncRequest) (*api.ExecSyncResponse, error) {
				if asked.Timeout != 0 || !slices.Equal(asked.Cmd, []string{"/probe", "a b"}) {
					t.Errorf("%v", asked)
				}
				return c.reply, c.err
			}
			got, err := s.Exec(t.Context(), 0, []string{"/probe", "a b"})
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v", err)
			}
			if got.Exit != c.exit || len(got.Output) != c.output || len(got.Stderr) > subject.MaxOutput || got.Command != "ExecSync "+name+" /probe 'a b'" {
				t.Errorf("exit %d, %d bytes, %s", got.Exit, len(got.Output), got.Command)
			}
		})
	}
}

func TestExecReturnsWhileTheCommandContinues(t *testing.T) {
	n := onNode(t)
	s, _ := n.holding()
	ctx, cancel := context.WithTimeout(t.Context(), 99900*time.Millisecond)
	defer cancel()
	n.exec = func(asking context.Context, asked *api.ExecSyncRequest) (*api.ExecSyncResponse, error) {
		// The remaining time, rounded up, plus one second.
		end, _ := asking.Deadline()
		if left := time.Until(end).Seconds(); asked.Timeout < int64(math.Ceil(left))+1 || asked.Timeout > 101 {
			t.Errorf("timeout of %d s, with %g s left", asked.Timeout, left)
		}
		cancel()
		<-asking.Done()
		return nil, asking.Err()
	}
	if _, err := s.Exec(ctx, 0, []string{"/probe"}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "may run until") {
		t.Errorf("%v", err)
	}
	for n, says := range map[int]string{1: "lane 1 has no container", 7: "lane 7", -1: "lane -1"} {
		_, err := s.Exec(t.Context(), n, []string{"/probe"})
		check.Error(t, err, says)
	}
}

func TestMissingStatisticsAreUnavailable(t *testing.T) {
	of := func(id string) *api.ContainerAttributes { return &api.ContainerAttributes{Id: id} }
	for _, c := range []struct {
		name  string
		stats []*api.ContainerStats
		want  record.Statistic
	}{
		{"nothing", nil, record.Statistic{Memory: -1, CPU: -1}},
		{"foreign container", []*api.ContainerStats{{Attributes: of("alien"), Memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{Value: 1}}}}, record.Statistic{Memory: -1, CPU: -1}},
		{"no attributes", []*api.ContainerStats{{}}, record.Statistic{Memory: -1, CPU: -1}},
		{"no values", []*api.ContainerStats{{Attributes: of("container"), Memory: &api.MemoryUsage{}}}, record.Statistic{Memory: -1, CPU: -1}},
		{"zero", []*api.ContainerStats{{Attributes: of("container"), Memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{}}}}, record.Statistic{CPU: -1}},
		{"impossible values", []*api.ContainerStats{{Attributes: of("container"), Memory: &api.MemoryUsage{WorkingSetBytes: &api.UInt64Value{Value: 1 << 63}}, Cpu: &api.CpuUsage{UsageCoreNanoSeconds: &api.UInt64Value{Value: 5}}}},
			record.Statistic{Memory: -1, CPU: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := onNode(t)
			s, name := n.holding()
			for _, x := range c.stats {
				if x.Attributes.GetId() == "container" {
					x.Attributes.Id = name
				}
			}
			n.stats = c.stats
			got, err := s.Statistics(t.Context()) // the server does not support pod statistics
			c.want.Source = ofContainers
			if err != nil || len(got) != 2 || got[0] != c.want {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestUnseenExitIsAFailureOfTheEngine(t *testing.T) {
	for _, c := range []struct {
		exit         int32
		reason, says string
		kind         string
	}{
		{0, "Completed", "", ""},
		{137, "Error", "killed by signal 9", record.FailWorkload},
		{128, "StartError", "did not see how the workload ended: its status 128 is the engine's own (StartError)", record.FailState},
	} {
		n := onNode(t)
		s, _ := n.holding()
		n.exit, n.reason = c.exit, c.reason
		f := enginetest.Do(t, s, subject.Stop, 1)[0].Failure
		if (f == nil) != (c.kind == "") || f != nil && (f.Kind != c.kind || !strings.Contains(f.Detail, c.says)) {
			t.Errorf("%d %s: %+v", c.exit, c.reason, f)
		}
	}
}

// timerless is a context with a deadline and no timer.
type timerless struct {
	context.Context
	end time.Time
}

func (c timerless) Deadline() (time.Time, bool) { return c.end, true }

func TestServerDeadlineCountsAsTimeoutOnceOursPassed(t *testing.T) {
	for name, c := range map[string]struct {
		code codes.Code
		left time.Duration
		ours bool
	}{
		"server timeout just before ours": {codes.DeadlineExceeded, -time.Microsecond, true},
		"server timeout before ours":      {codes.DeadlineExceeded, time.Hour, false},
		"other error":                     {codes.Internal, -time.Hour, false},
	} {
		ctx := timerless{t.Context(), time.Now().Add(c.left)}
		err := callError(ctx, "RunPodSandbox", status.Error(c.code, "x"))
		check.Equal(t, name, errors.Is(err, context.DeadlineExceeded), c.ours)
	}
}

// silent is an engine that never answers.
type silent struct{ api.RuntimeServiceClient }

func (silent) ListPodSandbox(ctx context.Context, _ *api.ListPodSandboxRequest, _ ...grpc.CallOption) (*api.ListPodSandboxResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) ListContainerStats(ctx context.Context, _ *api.ListContainerStatsRequest, _ ...grpc.CallOption) (*api.ListContainerStatsResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestCallsTimeOut(t *testing.T) {
	d := &driver{Target: &Target{}, env: subject.Env{RunID: "r"}, conn: &connection{runtime: silent{}}}
	for name, c := range map[string]struct {
		ask  func(context.Context) error
		most time.Duration
	}{
		"Look":       {func(ctx context.Context) error { _, err := d.Look(ctx, nil); return err }, patience},
		"List":       {func(ctx context.Context) error { _, err := d.List(ctx); return err }, patience},
		"Remove":     {func(ctx context.Context) error { return d.Remove(ctx, nil) }, time.Minute},
		"statistics": {func(ctx context.Context) error { _, err := d.containerStatistics(ctx, nil); return err }, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), max(c.most, 30*time.Second))
				defer cancel()
				began := time.Now()
				if err := c.ask(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != c.most {
					t.Errorf("after %v, want %v: %v", time.Since(began), c.most, err)
				}
			})
		})
	}
}
