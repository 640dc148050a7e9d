package find

import (
	"context"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/containerd"
	"github.com/tare-bench/tare/internal/subject/cri"
	"github.com/tare-bench/tare/internal/subject/docker"
	"github.com/tare-bench/tare/internal/subject/isula"
	"github.com/tare-bench/tare/internal/subject/kubernetes"
	"github.com/tare-bench/tare/internal/subject/podman"
)

// engines are those that tare can drive, in the order tables show them.
var engines = []engine{
	{name: "docker", ways: []string{"api", "cli"}, new: docker.New, runtimes: docker.Runtimes},
	{name: "podman", new: podman.New, runtimes: podman.Runtimes},
	{name: "containerd", new: containerd.New, runtimes: containerd.Runtimes},
	{name: "isula", new: isula.New, runtimes: isula.Runtimes},
	endpoint("containerd"), endpoint("cri-o"), endpoint("isulad"), endpoint("cri-dockerd"),
	{name: kubernetes.Name, named: true, new: kubernetes.New, runtimes: kubernetes.Runtimes},
}

// criPrefix comes before the name of a CRI endpoint.
const criPrefix = "cri+"

// endpoint is a CRI endpoint as an engine. One of an unknown name is found by
// its address alone.
func endpoint(name string) engine {
	return engine{
		name: criPrefix + name, ways: []string{"api", "cli"},
		new: func(ctx context.Context, full, handler, way string, e subject.Engine) (subject.Target, error) {
			if way == "cli" {
				return cri.NewCommand(ctx, full, name, handler, e)
			}
			return cri.New(ctx, full, name, handler, e)
		},
		runtimes: func(ctx context.Context, e subject.Engine) ([]string, error) { return cri.Runtimes(ctx, name, e) },
	}
}

// IdentifyCRI asks a CRI endpoint for its name, such as "containerd".
func IdentifyCRI(ctx context.Context, address string) (string, error) {
	return cri.Identify(ctx, address)
}

// unlisted is a CRI endpoint of a name that is none of the known ones.
func unlisted(before string) (engine, bool) {
	name, ok := strings.CutPrefix(before, criPrefix)
	return endpoint(name), ok && name != ""
}
