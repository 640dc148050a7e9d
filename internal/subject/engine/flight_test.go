package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

// starting is a shim of Kata's, by its name and arguments, that goes on with a start after its
// client has gone: it makes what a real one leaves, and ends when it is let go.
type starting struct {
	cmd  exec.Cmd
	in   *os.File
	done bool
}

func shim(t *testing.T, dir, script string, args ...string) *starting {
	t.Helper()
	in, w, err := os.Pipe()
	must.OK(t, err)
	s := &starting{in: w}
	s.cmd = exec.Cmd{Path: "/bin/sh", Args: append([]string{"containerd-shim-kata-v2", "-c", "read x; " + script, "sh"}, args...), Stdin: in, Dir: dir}
	must.OK(t, s.cmd.Start())
	must.OK(t, in.Close())
	t.Cleanup(s.proceed)
	return s
}

// proceed lets it finish.
func (s *starting) proceed() {
	if !s.done {
		s.done = true
		_ = s.in.Close()
		_ = s.cmd.Wait() // read ends with an error at the end of its input
	}
}

// machine is one on which a run's sandboxes leave things.
type machineOf struct {
	root string
	hs   []cgroup.Hierarchy
}

func onMachine(t *testing.T) machineOf {
	return machineOf{t.TempDir(), []cgroup.Hierarchy{{Mount: t.TempDir()}, {Mount: t.TempDir()}}}
}

func (m machineOf) folders(id string) []string {
	return []string{m.root + "/run/vc/sbs/" + id, m.root + "/run/vc/vm/" + id, m.root + "/run/kata-containers/shared/sandboxes/" + id, m.hs[0].Mount + "/kata_overhead/" + id, m.hs[1].Mount + "/kata_overhead/" + id}
}

func (m machineOf) there(id string) (found []string) {
	return slices.DeleteFunc(m.folders(id), func(dir string) bool { _, err := os.Stat(dir); return err != nil })
}

func TestAStartThatGoesOnAfterItsClientIsAwaitedAndWhatItMakesIsRemoved(t *testing.T) {
	run := "f" + fmt.Sprint(os.Getpid())
	hex := strings.Repeat("5e", 30) + fmt.Sprintf("%04x", os.Getpid()&0xffff)
	for name, c := range map[string]struct {
		id    string // of the sandbox
		names bool   // the shim's bundle has the pod's name
		knows bool   // the flight does
	}{
		"a container that has the run's name":          {id: Name(run, 0, 1)},
		"a pod that only the bundle of its shim names": {id: hex, names: true},
		"a pod of which the engine told before":        {id: hex, knows: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := onMachine(t)
			bundle := filepath.Join(t.TempDir(), c.id)
			must.OK(t, os.Mkdir(bundle, 0o755))
			if c.names {
				must.Write(t, filepath.Join(bundle, "config.json"), `{"annotations":{"io.kubernetes.cri.sandbox-name":"`+Name(run, 0, 1)+`"}}`)
			}
			shim := shim(t, bundle, "mkdir -p "+strings.Join(m.folders(c.id), " "), "-namespace", "k8s.io", "-id", c.id)
			must.OK(t, os.MkdirAll(m.folders("web")[0], 0o755))
			f := NewFlight(run)
			f.root = m.root
			if c.knows {
				f.add(c.id)
			}
			var said []string
			ctx := term.WithSayer(t.Context(), func(text string) {
				if said = append(said, text); len(said) == 1 {
					check.Equal(t, "before it ends", len(m.there(c.id)), 0)
					shim.proceed()
				}
			})
			f.said = time.Now().Add(-time.Minute)
			f.began = time.Now()
			if left, err := f.Clear(ctx, newFake(), nil, all, 0); err != nil || left != nil {
				t.Fatalf("%q, %v", left, err)
			}
			if len(said) == 0 || !strings.Contains(said[0], "waiting for 1 processes of starts that were interrupted, such as containerd-shim-kata-v2") {
				t.Errorf("said %q", said)
			}
			check.Equal(t, "made", m.there(c.id), m.folders(c.id))
			lines := f.Keeps(m.hs)
			check.Equal(t, "lines", len(lines), 4)
			removed, err := f.Sweep(m.hs)
			must.OK(t, err)
			check.Equal(t, "removed", len(removed), 4)
			check.Equal(t, "left", len(m.there(c.id)), 0)
			check.Equal(t, "left at a second look", len(f.Keeps(m.hs)), 0)
			check.Equal(t, "another's", len(m.there("web")), 1)
		})
	}
}

func TestWhatIsNotTheRunsIsNotAwaited(t *testing.T) {
	run := "g" + fmt.Sprint(os.Getpid())
	bundle := t.TempDir()
	must.Write(t, filepath.Join(bundle, "config.json"), `{"annotations":{"io.kubernetes.cri.sandbox-name":"`+Name(run, 0, 1)+`"}}`)
	for name, args := range map[string][]string{
		"a shim of another run":                          {"-id", Name("other"+run, 0, 1)},
		"a name that begins with the run's":              {"-id", "x" + Name(run, 0, 1)},
		"a shim whose folder is not that of an argument": {"-id", "web"},
	} {
		t.Run(name, func(t *testing.T) {
			shim(t, bundle, "true", args...)
			check.Equal(t, "processes", len(NewFlight(run).processes()), 0)
		})
	}
	t.Run("a process that is no part of an engine's", func(t *testing.T) {
		in, w, err := os.Pipe()
		must.OK(t, err)
		vi := exec.Cmd{Path: "/bin/sh", Args: []string{"vi", "-c", "read x", "sh", Name(run, 0, 1)}, Stdin: in}
		must.OK(t, vi.Start())
		defer func() { _, _, _ = in.Close(), w.Close(), vi.Wait() }()
		check.Equal(t, "processes", len(NewFlight(run).processes()), 0)
	})
}

func TestACNIPluginUnderWayIsKnownByItsEnvironment(t *testing.T) {
	run := "h" + fmt.Sprint(os.Getpid())
	for args, want := range map[string]int{"IgnoreUnknown=1;K8S_POD_NAME=" + Name(run, 0, 1) + ";K8S_POD_INFRA_CONTAINER_ID=5e": 1, "K8S_POD_NAME=" + Name("x"+run, 0, 1): 0} {
		in, w, err := os.Pipe()
		must.OK(t, err)
		plugin := exec.Cmd{Path: "/bin/cat", Args: []string{"/opt/cni/bin/bridge"}, Stdin: in, Env: []string{"CNI_COMMAND=ADD", "CNI_ARGS=" + args}}
		must.OK(t, plugin.Start())
		check.Equal(t, args, len(NewFlight(run).processes()), want)
		_, _, _ = in.Close(), w.Close(), plugin.Wait()
	}
}

func TestAClientGivenUpInTheMiddleOfAWaitSaysSo(t *testing.T) {
	run := "i" + fmt.Sprint(os.Getpid())
	shim(t, t.TempDir(), "true", "-id", Name(run, 0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewFlight(run).Clear(ctx, newFake(), nil, all, 0)
	check.Is(t, err, errLate)
}

func TestSandboxesAreRememberedAlsoOnTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "target")
	f := newFake()
	s, err := Open(t.Context(), Options{Target: "fake", Called: "the engine", Driver: f, Image: t.Name(), Guest: true,
		Env: subject.Env{RunID: "r", Dir: dir, StateDir: t.TempDir(), Lanes: 1, Timeout: time.Second}})
	must.OK(t, err)
	failed := must.Get(s.hold(subject.Create, 0))(t)
	s.remember("5e5e", "", "5e5e")
	check.Equal(t, "file", must.Read(t, filepath.Join(filepath.Dir(dir), KeptSandboxes)), failed.Name+"\n5e5e\n")
	check.Equal(t, "known", s.sandboxes.known(), []string{"5e5e", failed.Name})
	m := onMachine(t)
	s.hs, s.sandboxes.root = m.hs, m.root
	for _, id := range []string{"5e5e", failed.Name, "web"} {
		for _, folder := range m.folders(id) {
			must.OK(t, os.MkdirAll(folder, 0o755))
		}
	}
	must.OK(t, s.Close(t.Context()))
	check.Equal(t, "a failed create", len(m.there(failed.Name)), 0)
	check.Equal(t, "a warm-up pod", len(m.there("5e5e")), 0)
	check.Equal(t, "another's", m.there("web"), m.folders("web"))
}
