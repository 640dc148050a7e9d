package podman

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/engine/cli/placetest"
)

// placed opens a session of two lanes with a workload, and runs it.
func placed(t *testing.T, p *engines.PodmanEngine, runtime, via, runID string, w subject.Workload) subject.Session {
	t.Helper()
	env := environment(t, runID, 2)
	env.Workload = w
	s := open(t, at(p), runtime, via, env)
	t.Cleanup(func() {
		closed(t, p, s)
		if left := p.Volumes(t); len(left) > 0 {
			t.Errorf("left: %q", left)
		}
	})
	must(t, s, subject.Run, 2)
	return s
}

func TestATmpfsIsTheContainersOwnAndAsLargeAsAskedFor(t *testing.T) {
	p := engines.Podman(t)
	everyWay(t, p, func(t *testing.T, via, runtime string) {
		s := placed(t, p, runtime, via, "tmpfs"+via+runtime, subject.Workload{Tmpfs: 12 << 20})
		placetest.Tmpfs(t, s, 12<<20)
		if runtime != "runsc" {
			placetest.Executable(t, s)
		}
	})
}

func TestAFolderOfTheRootFileSystemGoesWithTheContainer(t *testing.T) {
	p := engines.Podman(t)
	everyWay(t, p, func(t *testing.T, via, runtime string) {
		s := placed(t, p, runtime, via, "root"+via+runtime, subject.Workload{})
		placetest.Rootfs(t, s, func() {
			if err := s.Discard(t.Context(), []int{0}); err != nil {
				t.Fatal(err)
			}
			must(t, s, subject.Run, 1)
		})
	})
}

func TestABlockDeviceIsReadAndWrittenByACommandInTheContainer(t *testing.T) {
	p := engines.Podman(t)
	everyWay(t, p, func(t *testing.T, via, runtime string) {
		link, node := placetest.Loop(t, 4<<20)
		if runtime == "runsc" {
			env := environment(t, "device", 1)
			env.Workload.Device = link
			tg, err := New(t.Context(), "podman/runsc", runtime, via, at(p))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tg.Open(t.Context(), env); !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "gVisor") {
				t.Error(err)
			}
			return
		}
		s := placed(t, p, runtime, via, "device"+via+runtime, subject.Workload{Device: link})
		placetest.Device(t, s, node)
	})
}

func TestAPlaceIsSpecifiedAsTheCommandLineHasIt(t *testing.T) {
	place := cli.Place{Tmpfs: []string{"size=1", "exec"}, Device: "/dev/loop7"}
	var got map[string]any
	if err := json.Unmarshal((&Service{network: "none"}).specify(making{place: place}), &got); err != nil {
		t.Fatal(err)
	}
	mounts := []any{map[string]any{"destination": "/data", "source": "tmpfs", "type": "tmpfs", "options": []any{"size=1", "exec", "notmpcopyup"}}}
	devices := []any{map[string]any{"path": "/dev/loop7:/dev/tare:rwm"}}
	if !reflect.DeepEqual(got["mounts"], mounts) || !reflect.DeepEqual(got["devices"], devices) {
		t.Errorf("%v", got)
	}
	i, err := image.Probe()
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join((&commands{Target: &Target{network: "none"}, image: i}).Line(subject.Run, "name", place), " ")
	if !strings.Contains(line, " --tmpfs /data:size=1,exec,notmpcopyup --device /dev/loop7:/dev/tare:rwm ") || len(place.Tmpfs) != 2 {
		t.Error(line)
	}
}

func TestADeviceOnAServiceElsewhereIsRefused(t *testing.T) {
	env := environment(t, "afar", 1)
	env.Workload.Device = "/dev/loop0"
	_, err := (&Service{name: "podman", afar: "a tunnel"}).Open(t.Context(), env)
	if !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "a device on a service elsewhere (a tunnel)") {
		t.Error(err)
	}
}
