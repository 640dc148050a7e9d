package cri

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/subject"
)

// silent is an engine that answers nothing.
type silent struct{ api.RuntimeServiceClient }

func (silent) ListPodSandbox(ctx context.Context, _ *api.ListPodSandboxRequest, _ ...grpc.CallOption) (*api.ListPodSandboxResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (silent) ListContainerStats(ctx context.Context, _ *api.ListContainerStatsRequest, _ ...grpc.CallOption) (*api.ListContainerStatsResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestAnEngineHasTheTimeThatWhatIsAskedMayTake(t *testing.T) {
	d := &driver{Target: &Target{}, env: subject.Env{RunID: "r"}, conn: &connection{runtime: silent{}}}
	for name, c := range map[string]struct {
		ask  func(context.Context) error
		most time.Duration
	}{
		"a look":     {func(ctx context.Context) error { _, err := d.Look(ctx, nil); return err }, patience},
		"a list":     {func(ctx context.Context) error { _, err := d.List(ctx); return err }, patience},
		"a removal":  {func(ctx context.Context) error { return d.Remove(ctx, nil) }, time.Minute},
		"statistics": {func(ctx context.Context) error { _, err := d.containerStatistics(ctx, nil); return err }, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), max(c.most, 30*time.Second))
				defer cancel()
				began := time.Now()
				if err := c.ask(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != c.most {
					t.Errorf("after %v, not %v: %v", time.Since(began), c.most, err)
				}
			})
		})
	}
}
