package engines

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/tare-bench/tare/internal/testing/need"
)

// Dockerd is a running Docker daemon.
type Dockerd struct {
	Host          string // unix://…, as for docker -H
	Root          string // contains all of its files
	Command       string // the docker command
	Pid           int    // of dockerd
	ContainerdPid int    // of the containerd that only this dockerd uses
	Runtimes      []string
	Version       string
}

// Docker starts Debian's dockerd with the runtimes runc (the default), crun and, if
// installed, runsc.
func Docker(t TB, opts ...Option) *Dockerd {
	t.Helper()
	need.Engine(t, "docker")
	o := collect(opts)
	return once(t, "docker "+o.key(), func() (*Dockerd, error) { return startDocker(o) })
}

func startDocker(o options) (*Dockerd, error) {
	containerd, err1 := program("containerd", debian...)
	dockerd, err2 := program("dockerd", debian...)
	_, err3 := program("runc") // Docker finds it in the path, because the name is reserved
	crun, err4 := program("crun")
	client, err5 := program("docker", debian...)
	if err5 != nil {
		client, err5 = program("docker")
	}
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	d := &Dockerd{Command: client, Runtimes: []string{"runc", "crun"}}
	type dockerRuntime struct {
		Path string   `json:"path"`
		Args []string `json:"runtimeArgs,omitempty"`
	}
	runtimes := map[string]dockerRuntime{"crun": {Path: crun}}
	if p := Runsc(); p != "" {
		runtimes["runsc"] = dockerRuntime{p, runscArgs}
		d.Runtimes = append(d.Runtimes, "runsc")
	}
	for _, r := range o.runtimes {
		runtimes[r.name] = dockerRuntime{r.path, r.args}
		d.Runtimes = append(d.Runtimes, r.name)
	}
	in, err := start(func(s *spec) error {
		at := func(name string) string { return filepath.Join(s.Dir, name) }
		config, err := json.Marshal(map[string]any{
			"runtimes":         runtimes,
			"data-root":        at("data"),
			"exec-root":        at("exec"),
			"pidfile":          at("docker.pid"),
			"hosts":            []string{"unix://" + at("docker.sock")},
			"containerd":       at("containerd.sock"),
			"exec-opts":        []string{"native.cgroupdriver=cgroupfs"},
			"cgroup-parent":    s.Parent,
			"storage-driver":   "overlay2",
			"iptables":         false,
			"ip6tables":        false,
			"ip-forward":       false,
			"userland-proxy":   false,
			"oom-score-adjust": 0, // a lower value requires CAP_SYS_RESOURCE
			"shutdown-timeout": 1,
			"bip":              "172.30.255.1/24",
			"default-runtime":  "runc",
		})
		if err != nil {
			return err
		}
		d.Host, d.Root = "unix://"+at("docker.sock"), s.Dir
		s.Private = []string{"/run/containerd/s", "/run/containerd/runc", "/run/netns", "/run/docker"}
		s.Daemons = []daemon{
			{Name: "containerd", Argv: []string{containerd, "--config", at("containerd.toml")}, Socket: at("containerd.sock")},
			{Name: "dockerd", Argv: []string{dockerd, "--config-file", at("daemon.json")}, Socket: at("docker.sock"),
				Env: []string{"DOCKER_TMPDIR=" + at("tmp")}},
		}
		return write(s.Dir, map[string]string{
			"daemon.json": string(config),
			"containerd.toml": fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
[grpc]
  address = %q
`, at("containerd"), at("containerd-state"), at("containerd.sock")),
		})
	})
	if err != nil {
		return nil, err
	}
	d.Pid, d.ContainerdPid = in.pids["dockerd"], in.pids["containerd"]
	version, err := output(nil, d.Command, "-H", d.Host, "version", "--format", "{{.Server.Version}}")
	if err != nil {
		return nil, fmt.Errorf("dockerd listens and does not answer: %w%s", err, in.tails())
	}
	d.Version = version
	return d, nil
}

// Containers lists the ids of all containers, running or not.
func (d *Dockerd) Containers(t TB) []string {
	t.Helper()
	return list(t, d.Command, "-H", d.Host, "ps", "-aq", "--no-trunc")
}

// Images lists all images, as NAME:TAG or <none>:<none>.
func (d *Dockerd) Images(t TB) []string {
	t.Helper()
	return list(t, d.Command, "-H", d.Host, "images", "-a", "--format", "{{.Repository}}:{{.Tag}}")
}

// Volumes lists the names of all volumes.
func (d *Dockerd) Volumes(t TB) []string {
	t.Helper()
	return list(t, d.Command, "-H", d.Host, "volume", "ls", "-q")
}

// runscArgs make gVisor run without KVM.
var runscArgs = []string{"--platform=systrap"}
