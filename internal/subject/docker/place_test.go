package docker

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli/placetest"
)

// placed opens a session of two lanes with a workload, and runs it.
func placed(t *testing.T, tg *Target, w subject.Workload) *session {
	t.Helper()
	env := environ(t, 2)
	env.Workload = w
	opened, err := tg.Open(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	s := opened.(*session)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	do(t, s, subject.Run, 2)
	return s
}

// everyWay calls f for each way to drive a daemon, with runc, and for gVisor.
func everyWay(t *testing.T, d *engines.Dockerd, f func(t *testing.T, tg *Target)) {
	for _, c := range []struct{ via, runtime string }{{ViaAPI, "runc"}, {ViaCLI, "runc"}, {ViaAPI, "crun"}, {ViaAPI, "runsc"}} {
		t.Run(c.via+" "+c.runtime, func(t *testing.T) { f(t, weigh(t, subject.Engine{Address: d.Host}, c.runtime, c.via)) })
	}
	if left := append(d.Containers(t), append(d.Images(t), d.Volumes(t)...)...); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestATmpfsIsTheContainersOwnAndAsLargeAsAskedFor(t *testing.T) {
	everyWay(t, engines.Docker(t), func(t *testing.T, tg *Target) {
		s := placed(t, tg, subject.Workload{Tmpfs: 12 << 20})
		placetest.Tmpfs(t, s, 12<<20)
		if tg.oci() != "runsc" {
			placetest.Executable(t, s)
		}
	})
}

func TestAFolderOfTheRootFileSystemGoesWithTheContainer(t *testing.T) {
	everyWay(t, engines.Docker(t), func(t *testing.T, tg *Target) {
		s := placed(t, tg, subject.Workload{})
		placetest.Rootfs(t, s, func() {
			if err := s.Discard(t.Context(), []int{0}); err != nil {
				t.Fatal(err)
			}
			do(t, s, subject.Run, 1)
		})
	})
}

func TestABlockDeviceIsReadAndWrittenByACommandInTheContainer(t *testing.T) {
	everyWay(t, engines.Docker(t), func(t *testing.T, tg *Target) {
		link, node := placetest.Loop(t, 4<<20)
		if tg.oci() == "runsc" {
			env := environ(t, 1)
			env.Workload.Device = link
			if _, err := tg.Open(t.Context(), env); !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "gVisor") {
				t.Error(err)
			}
			return
		}
		s := placed(t, tg, subject.Workload{Device: link})
		placetest.Device(t, s, node)
	})
}

func TestBothWaysGiveAContainerTheSamePlace(t *testing.T) {
	d := engines.Docker(t)
	link, node := placetest.Loop(t, 1<<20)
	made := map[string]string{}
	for _, via := range []string{ViaAPI, ViaCLI} {
		s := placed(t, weigh(t, subject.Engine{Address: d.Host}, "crun", via), subject.Workload{Tmpfs: 1 << 20, Device: link})
		found, err := s.ContainerInspect(t.Context(), s.holds[0].name, client.ContainerInspectOptions{})
		if err != nil {
			t.Fatal(err)
		}
		h := found.Container.HostConfig
		made[via] = compact(map[string]any{"tmpfs": h.Tmpfs, "devices": h.Devices})
	}
	want := `{"devices":[{"CgroupPermissions":"rwm","PathInContainer":"/dev/tare","PathOnHost":"` + node + `"}],"tmpfs":{"/data":"nosuid,nodev,mode=1777,size=1048576,exec"}}`
	if made[ViaAPI] != want || made[ViaCLI] != want {
		t.Errorf("%q", made)
	}
}

func TestADeviceOnADaemonElsewhereIsRefused(t *testing.T) {
	e, _ := serve(t, map[string]string{"GET /containers/json": "[]"})
	env := environ(t, 1)
	env.Workload.Device = filepath.Join(t.TempDir(), "device")
	_, err := weigh(t, e, "", ViaAPI).Open(t.Context(), env)
	if !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), "a device on a daemon elsewhere") {
		t.Error(err)
	}
}
