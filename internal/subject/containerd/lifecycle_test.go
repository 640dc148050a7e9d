package containerd

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestContainerdCountsTheSameContainers(t *testing.T) {
	onBoth(t, func(t *testing.T, d *engines.ContainerdDaemon) {
		s := open(t, d, "crun", enginetest.Environment(t, 5))
		c, err := Connect(t.Context(), d.Address, ownNamespace)
		must.OK(t, err)
		defer func() { _ = c.Close() }()
		const begun, ended = "/namespaces/create", "/namespaces/update"
		events, errs := c.Subscribe(t.Context(), `topic=="/containers/create"`, `topic=="/tasks/start"`, `topic=="/containers/delete"`, `topic=="`+begun+`"`, `topic=="`+ended+`"`)
		// There is no reply to a subscription, and what it tells has no end: both are
		// marked by events of other kinds, of which the first may come too early.
		tell := func(name string) {
			all := c.NamespaceService()
			must.OK(t, errors.Join(all.Create(t.Context(), name, nil), all.SetLabel(t.Context(), name, "it", "is"), all.Delete(t.Context(), name)))
		}
		next := func(within time.Duration) string {
			select {
			case e := <-events:
				return e.Topic
			case err := <-errs:
				t.Fatal(err)
			case <-time.After(within):
			}
			return ""
		}
		for tell("begins"); next(10*time.Millisecond) != begun; {
			tell("begins")
		}
		for _, op := range subject.ContainerOps[:4] {
			enginetest.Must(t, s, op, 5)
		}
		enginetest.Must(t, s, subject.Run, 3)
		must.OK(t, s.Close(t.Context()))
		nothing(t, d)
		// Of the first marks, too, an event of that kind may be on its way still: it
		// comes before any of a container.
		count := map[string]int{}
		tell("ends")
		for topic := ""; topic != ended || count["/containers/create"] == 0; {
			if topic = next(time.Minute); topic == "" {
				t.Fatalf("no event in a minute, after %v", count)
			}
			count[topic]++
		}
		delete(count, begun)
		delete(count, ended)
		if want := map[string]int{"/containers/create": 8, "/tasks/start": 8, "/containers/delete": 8}; !maps.Equal(count, want) {
			t.Errorf("%v", count)
		}
	})
}
