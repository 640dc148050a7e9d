package containerd

import (
	"errors"
	"maps"
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
		const mark = "/namespaces/create"
		events, errs := c.Subscribe(t.Context(), `topic=="/containers/create"`, `topic=="/tasks/start"`, `topic=="/containers/delete"`, `topic=="`+mark+`"`)
		// There is no reply to a subscription, and what it tells has no end: both
		// are marked by an event of another kind.
		made, seen := 0, 0
		tell := func(name string) {
			made++
			if err := errors.Join(c.NamespaceService().Create(t.Context(), name, nil), c.NamespaceService().Delete(t.Context(), name)); err != nil {
				t.Fatal(err)
			}
		}
		for begun := false; !begun; {
			tell("begins")
			select {
			case <-events:
				begun, seen = true, 1
			case <-time.After(10 * time.Millisecond):
			}
		}
		for _, op := range subject.ContainerOps[:4] {
			enginetest.Must(t, s, op, 5)
		}
		enginetest.Must(t, s, subject.Run, 3)
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		nothing(t, d)
		tell("ends")
		count := map[string]int{}
		for seen < made {
			select {
			case e := <-events:
				if e.Topic == mark {
					seen++
				} else {
					count[e.Topic]++
				}
			case err := <-errs:
				t.Fatal(err)
			}
		}
		if want := map[string]int{"/containers/create": 8, "/tasks/start": 8, "/containers/delete": 8}; !maps.Equal(count, want) {
			t.Errorf("%v", count)
		}
	})
}
