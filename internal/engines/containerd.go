package engines

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// ContainerdVersion selects one of two containerds.
type ContainerdVersion int

// V1 is Debian's, with configuration version 2 and the CRI plugin in one piece;
// V2 is the one that scripts/install-engines builds.
const (
	V1 ContainerdVersion = 1 + iota
	V2
)

// containerd2 is the folder of what scripts/install-engines built.
const containerd2 = "containerd-2.4.2"

// PauseImage is the image that CRI engines are told to hold a pod with. It is
// not there, and nowhere to be had: whoever wants a pod has to import it.
const PauseImage = "localhost/tare-test-pause:absent"

// ContainerdDaemon is a running containerd.
type ContainerdDaemon struct {
	Address    string // a path: of its own API, and of CRI's
	Ctr        string // the ctr command of its version
	Dir        string // all of its files are below
	Pid        int
	PauseImage string // what the CRI plugin looks for; it is not there
	Version    string
	in         *instance
}

// Containerd starts containerd with the CRI plugin, whose runtime handlers are
// runc (the default) and crun.
func Containerd(t TB, v ContainerdVersion, opts ...Option) *ContainerdDaemon {
	t.Helper()
	o := collect(opts)
	return once(t, fmt.Sprintf("containerd %d %s", v, o.key()), func() (*ContainerdDaemon, error) { return startContainerd(v, o) })
}

func startContainerd(v ContainerdVersion, o options) (*ContainerdDaemon, error) {
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
	if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
		return nil, err
	}
	c := &ContainerdDaemon{Ctr: ctr, PauseImage: PauseImage}
	in, err := start(func(s *spec) error {
		at := func(name string) string { return filepath.Join(s.Dir, name) }
		c.Dir, c.Address = s.Dir, at("containerd.sock")
		runtimes, err := wrapped(s.Dir, append([]ociRuntime{{"runc", runc, nil}, {"crun", crun, nil}}, o.runtimes...), v == V2, false)
		if err != nil {
			return err
		}
		s.Private = []string{"/run/containerd/s", "/run/containerd/runc", "/run/netns", "/var/lib/cni", "/etc/cni/net.d", "/var/cache/cni"}
		d := daemon{Name: "containerd", Argv: []string{containerd, "--config", at("config.toml")}, Socket: c.Address}
		if v == V2 { // its own shim, not the one in the path
			d.Env = []string{"PATH=" + filepath.Dir(containerd) + ":" + searchPath}
		}
		s.Daemons = []daemon{d}
		files, plugins, err := o.network(s.Dir)
		if err != nil {
			return err
		}
		files["config.toml"] = containerdConfig(v, c, plugins, runtimes)
		return write(s.Dir, files)
	})
	if err != nil {
		return nil, err
	}
	c.in, c.Pid = in, in.pids["containerd"]
	if c.Version, err = criVersion(c.Address); err != nil {
		return nil, fmt.Errorf("containerd listens and does not answer: %w%s", err, in.tails())
	}
	return c, nil
}

func containerdConfig(v ContainerdVersion, c *ContainerdDaemon, plugins string, runtimes []ociRuntime) string {
	var b strings.Builder
	cri := `plugins."io.containerd.grpc.v1.cri"`
	if v == V2 {
		cri = `plugins."io.containerd.cri.v1.runtime"`
	}
	cni := filepath.Join(c.Dir, "cni")
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
		fmt.Fprintf(&b, "[%s]\n  runtime_type = \"io.containerd.runc.v2\"\n[%s.options]\n  BinaryName = %q\n", at, at, r.path)
	}
	return b.String()
}

func (c *ContainerdDaemon) list(t TB, namespace string, args ...string) []string {
	t.Helper()
	return list(t, append([]string{c.Ctr, "-a", c.Address, "-n", namespace}, args...)...)
}

// Containers lists the ids of all containers in a namespace; CRI's, sandboxes
// included, are in k8s.io.
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

// Snapshots lists the keys of all snapshots in a namespace: those of images'
// layers, and one for each container.
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
