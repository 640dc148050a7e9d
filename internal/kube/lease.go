package kube

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Silence is the timeout for an API server that does not answer.
const Silence = 5 * time.Minute

// A run renews its Lease every heartbeat. Without a renewal for leaseTime, which exceeds
// Silence, it may be dead. Without one for surely, it is dead even if clocks differ.
const (
	heartbeat = 5 * time.Second
	leaseTime = Silence + 6*heartbeat
	surely    = time.Hour
)

// Lease shows other machines that a run is active. It is created before all other objects,
// renewed during the run, and removed last.
type Lease struct {
	client          API
	namespace, name string
	stop            context.CancelFunc
	stopped         chan struct{}
}

// Hold creates the Lease of a run and renews it until Release.
func Hold(ctx context.Context, client API, namespace, runID string) (*Lease, error) {
	l := &Lease{client: client, namespace: namespace, name: "tare-" + runID, stopped: make(chan struct{})}
	host, _ := os.Hostname()
	now, seconds, holder := metav1.NowMicro(), int32(leaseTime/time.Second), fmt.Sprintf("%s, pid %d", host, os.Getpid())
	_, err := client.Leases(namespace).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: l.name, Labels: Labels(runID)},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, Explain(err, "create the run's Lease")
	}
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx)) // it must outlive ctx, for the removal of objects
	go l.renew(ctx)
	return l, nil
}

func (l *Lease) renew(ctx context.Context) {
	defer close(l.stopped)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		// If a renewal fails or hangs, the next one replaces it.
		once, cancel := context.WithTimeout(ctx, heartbeat)
		_, _ = l.client.Leases(l.namespace).Patch(once, l.name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro)), metav1.PatchOptions{})
		cancel()
	}
}

// Release stops the renewal. It removes the Lease, unless objects are left that tare clean
// must find by it.
func (l *Lease) Release(ctx context.Context, left bool) error {
	l.stop()
	<-l.stopped
	if left {
		return nil
	}
	err := l.client.Leases(l.namespace).Delete(ctx, l.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return Explain(err, "remove the run's Lease")
}

// Beats reports for each run with a Lease whether it is alive. Clocks of machines may
// differ, so it checks an apparently expired Lease again after a heartbeat.
func Beats(ctx context.Context, client API, namespace string) (alive map[string]bool, err error) {
	alive = map[string]bool{}
	seen := map[string]time.Time{}
	for doubt := true; doubt; {
		all, err := client.Leases(namespace).List(ctx, metav1.ListOptions{LabelSelector: Made})
		if err != nil {
			return nil, Explain(err, "list Leases of runs")
		}
		doubt = false
		for _, l := range all.Items {
			var renewed time.Time
			if l.Spec.RenewTime != nil {
				renewed = l.Spec.RenewTime.Time
			}
			age := time.Since(renewed).Abs()
			before, again := seen[l.Name]
			id := l.Labels[engine.RunLabel]
			alive[id] = alive[id] || age < leaseTime || again && !renewed.Equal(before)
			doubt = doubt || !alive[id] && !again && age < surely
			seen[l.Name] = renewed
		}
		if doubt && machine.Sleep(ctx, heartbeat*3/2) != nil {
			return nil, ctx.Err()
		}
	}
	return alive, nil
}
