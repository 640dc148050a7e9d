package engines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/testing/must"
)

// copyInto imports the probe's image and the sandbox image.
func copyInto(t *testing.T, c *CRIODaemon) *image.Image {
	t.Helper()
	img := must.Get(image.Probe())(t)
	for _, name := range []string{c.PauseImage, img.Ref} {
		file := filepath.Join(t.TempDir(), "image.tar")
		must.OK(t, img.Save(file))
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
	must.OK(t, err)
	file := filepath.Join(t.TempDir(), "image.tar")
	must.OK(t, img.Save(file))
	if out, err := output(nil, d.Ctr, "-a", d.Address, "-n", namespace, "images", "import", file); err != nil {
		t.Fatal(err, out)
	}
	return img
}

// pod runs a pod with one container.
func pod(t *testing.T, in *instance, socket, handler, ref string) {
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
		return nil
	})
	must.That(t, err == nil, "%v%s", err, in.tails())
}

func init() {
	for _, version := range []ContainerdVersion{V1, V2} {
		everyEngine = append(everyEngine, everyEngineEntry{fmt.Sprintf("containerd %d", version), 4, func(t *testing.T) string {
			d := Containerd(t, version)
			loadInto(t, d, "k8s.io", d.PauseImage)
			pod(t, d.in, d.Address, "runc", loadInto(t, d, "k8s.io", "").Ref)
			return d.Dir
		}})
	}
	everyEngine = append(everyEngine, everyEngineEntry{"cri-o", 4, func(t *testing.T) string {
		c := CRIO(t)
		pod(t, c.in, c.Socket, "crun", copyInto(t, c).Ref)
		return c.Dir
	}})
}
