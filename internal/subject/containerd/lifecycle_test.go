package containerd

import (
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
)

func TestContainerdCountsTheSameContainers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s := open(t, d, "crun", enginetest.Environment(t, 5))
		c, err := Connect(t.Context(), d.Address, ownNamespace)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		events, errs := c.Subscribe(t.Context(), `topic=="/containers/create"`, `topic=="/tasks/start"`, `topic=="/containers/delete"`)
		time.Sleep(100 * time.Millisecond) // there is no reply to a subscription
		for _, op := range subject.ContainerOps[:4] {
			enginetest.Must(t, s, op, 5)
		}
		enginetest.Must(t, s, subject.Run, 3)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		nothing(t, d)
		count := map[string]int{}
		for sum := 0; sum < 3*8; sum++ {
			select {
			case e := <-events:
				count[e.Topic]++
			case err := <-errs:
				t.Fatal(err)
			case <-time.After(5 * time.Second):
				t.Fatalf("%v", count)
			}
		}
		for topic, n := range count {
			if n != 8 {
				t.Errorf("%s: %d", topic, n)
			}
		}
	})
}

func TestAHundredLanesAreConfirmedWithinSeconds(t *testing.T) {
	d := engines.Containerd(t, engines.V2)
	s := open(t, d, "crun", enginetest.Environment(t, 100))
	for _, op := range subject.ContainerOps[:3] {
		began := time.Now()
		var last int64
		for _, sample := range enginetest.Must(t, s, op, 100) {
			last = max(last, sample.Returned-sample.Start)
		}
		if rest := time.Since(began) - time.Duration(last); rest > 3*time.Second {
			t.Errorf("%s took %v to confirm", op, rest)
		}
	}
}
