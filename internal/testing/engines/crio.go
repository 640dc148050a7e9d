package engines

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/testing/need"
)

// crioFolder is the folder of the build by scripts/install-tests.
const crioFolder = "crio-1.34.0"

// CRIODaemon is a running CRI-O.
type CRIODaemon struct {
	Socket     string // socket path
	Pid        int
	Dir        string // contains all of its files
	PauseImage string // image for sandboxes; it does not exist
	// Skopeo is a program that runs skopeo in the namespaces in which the storage is
	// mounted. Storage is the destination prefix for images:
	//
	//	$Skopeo copy docker-archive:FILE $StorageNAME
	Skopeo  string
	Storage string
	in      *instance
}

// CRIO starts CRI-O. Its runtime handlers are runc (the default) and crun.
func CRIO(t TB, opts ...Option) *CRIODaemon {
	t.Helper()
	need.Engine(t, "CRI-O")
	o := collect(opts)
	return once(t, "cri-o "+o.key(), func() (*CRIODaemon, error) { return startCRIO(o) })
}

func startCRIO(o options) (*CRIODaemon, error) {
	crio, err1 := program("crio", built(crioFolder))
	pinns, err2 := program("pinns", built(crioFolder))
	conmon, err3 := program("conmon", debian...)
	skopeo, err4 := program("skopeo", debian...)
	runc, err5 := program("runc")
	crun, err6 := program("crun")
	_, err7 := program("bridge", cniPlugins)
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7); err != nil {
		return nil, err
	}
	c := &CRIODaemon{PauseImage: PauseImage}
	in, err := start(func(s *spec) error {
		at := func(name string) string { return filepath.Join(s.Dir, name) }
		c.Dir, c.Socket = s.Dir, at("crio.sock")
		c.Storage = fmt.Sprintf("containers-storage:[overlay@%s+%s]", at("root"), at("run"))
		runtimes, err := wrapped(s.Dir, append([]ociRuntime{{name: "runc", path: runc}, {name: "crun", path: crun}}, o.runtimes...), true, !mayLowerOOMScore())
		if err != nil {
			return err
		}
		files, plugins, err := o.network(s.Dir)
		if err != nil {
			return err
		}
		var b strings.Builder
		fmt.Fprintf(&b, `[crio]
root = %q
runroot = %q
storage_driver = "overlay"
log_dir = %q
version_file = %q
version_file_persist = %q
clean_shutdown_file = %q
internal_repair = false
[crio.api]
listen = %q
stream_address = "127.0.0.1"
stream_port = "0"
[crio.runtime]
default_runtime = "runc"
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
pids_limit = 1024
namespaces_dir = %q
pinns_path = %q
container_exits_dir = %q
container_attach_socket_dir = %q
hooks_dir = []
`, at("root"), at("run"), at("pods"), at("version"), at("version-persist"), at("clean"), c.Socket, at("ns"), pinns, at("exits"), at("attach"))
		for _, r := range runtimes {
			fmt.Fprintf(&b, "[crio.runtime.runtimes.%s]\nruntime_path = %q\nruntime_type = \"oci\"\nruntime_root = %q\nmonitor_path = %q\nmonitor_cgroup = \"pod\"\n",
				r.name, r.path, at("state-"+r.name), conmon)
		}
		// An empty pause command selects the image's own.
		fmt.Fprintf(&b, `[crio.image]
pause_image = %q
pause_command = ""
signature_policy = "/etc/containers/policy.json"
[crio.network]
network_dir = %q
plugin_dirs = [%q]
[crio.metrics]
enable_metrics = false
[crio.nri]
enable_nri = false
`, c.PauseImage, at("cni"), plugins)
		files["crio.conf"] = b.String()
		files["ns/.keep"], files["exits/.keep"], files["attach/.keep"] = "", "", ""
		s.Files = containersFiles()
		s.Private = []string{
			"/etc/containers", "/etc/crio", "/run/netns", "/run/runc", "/run/crun", "/run/crio", "/run/containers",
			"/var/lib/cni", "/var/lib/containers", "/var/lib/crio", "/var/cache/cni",
		}
		s.Daemons = []daemon{{Name: "crio", Argv: []string{crio, "--config", at("crio.conf"), "--config-dir", ""}, Socket: c.Socket}}
		return write(s.Dir, files)
	})
	if err != nil {
		return nil, err
	}
	c.in, c.Pid = in, in.pids["crio"]
	c.Skopeo = filepath.Join(c.Dir, "skopeo")
	if err := os.WriteFile(c.Skopeo, []byte(in.inside(nil, skopeo)), 0o755); err != nil {
		return nil, err
	}
	if _, err = criVersion(c.Socket); err != nil {
		return nil, fmt.Errorf("CRI-O listens and does not answer: %w%s", err, in.tails())
	}
	return c, nil
}

// Sandboxes lists the ids of all pods, running or not.
func (c *CRIODaemon) Sandboxes(t TB) []string {
	t.Helper()
	return sandboxes(t, c.Socket)
}

// Containers lists the ids of all containers, running or not, without sandbox containers.
func (c *CRIODaemon) Containers(t TB) []string {
	t.Helper()
	return criContainers(t, c.Socket)
}

// Images lists the names of all images.
func (c *CRIODaemon) Images(t TB) []string {
	t.Helper()
	return criImages(t, c.Socket)
}
