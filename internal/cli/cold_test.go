package cli

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/fake"
)

// afar is a target whose containers are on another machine, or not.
type afar struct {
	fake.Target
	why string
}

func (a *afar) Elsewhere() string { return a.why }

func TestWhatIsOnAnotherMachineIsNotCalledCold(t *testing.T) {
	t.Parallel()
	needRoot(t)
	here := []subject.Target{&fake.Target{Name: "runc"}, &afar{Target: fake.Target{Name: "docker/runc"}}}
	if err := mayBeCold(here); err != nil {
		t.Error(err)
	}
	err := mayBeCold(append(here, &afar{fake.Target{Name: "docker/crun"}, "the daemon is reached over the network"}))
	if err == nil || !strings.Contains(err.Error(), "docker/crun may not be cold") || !strings.Contains(err.Error(), "over the network") {
		t.Errorf("got %v", err)
	}
}
