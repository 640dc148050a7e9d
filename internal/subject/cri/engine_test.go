package cri

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// engineUnderTest is a running engine.
type engineUnderTest struct {
	name  string // as in cri+NAME
	e     subject.Engine
	pid   int
	dir   string // all that it stores is below
	pause string
	left  func(t *testing.T) []string // what the engine itself lists: pods, containers, images
	pods  bool                        // it serves statistics of pods, and tells them
}

func onContainerd(t *testing.T, v engines.ContainerdVersion, opts ...engines.Option) engineUnderTest {
	d := engines.Containerd(t, v, opts...)
	return engineUnderTest{
		name: "containerd", e: subject.Engine{Address: d.Address}, pid: d.Pid, dir: d.Dir, pause: d.PauseImage, pods: true,
		left: func(t *testing.T) []string {
			out := append(d.Sandboxes(t), d.Containers(t, "k8s.io")...)
			out = append(out, d.Images(t, "k8s.io")...)
			return append(out, d.Snapshots(t, "k8s.io")...)
		},
	}
}

func onCRIO(t *testing.T) engineUnderTest {
	d := engines.CRIO(t)
	return engineUnderTest{
		name: "cri-o", e: subject.Engine{Address: "unix://" + d.Socket, Command: d.Skopeo}, pid: d.Pid, dir: d.Dir, pause: d.PauseImage,
		left: func(t *testing.T) []string {
			return append(append(d.Sandboxes(t), d.Containers(t)...), d.Images(t)...)
		},
	}
}

// onAll runs a test with every engine, and one of the handlers that it has.
func onAll(t *testing.T, test func(t *testing.T, u engineUnderTest, handler string)) {
	for _, c := range []struct {
		name, handler string
		start         func(t *testing.T) engineUnderTest
	}{
		{"containerd 1.6", "crun", func(t *testing.T) engineUnderTest { return onContainerd(t, engines.V1) }},
		{"containerd 2.4", "", func(t *testing.T) engineUnderTest { return onContainerd(t, engines.V2) }},
		{"CRI-O 1.34", "crun", onCRIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // they share nothing
			test(t, c.start(t), c.handler)
		})
	}
}

func weigh(t *testing.T, u engineUnderTest, handler string) *Target {
	t.Helper()
	got := must.Get(New(t.Context(), "cri+"+u.name+"/"+handler, u.name, handler, u.e))(t)
	return got.(*Target)
}

// opened opens a handler of an engine, of which nothing may be left at the end.
func opened(t *testing.T, u engineUnderTest, handler string, env subject.Env) *session {
	t.Helper()
	t.Cleanup(func() {
		if left := u.left(t); len(left) > 0 {
			t.Errorf("%s still has %q", u.name, left)
		}
	})
	return enginetest.Open(t, weigh(t, u, handler), env).(*session)
}

func TestAnEngineTellsWhereItStores(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		root := weigh(t, u, handler).Info().Config["storage root"]
		if info, err := os.Stat(root); err != nil || !info.IsDir() || !strings.HasPrefix(root, u.dir+"/") {
			t.Errorf("%q, %v; all is below %s", root, err, u.dir)
		}
	})
}

func TestPodsConform(t *testing.T) {
	onAll(t, func(t *testing.T, u engineUnderTest, handler string) {
		enginetest.Conforms(t, enginetest.Case{
			Name: "handler " + handler, Target: func(t *testing.T) subject.Target { return weigh(t, u, handler) },
			Left: u.left, Source: ofContainers, Swept: 4, Pods: true,
		})
	})
}

func TestAKubeletOfAnotherEngineIsNotThisEngines(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"own.sock": "", "other.sock": "",
		"own.yaml":   "kind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///own.sock\n",
		"other.yaml": "containerRuntimeEndpoint: 'unix:///other.sock'\nunknown: {a: [1]}\n",
		"none.yaml":  "kind: KubeletConfiguration\n",
		"not.yaml":   "\x00{",
	} {
		must.OK(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	must.OK(t, os.Symlink("own.sock", filepath.Join(root, "link.sock")))
	golden.Cases(t, "testdata/kubelets.txt", func(_ *testing.T, args string) string {
		return fmt.Sprint(uses(append([]string{"kubelet"}, strings.Fields(args)...), root, filepath.Join(root, "own.sock")))
	})
}
