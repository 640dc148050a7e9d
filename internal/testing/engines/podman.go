package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/testing/need"
)

// PodmanEngine is podman with its own storage. It has no daemon. Command enters the
// namespaces in which the storage is mounted, so each command finds the results of
// earlier ones.
type PodmanEngine struct {
	Command string   // runs podman; Args and Env are not needed, but accepted
	Args    []string // flags that select the storage: --root, --runroot and so on
	Env     []string // variables that select the configuration: CONTAINERS_CONF and so on
	Program string   // the real podman, for callers that enter its namespaces themselves

	Host     string // unix://…, podman's API
	Pid      int    // of the API service
	Root     string // contains all of its files
	Runtimes []string
	Version  string
}

// Podman prepares a podman and starts its API service with the runtimes runc, crun (the
// default) and, if installed, runsc.
func Podman(t TB, opts ...Option) *PodmanEngine {
	t.Helper()
	need.Engine(t, "podman")
	o := collect(opts)
	return once(t, "podman "+o.key(), func() (*PodmanEngine, error) { return startPodman(o) })
}

// containersFiles are the configuration files that every tool of the containers project
// reads.
func containersFiles() map[string]string {
	return map[string]string{
		"etc/containers/policy.json":     `{"default":[{"type":"insecureAcceptAnything"}]}` + "\n",
		"etc/containers/registries.conf": "unqualified-search-registries = []\nshort-name-mode = \"disabled\"\n",
	}
}

func startPodman(o options) (*PodmanEngine, error) {
	podman, err1 := program("podman", debian...)
	conmon, err2 := program("conmon", debian...)
	runc, err3 := program("runc")
	crun, err4 := program("crun")
	_, err5 := program("nsenter", debian...)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	p := &PodmanEngine{Program: podman, Runtimes: []string{"runc", "crun"}}
	var more strings.Builder
	in, err := start(func(s *spec) error {
		at := func(name string) string { return filepath.Join(s.Dir, name) }
		files := map[string]string{}
		if path := Runsc(); path != "" {
			o.runtimes = append(o.runtimes, ociRuntime{name: "runsc", path: path, args: runscArgs})
		}
		runtimes, err := wrapped(s.Dir, o.runtimes, false, false)
		if err != nil {
			return err
		}
		for _, r := range runtimes {
			fmt.Fprintf(&more, "%s = [%q]\n", r.name, r.path)
			p.Runtimes = append(p.Runtimes, r.name)
		}
		ulimits, err := ulimits()
		if err != nil {
			return err
		}
		p.Root, p.Host = s.Dir, "unix://"+at("podman.sock")
		p.Args = []string{
			"--root", at("root"), "--runroot", at("run"), "--tmpdir", at("libpod"), "--storage-driver", "overlay",
		}
		p.Env = []string{
			"CONTAINERS_CONF=" + at("containers.conf"),
			"CONTAINERS_STORAGE_CONF=" + at("storage.conf"),
			"CONTAINERS_REGISTRIES_CONF=/etc/containers/registries.conf",
			"TMPDIR=" + at("tmp"),
			markEnv + "=" + s.ID,
		}
		files["storage.conf"] = fmt.Sprintf("[storage]\ndriver = \"overlay\"\ngraphroot = %q\nrunroot = %q\n", at("root"), at("run"))
		files["containers.conf"] = fmt.Sprintf(`[containers]
default_ulimits = [%s]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
conmon_path = [%q]
runtime = "crun"
lock_type = "file"
tmp_dir = %q
image_copy_tmp_dir = %q
volume_path = %q
[engine.runtimes]
runc = [%q]
crun = [%q]
%s[network]
network_backend = "cni"
cni_plugin_dirs = [%q]
network_config_dir = %q
`, ulimits, conmon, at("libpod"), at("tmp"), at("volumes"), runc, crun, more.String(), cniPlugins, at("cni"))
		s.Files = containersFiles()
		s.Private = []string{
			"/etc/containers", "/etc/cni/net.d", "/run/netns", "/run/runc", "/run/crun", "/run/runsc", "/run/libpod",
			"/run/containers", "/var/lib/cni", "/var/lib/containers", "/var/cache/cni",
			"/var/lib/dpkg", // each podman info would query it for the packages of its programs, which takes half a second
		}
		s.Daemons = []daemon{{
			Name: "podman", Argv: append(append([]string{podman}, p.Args...), "system", "service", "-t", "0", p.Host),
			Env: p.Env, Socket: at("podman.sock"),
		}}
		return write(s.Dir, files)
	})
	if err != nil {
		return nil, err
	}
	p.Pid = in.pids["podman"]
	p.Command = filepath.Join(in.Dir, "podman")
	script := in.inside(p.Env, append([]string{podman}, p.Args...)...)
	if err := os.WriteFile(p.Command, []byte(script), 0o755); err != nil {
		return nil, err
	}
	version, err := output(p.Env, p.Command, "version", "--format", "{{.Client.Version}}")
	if err != nil {
		return nil, err
	}
	p.Version = version
	return p, nil
}

const cniPlugins = "/usr/lib/cni"

// Containers lists the ids of all containers, running or not, including those of pods.
func (p *PodmanEngine) Containers(t TB) []string {
	t.Helper()
	return list(t, p.Command, "ps", "-aq", "--no-trunc", "--external")
}

// Images lists all images, as NAME:TAG or <none>:<none>.
func (p *PodmanEngine) Images(t TB) []string {
	t.Helper()
	return list(t, p.Command, "images", "-a", "--format", "{{.Repository}}:{{.Tag}}")
}

// Volumes lists the names of all volumes.
func (p *PodmanEngine) Volumes(t TB) []string {
	t.Helper()
	return list(t, p.Command, "volume", "ls", "-q")
}
