package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/engines"
)

func TestPodmansServiceIsWeighedAsADockerDaemon(t *testing.T) {
	p := engines.Podman(t)
	target := func(t *testing.T) subject.Target { return weigh(t, subject.Engine{Address: p.Host}, "", viaAPI) }
	info := target(t).Info()
	if info.Config["runtime"] != "crun" || info.Config["daemon"] != "on this machine" || info.Clock != "host" || info.Version != p.Version ||
		!slices.ContainsFunc(info.Notes, func(n string) bool { return strings.Contains(n, "Podman's service") }) {
		t.Errorf("%+v", info)
	}
	enginetest.Conforms(t, enginetest.Case{
		Name: "crun", Target: target, Source: "docker stats", GoesOn: true, Swept: 3,
		Left: func(t *testing.T) []string { return slices.Concat(p.Containers(t), p.Images(t), p.Volumes(t)) },
	})
}
