package engines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
)

var containerds = []struct {
	name    string
	version ContainerdVersion
	prefix  string // of what it says its version is
}{{"containerd 1", V1, "1.6."}, {"containerd 2", V2, "2."}}

func TestContainerdRunsContainersWithEachRuntime(t *testing.T) {
	for _, c := range containerds {
		t.Run(c.name, func(t *testing.T) {
			d := Containerd(t, c.version)
			if v := strings.TrimPrefix(d.Version, "v"); !strings.HasPrefix(v, c.prefix) || !alive(d.Pid) {
				t.Fatalf("version %q, containerd %d", d.Version, d.Pid)
			}
			t.Logf("containerd %s", d.Version)
			const namespace = "tare-test"
			img := loadInto(t, d, namespace, "")
			ctr := func(args ...string) (string, error) {
				return output(nil, append([]string{d.Ctr, "-a", d.Address, "-n", namespace}, args...)...)
			}
			for _, handler := range d.Handlers {
				out, err := ctr("run", "--rm", "--runc-binary", d.Binaries[handler], img.Ref, "once-"+handler, probe.Name, "--exit", handler)
				if err != nil || !strings.HasPrefix(out, "tare-probe/1 "+handler+" ") {
					t.Fatalf("%s: %v\n%s%s", handler, err, out, d.in.tails())
				}
			}
			if got := d.Containers(t, namespace); len(got) > 0 {
				t.Errorf("containers %q, want none", got)
			}
			if got := d.Images(t, namespace); !slices.Equal(got, []string{img.Ref}) {
				t.Errorf("images %q, want %q", got, img.Ref)
			}
			if got := d.Snapshots(t, namespace); len(got) != 1 {
				t.Errorf("snapshots %q, want that of the layer", got)
			}
		})
	}
}

func TestContainerdRunsPodsWithEachHandler(t *testing.T) {
	for _, c := range containerds {
		t.Run(c.name, func(t *testing.T) {
			d := Containerd(t, c.version)
			loadInto(t, d, "k8s.io", d.PauseImage)
			img := loadInto(t, d, "k8s.io", "")
			for _, handler := range d.Handlers {
				t.Run(handler, func(t *testing.T) { pod(t, d.in, d.Address, handler, img.Ref, true) })
			}
			if got := d.Sandboxes(t); len(got) > 0 {
				t.Errorf("pods %q, want none", got)
			}
		})
	}
}

func TestCRIORunsPodsWithEachHandler(t *testing.T) {
	c := CRIO(t)
	if !strings.HasPrefix(c.Version, "1.34.") || !alive(c.Pid) || !alive(c.Holder) {
		t.Fatalf("version %q, crio %d, holder %d", c.Version, c.Pid, c.Holder)
	}
	if got := c.Images(t); len(got) > 0 {
		t.Errorf("images %q, want none yet", got)
	}
	img := copyInto(t, c)
	if got := c.Images(t); !slices.Contains(got, img.Ref) || !slices.Contains(got, c.PauseImage) {
		t.Errorf("images %q, want %q and %q", got, img.Ref, c.PauseImage)
	}
	for _, handler := range c.Handlers {
		t.Run(handler, func(t *testing.T) { pod(t, c.in, c.Socket, handler, img.Ref, true) })
	}
	if got := append(c.Sandboxes(t), c.Containers(t)...); len(got) > 0 {
		t.Errorf("pods and containers %q, want none", got)
	}
}

// copyInto brings in the probe's image and that for pods.
func copyInto(t *testing.T, c *CRIODaemon) *image.Image {
	t.Helper()
	img, err := image.Probe()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{c.PauseImage, img.Ref} {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := os.WriteFile(file, img.Archive, 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := output(nil, c.Skopeo, "copy", "docker-archive:"+file, c.Storage+name); err != nil {
			t.Fatal(err, out)
		}
	}
	return img
}

// loadInto imports the probe's image, under another name if one is given.
func loadInto(t *testing.T, d *ContainerdDaemon, namespace, name string) *image.Image {
	t.Helper()
	img, err := image.Probe()
	if name != "" {
		img, err = image.Pause(name)
	}
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(file, img.Archive, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := output(nil, d.Ctr, "-a", d.Address, "-n", namespace, "images", "import", file); err != nil {
		t.Fatal(err, out)
	}
	return img
}

// pod runs one with a container in it, and removes it again if it is told to.
func pod(t *testing.T, in *instance, socket, handler, ref string, remove bool) {
	t.Helper()
	name := fmt.Sprintf("p%d", os.Getpid())
	sandbox := &cri.PodSandboxConfig{
		Metadata:     &cri.PodSandboxMetadata{Name: name, Uid: name, Namespace: "tare"},
		LogDirectory: t.TempDir(),
		Linux:        &cri.LinuxPodSandboxConfig{CgroupParent: in.Parent},
	}
	err := withCRI(socket, func(ctx context.Context, conn *grpc.ClientConn) error {
		client := cri.NewRuntimeServiceClient(conn)
		s, err := client.RunPodSandbox(ctx, &cri.RunPodSandboxRequest{Config: sandbox, RuntimeHandler: handler})
		if err != nil {
			return fmt.Errorf("run the pod: %w", err)
		}
		c, err := client.CreateContainer(ctx, &cri.CreateContainerRequest{PodSandboxId: s.PodSandboxId, SandboxConfig: sandbox,
			Config: &cri.ContainerConfig{
				Metadata: &cri.ContainerMetadata{Name: "c"}, Image: &cri.ImageSpec{Image: ref, UserSpecifiedImage: ref},
				Command: []string{probe.Name}, Args: []string{"token"}, LogPath: "c.log",
			}})
		if err != nil {
			return fmt.Errorf("create the container: %w", err)
		}
		if _, err := client.StartContainer(ctx, &cri.StartContainerRequest{ContainerId: c.ContainerId}); err != nil {
			return fmt.Errorf("start the container: %w", err)
		}
		if got := sandboxes(t, socket); !slices.Equal(got, []string{s.PodSandboxId}) {
			t.Errorf("pods %q, want %q", got, s.PodSandboxId)
		}
		if got := criContainers(t, socket); !slices.Equal(got, []string{c.ContainerId}) {
			t.Errorf("containers %q, want %q", got, c.ContainerId)
		}
		if !remove {
			return nil
		}
		if _, err := client.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: s.PodSandboxId}); err != nil {
			return fmt.Errorf("stop the pod: %w", err)
		}
		_, err = client.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: s.PodSandboxId})
		return err
	})
	if err != nil {
		t.Fatalf("%v%s", err, in.tails())
	}
}

func init() {
	for _, c := range containerds {
		everyEngine = append(everyEngine, everyEngineEntry{c.name, 4, func(t *testing.T) string {
			d := Containerd(t, c.version)
			loadInto(t, d, "k8s.io", d.PauseImage)
			pod(t, d.in, d.Address, "runc", loadInto(t, d, "k8s.io", "").Ref, false)
			return d.Dir
		}})
	}
	everyEngine = append(everyEngine, everyEngineEntry{"cri-o", 4, func(t *testing.T) string {
		c := CRIO(t)
		pod(t, c.in, c.Socket, "crun", copyInto(t, c).Ref, false)
		return c.Dir
	}})
}
