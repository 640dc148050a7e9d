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

// engines are the supported engines, in the order of tables.
var engines = []engine{
	{name: "docker", ways: []string{"api", "cli"}, new: docker.New, runtimes: docker.Runtimes},
	{name: "podman", new: podman.New, runtimes: podman.Runtimes},
	{name: "containerd", new: containerd.New, runtimes: containerd.Runtimes},
	{name: "isula", new: isula.New, runtimes: isula.Runtimes},
	endpoint("containerd"), endpoint("cri-o"), endpoint("isulad"), endpoint("cri-dockerd"),
	{name: kubernetes.Name, named: true, new: kubernetes.New, runtimes: kubernetes.Runtimes},
}

// criPrefix precedes the name of a CRI endpoint.
const criPrefix = "cri+"

// endpoint returns a CRI endpoint as an engine. One with an unknown name needs an address.
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

// IdentifyCRI returns the name of the engine behind a CRI endpoint, such as "containerd".
var IdentifyCRI = cri.Identify

// unlisted returns a CRI endpoint with a name that is not in engines.
func unlisted(before string) (engine, bool) {
	name, ok := strings.CutPrefix(before, criPrefix)
	return endpoint(name), ok && name != ""
}
