package engine

import (
	"context"
	"strings"
	"testing"
)

// looking is an engine that knows some containers.
type looking struct {
	*fake
	known map[string]State
}

func (l looking) Look(context.Context, []string) (map[string]State, error) { return l.known, nil }

func TestAContainerThatIsNotKnownCostsItsOwnLaneOnly(t *testing.T) {
	s := &Session{o: Options{Target: "docker/runc", Called: "docker", Driver: looking{newFake(), map[string]State{"a": {ID: "1"}, "c": {ID: "3"}}}},
		lanes: []container{{name: "a"}, {name: "b"}, {}, {name: "c"}}}
	boxes, err := s.Sandboxes(t.Context())
	if err == nil || !strings.Contains(err.Error(), "docker does not know the container b any more") || len(boxes) != 2 || boxes[0].Lane != 0 || boxes[1].Lane != 3 || boxes[1].IDs[0] != "3" {
		t.Errorf("%+v, %v", boxes, err)
	}
	told, err := s.Told(t.Context(), "docker stats", func(_ context.Context, states []State) (map[string]Usage, error) {
		return map[string]Usage{"3": {Memory: 7}}, nil
	})
	if err == nil || !strings.Contains(err.Error(), "container b any more") || !strings.Contains(err.Error(), "says nothing of the container 1") || len(told) != 1 || told[0].Lane != 3 || told[0].Memory != 7 {
		t.Errorf("%+v, %v", told, err)
	}
}
