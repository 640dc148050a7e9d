package docker

import (
	"context"
	"strings"

	"github.com/moby/moby/client/pkg/versions"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// passed are the variables by which the docker command finds its daemon. Others, such as
// DOCKER_CONTENT_TRUST, could make it contact further services.
var passed = []string{
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
	"DOCKER_API_VERSION", "SSH_AUTH_SOCK",
}

// oldestCommand is the first version with create --pull.
const oldestCommand = "20.10"

// findCommand finds the docker command and checks its version.
func (t *Target) findCommand(ctx context.Context) error {
	p, err := cli.Find(t.engine, "docker", passed...)
	if err != nil {
		return engine.Unavailable(t.name, "apt-get install docker-cli, or docker.io", "no docker command: %v", err)
	}
	banner, err := cli.Program{Path: p.Path, Env: p.Env}.Run(ctx, "--version")
	if err != nil {
		return engine.Unavailable(t.name, "run it by hand", "%v", err)
	}
	if t.engine.Address != "" {
		p.Args = append([]string{"--host", t.host}, p.Args...)
	}
	line, _, _ := strings.Cut(string(banner), "\n")
	// "Docker version 28.2.2, build e6534b4". Other programs print their own name.
	rest, is := strings.CutPrefix(line, "Docker version ")
	version, _, _ := strings.Cut(rest, ",")
	if !is || version == "" {
		return engine.Unavailable(t.name, "give the path of Docker's own command", "%s is not Docker's: %s --version printed %q", p.Path, p.Path, line)
	}
	if versions.LessThan(version, oldestCommand) {
		return engine.Unavailable(t.name, "upgrade it, or weigh Docker through its API", "%s has version %s: create --pull needs %s", p.Path, version, oldestCommand)
	}
	t.command, t.client = &p, version
	return nil
}
