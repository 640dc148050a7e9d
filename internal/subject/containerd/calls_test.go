package containerd

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/client"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// told is a task that ends on whatever signal it is sent.
type told struct {
	client.Task
	by    syscall.Signal
	exits chan client.ExitStatus
}

func (t *told) Wait(context.Context) (<-chan client.ExitStatus, error) { return t.exits, nil }

func (t *told) Kill(_ context.Context, s syscall.Signal, _ ...client.KillOpts) error {
	t.by = s
	t.exits <- *client.NewExitStatus(0, time.Now(), nil)
	return nil
}

func TestAContainerIsStoppedByTheSignalThatItsImageNames(t *testing.T) {
	d, task := &driver{waiting: t.Context()}, &told{exits: make(chan client.ExitStatus, 1)}
	d.env.Workload.Cargo = &cargo.Cargo{Process: cargo.Process{Stop: syscall.SIGQUIT}}
	d.Target, d.containers = &Target{}, map[string]*container{"a": {task: task}}
	do, _, err := d.call(t.Context(), subject.Stop, engine.State{Name: "a"}, engine.Place{})
	if err == nil {
		err = do(t.Context())
	}
	if err != nil || task.by != syscall.SIGQUIT {
		t.Errorf("sent %v: %v", task.by, err)
	}
}
