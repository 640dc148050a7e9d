package engines

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tare-bench/tare/internal/testing/need"
)

// ContainerdVersion selects one of two containerds.
type ContainerdVersion int

// V1 is Debian's version, with configuration version 2 and a single CRI plugin. V2 is
// built by scripts/install-tests.
const (
	V1 ContainerdVersion = 1 + iota
	V2
)

// containerd2 is the folder of the build by scripts/install-tests.
const containerd2 = "containerd-2.4.2"

// PauseImage is the sandbox image in the configuration of the CRI engines. It does not
// exist anywhere: a test that needs pods must import it.
const PauseImage = "localhost/tare-test-pause:absent"

// ContainerdDaemon is a running containerd.
type ContainerdDaemon struct {
	Address    string // socket path of its own API and of CRI
	Ctr        string // the ctr command of its version
	Dir        string // contains all of its files
	Cgroup     string // parent of all its cgroups, in every hierarchy
	Pid        int
	PauseImage string // image that the CRI plugin uses; it does not exist
	Version    string
	in         *instance
}

// Containerd starts containerd with the CRI plugin. Its runtime handlers are runc (the
// default) and crun.
func Containerd(t TB, v ContainerdVersion, opts ...Option) *ContainerdDaemon {
	t.Helper()
	need.Engine(t, "containerd")
	o := collect(opts)
	return once(t, fmt.Sprintf("containerd %d %s", v, o.key()), func() (*ContainerdDaemon, error) {
		all, err := startContainerds(v, []string{""}, o)
		if err != nil {
			return nil, err
		}
		return all[0], nil
	})
}

// Containerds starts a containerd 2 in each of the given folders, as the nodes of a
// cluster. They share everything else: namespaces and the network of their pods. name
// distinguishes them.
func Containerds(t TB, name string, folders []string, opts ...Option) []*ContainerdDaemon {
	t.Helper()
	o := collect(opts)
	o.private = []string{"/run/containerd/runsc", "/var/lib/kubelet", "/var/log/containers"} // kubelets always use the last two
	return once(t, fmt.Sprint("containerd 2 of ", name, folders, o.key()), func() ([]*ContainerdDaemon, error) {
		return startContainerds(V2, folders, o)
	})
}

func startContainerds(v ContainerdVersion, nodes []string, o options) ([]*ContainerdDaemon, error) {
	folders := debian
	if v == V2 {
		folders = []string{built(containerd2)}
	}
	containerd, err1 := program("containerd", folders...)
	ctr, err2 := program("ctr", folders...)
	_, err3 := program("containerd-shim-runc-v2", folders...)
	runc, err4 := program("runc")
	crun, err5 := program("crun")
	_, err6 := program("bridge", cniPlugins)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, o.missing); err != nil {
		return nil, err
	}
	var all []*ContainerdDaemon
	in, err := start(func(s *spec) error {
		runtimes, err := wrapped(s.Dir, append([]ociRuntime{{name: "runc", path: runc}, {name: "crun", path: crun}}, o.runtimes...), v == V2, false)
		if err != nil {
			return err
		}
		s.Private = []string{"/run/containerd/s", "/run/containerd/runc", "/run/netns", "/var/lib/cni", "/etc/cni/net.d", "/var/cache/cni"}
		s.Private = append(s.Private, o.private...)
		files, plugins, err := o.network(s.Dir)
		if err != nil {
			return err
		}
		path := filepath.Dir(containerd)
		for _, r := range runtimes {
			if r.shim != "" {
				path += ":" + filepath.Dir(r.shim)
				files[r.name+".toml"] = fmt.Sprintf("binary_name = %q\n", r.path)
			}
		}
		for _, node := range nodes {
			c := &ContainerdDaemon{Ctr: ctr, PauseImage: PauseImage, Dir: filepath.Join(s.Dir, node), Cgroup: s.Parent}
			c.Address = filepath.Join(c.Dir, "containerd.sock")
			config := filepath.Join(c.Dir, "config.toml")
			d := daemon{Name: "containerd" + node, Argv: []string{containerd, "--config", config}, Socket: c.Address}
			if v == V2 { // its own shim, not the one in the path
				d.Env = []string{"PATH=" + path + ":" + searchPath}
			}
			s.Daemons = append(s.Daemons, d)
			files[filepath.Join(node, "config.toml")] = containerdConfig(v, c, s.Dir, plugins, runtimes)
			all = append(all, c)
		}
		return write(s.Dir, files)
	})
	if err != nil {
		return nil, err
	}
	for i, c := range all {
		c.in, c.Pid = in, in.pids["containerd"+nodes[i]]
		if c.Version, err = criVersion(c.Address); err != nil {
			return nil, fmt.Errorf("containerd listens and does not answer: %w%s", err, in.tails())
		}
	}
	return all, nil
}

// Start runs a program together with the daemon, in its namespaces. Its log has the given
// name, and [ContainerdDaemon.Logs] includes it. It ends at the latest with the daemon.
// The caller waits for its end.
func (c *ContainerdDaemon) Start(name string, argv ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(c.in.Dir, "log", name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	ns := fmt.Sprintf("/proc/%d/ns/", c.in.cmd.Process.Pid)
	cmd := exec.Command("nsenter", append([]string{"--mount=" + ns + "mnt", "--net=" + ns + "net", "--"}, argv...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = append(environment(c.in.Dir), markEnv+"="+c.in.ID)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, cmd.Start()
}

// Network returns the file of the network namespace of the daemon and its pods.
func (c *ContainerdDaemon) Network() string {
	return fmt.Sprintf("/proc/%d/ns/net", c.in.cmd.Process.Pid)
}

// Logs returns the last log lines of the daemon and the programs started with it.
func (c *ContainerdDaemon) Logs() string { return c.in.tails() }

func containerdConfig(v ContainerdVersion, c *ContainerdDaemon, shared, plugins string, runtimes []ociRuntime) string {
	var b strings.Builder
	cri := `plugins."io.containerd.grpc.v1.cri"`
	if v == V2 {
		cri = `plugins."io.containerd.cri.v1.runtime"`
	}
	cni := filepath.Join(shared, "cni")
	fmt.Fprintf(&b, "version = %d\nroot = %q\nstate = %q\n", v+1, filepath.Join(c.Dir, "root"), filepath.Join(c.Dir, "state"))
	fmt.Fprintf(&b, "disabled_plugins = [\"io.containerd.internal.v1.opt\", \"io.containerd.nri.v1.nri\"]\n")
	fmt.Fprintf(&b, "[grpc]\n  address = %q\n[ttrpc]\n  address = %q\n", c.Address, c.Address+".ttrpc")
	fmt.Fprintf(&b, "[%s]\n  restrict_oom_score_adj = %v\n", cri, !mayLowerOOMScore())
	if v == V1 {
		fmt.Fprintf(&b, "  sandbox_image = %q\n", c.PauseImage)
		fmt.Fprintf(&b, "[%s.cni]\n  bin_dir = %q\n  conf_dir = %q\n", cri, plugins, cni)
	} else {
		fmt.Fprintf(&b, "[%s.cni]\n  bin_dirs = [%q]\n  conf_dir = %q\n", cri, plugins, cni)
		fmt.Fprintf(&b, "[plugins.\"io.containerd.cri.v1.images\".pinned_images]\n  sandbox = %q\n", c.PauseImage)
	}
	fmt.Fprintf(&b, "[%s.containerd]\n  default_runtime_name = \"runc\"\n", cri)
	for _, r := range runtimes {
		at := fmt.Sprintf("%s.containerd.runtimes.%s", cri, r.name)
		if r.shim != "" {
			fmt.Fprintf(&b, "[%s]\n  runtime_type = \"io.containerd.%s.v1\"\n[%s.options]\n  TypeUrl = \"io.containerd.%s.v1.options\"\n  ConfigPath = %q\n",
				at, r.name, at, r.name, filepath.Join(shared, r.name+".toml"))
			continue
		}
		fmt.Fprintf(&b, "[%s]\n  runtime_type = \"io.containerd.runc.v2\"\n[%s.options]\n  BinaryName = %q\n", at, at, r.path)
	}
	return b.String()
}

func (c *ContainerdDaemon) list(t TB, namespace string, args ...string) []string {
	t.Helper()
	return list(t, append([]string{c.Ctr, "-a", c.Address, "-n", namespace}, args...)...)
}

// Containers lists the ids of all containers in a namespace. Those of CRI, including
// sandboxes, are in k8s.io.
func (c *ContainerdDaemon) Containers(t TB, namespace string) []string {
	t.Helper()
	return c.list(t, namespace, "containers", "ls", "-q")
}

// Images lists the names of all images in a namespace.
func (c *ContainerdDaemon) Images(t TB, namespace string) []string {
	t.Helper()
	return c.list(t, namespace, "images", "ls", "-q")
}

// Namespaces lists all namespaces.
func (c *ContainerdDaemon) Namespaces(t TB) []string {
	t.Helper()
	return list(t, c.Ctr, "-a", c.Address, "namespaces", "ls", "-q")
}

// Snapshots lists the keys of all snapshots in a namespace: image layers and one per
// container.
func (c *ContainerdDaemon) Snapshots(t TB, namespace string) []string {
	t.Helper()
	text, err := output(nil, c.Ctr, "-a", c.Address, "-n", namespace, "snapshots", "ls")
	if err != nil {
		t.Fatalf("%v", err)
	}
	var out []string
	for _, row := range strings.Split(text, "\n")[1:] { // the first is the heading
		key, _, _ := strings.Cut(row, " ")
		out = append(out, key)
	}
	return out
}

// Sandboxes lists the ids of all CRI pods, running or not.
func (c *ContainerdDaemon) Sandboxes(t TB) []string {
	t.Helper()
	return sandboxes(t, c.Address)
}
