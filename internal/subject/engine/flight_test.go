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
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// starting imitates the name and arguments of a Kata shim. It continues a start after its
// client has disconnected. On proceed it creates the files of a real shim and exits.
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
	started(t, &s.cmd)
	must.OK(t, in.Close())
	t.Cleanup(s.proceed)
	return s
}

// started starts a command and waits until its arguments are visible after exec.
func started(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	must.OK(t, cmd.Start())
	must.Eventually(t, func() string {
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", cmd.Process.Pid)); err != nil || len(text) == 0 {
			return fmt.Sprintf("process %d has no arguments: %v", cmd.Process.Pid, err)
		}
		return ""
	})
}

// proceed makes the shim finish.
func (s *starting) proceed() {
	if !s.done {
		s.done = true
		_ = s.in.Close()
		_ = s.cmd.Wait() // read ends with an error at the end of its input
	}
}

// machineOf is a machine with files left behind by the sandboxes of a run.
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

func TestAbandonedStartIsAwaitedAndItsResultRemoved(t *testing.T) {
	run := "f" + fmt.Sprint(os.Getpid())
	hex := strings.Repeat("5e", 30) + fmt.Sprintf("%04x", os.Getpid()&0xffff)
	for name, c := range map[string]struct {
		id    string // of the sandbox
		names bool   // only the bundle of the shim has the name of the pod
		knows bool   // the flight already has the ID
	}{
		"container with the name of the run":               {id: Name(run, 0, 1)},
		"pod with its name only in the bundle of the shim": {id: hex, names: true},
		"pod with a known ID":                              {id: hex, knows: true},
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
			if left, err := f.Clear(ctx, newFake(), nil, anyName, 0); err != nil || left != nil {
				t.Fatalf("%q, %v", left, err)
			}
			if len(said) == 0 || !strings.Contains(said[0], "waiting for 1 processes of interrupted starts, such as containerd-shim-kata-v2") {
				t.Errorf("said %q", said)
			}
			check.Equal(t, "made", m.there(c.id), m.folders(c.id))
			lines := f.Keeps(m.hs)
			check.Equal(t, "lines", len(lines), 4)
			removed, err := f.Sweep(m.hs)
			must.OK(t, err)
			check.Equal(t, "removed", len(removed), 4)
			check.Equal(t, "left", len(m.there(c.id)), 0)
			check.Equal(t, "leftovers at the second settle", len(f.Keeps(m.hs)), 0)
			check.Equal(t, "another's", len(m.there("web")), 1)
		})
	}
}

// containerd lists a pod from before its VM boots until the boot ends.
func TestContainerListedUntilItsStartEndsIsAwaited(t *testing.T) {
	run := "k" + fmt.Sprint(os.Getpid())
	name := Name(run, 0, 1)
	shim := shim(t, t.TempDir(), "true", "-id", name)
	synctest.Test(t, func(t *testing.T) {
		f := newFake(name)
		f.stays[name] = 1 << 30
		ctx := term.WithSayer(t.Context(), func(string) {
			shim.proceed()
			delete(f.has, name)
		})
		if left, err := NewFlight(run).Clear(ctx, f, []string{name}, anyName, 0); err != nil || left != nil || time.Since(f.began) < clearTimeout {
			t.Errorf("after %v: %q, %v", time.Since(f.began), left, err)
		}
	})
}

func TestStuckShimIsKilledAndOtherProgramsAreNot(t *testing.T) {
	run := "m" + fmt.Sprint(os.Getpid())
	for program, c := range map[string]struct {
		dies  bool
		least time.Duration
	}{
		"containerd-shim-runc-v2": {true, shimEnds},
		"containerd-shim-kata-v2": {true, vmBoots},
		"qemu-system-x86_64":      {true, vmBoots},
		"docker":                  {false, shimEnds + killEnds}, // a command of a user
	} {
		in, w, err := os.Pipe()
		must.OK(t, err)
		cmd := exec.Cmd{Path: "/bin/sh", Args: []string{program, "-c", "read x", "sh", "-id", Name(run, 0, 1)}, Stdin: in}
		started(t, &cmd)
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }() // reaps it
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			_, err := NewFlight(run).Clear(t.Context(), newFake(), nil, anyName, 0)
			if waited := time.Since(began); (err == nil) != c.dies || waited < c.least || waited > c.least+2*killEnds {
				t.Errorf("%s: %v after %v", program, err, waited)
			}
			if !c.dies {
				check.Error(t, err, fmt.Sprintf("kill -9 %d; tare clean", cmd.Process.Pid))
			}
		})
		_, _ = w.Close(), in.Close()
		<-ended
	}
}

// telling is an engine with fixed container states.
type telling struct {
	*fake
	states map[string]State
}

func (k telling) Look(context.Context, []string) (map[string]State, error) { return k.states, nil }

func TestCleanAwaitsTheShimsOfRemovedContainers(t *testing.T) {
	name, hex := Name("ll", 0, 1), strings.Repeat("6f", 30)+fmt.Sprintf("%04x", os.Getpid()&0xffff)
	for program, args := range map[string][]string{
		"isulad-shim": {hex, "runc", "info"}, // as iSulad 2.1 starts it
		"conmon":      {"-c", hex},
	} {
		in, w, err := os.Pipe()
		must.OK(t, err)
		cmd := exec.Cmd{Path: "/bin/sh", Args: append([]string{program, "-c", "read x", "sh"}, args...), Stdin: in}
		started(t, &cmd)
		waited := false
		ctx := term.WithSayer(t.Context(), func(string) {
			if !waited {
				_, _, waited = w.Close(), cmd.Wait(), true
			}
		})
		found, err := Clean(ctx, telling{newFake(name), map[string]State{name: {Name: name, ID: hex}}}, "fake", "container", "ll", false)
		if err != nil || !waited || !slices.Contains(found, "container "+name) {
			t.Errorf("%s: waited %v, found %q, %v", program, waited, found, err)
		}
		_ = in.Close()
	}
}

func TestProcessesOfOthersAreNotAwaited(t *testing.T) {
	run := "g" + fmt.Sprint(os.Getpid())
	bundle := t.TempDir()
	must.Write(t, filepath.Join(bundle, "config.json"), `{"annotations":{"io.kubernetes.cri.sandbox-name":"`+Name(run, 0, 1)+`"}}`)
	for name, args := range map[string][]string{
		"shim of another run":                    {"-id", Name("other"+run, 0, 1)},
		"name that contains the name of the run": {"-id", "x" + Name(run, 0, 1)},
		"shim with another folder":               {"-id", "web"},
	} {
		t.Run(name, func(t *testing.T) {
			shim(t, bundle, "true", args...)
			check.Equal(t, "processes", len(NewFlight(run).processes()), 0)
		})
	}
	t.Run("program without an engine", func(t *testing.T) {
		in, w, err := os.Pipe()
		must.OK(t, err)
		vi := exec.Cmd{Path: "/bin/sh", Args: []string{"vi", "-c", "read x", "sh", Name(run, 0, 1)}, Stdin: in}
		started(t, &vi)
		defer func() { _, _, _ = in.Close(), w.Close(), vi.Wait() }()
		check.Equal(t, "processes", len(NewFlight(run).processes()), 0)
	})
}

// A short ID such as "1" is an argument of many programs.
func TestShortIDMatchesNoProcess(t *testing.T) {
	shim(t, t.TempDir(), "true", "-smp", "1")
	check.Equal(t, "processes", len(NewFlight("", "1", "a", "tare-1", "k8s.io").processes()), 0)
}

func TestCNIPluginIsFoundByItsEnvironment(t *testing.T) {
	run := "h" + fmt.Sprint(os.Getpid())
	for args, want := range map[string]int{"IgnoreUnknown=1;K8S_POD_NAME=" + Name(run, 0, 1) + ";K8S_POD_INFRA_CONTAINER_ID=5e": 1, "K8S_POD_NAME=" + Name("x"+run, 0, 1): 0} {
		in, w, err := os.Pipe()
		must.OK(t, err)
		plugin := exec.Cmd{Path: "/bin/cat", Args: []string{"/opt/cni/bin/bridge"}, Stdin: in, Env: []string{"CNI_COMMAND=ADD", "CNI_ARGS=" + args}}
		started(t, &plugin)
		check.Equal(t, args, len(NewFlight(run).processes()), want)
		_, _, _ = in.Close(), w.Close(), plugin.Wait()
	}
}

func TestInterruptedWaitIsAnError(t *testing.T) {
	run := "i" + fmt.Sprint(os.Getpid())
	shim(t, t.TempDir(), "true", "-id", Name(run, 0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewFlight(run).Clear(ctx, newFake(), nil, anyName, 0)
	check.Is(t, err, errLate)
}

func TestSandboxIDsAreWrittenToDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "target")
	f, id := newFake(), strings.Repeat("5e", 32)
	s, err := Open(t.Context(), Options{Target: "fake", Called: "the engine", Driver: f, Image: t.Name(), Guest: true,
		Env: subject.Env{RunID: "r", Dir: dir, StateDir: t.TempDir(), Lanes: 1, Timeout: time.Second}})
	must.OK(t, err)
	failed := must.Get(s.hold(subject.Create, 0))(t)
	s.remember(id, "", id)
	check.Equal(t, "file", must.Read(t, filepath.Join(filepath.Dir(dir), KeptSandboxes)), failed.Name+"\n"+id+"\n")
	check.Equal(t, "known", s.sandboxes.known(), []string{id, failed.Name})
	m := onMachine(t)
	s.hs, s.sandboxes.root = m.hs, m.root
	for _, one := range []string{id, failed.Name, "web"} {
		for _, folder := range m.folders(one) {
			must.OK(t, os.MkdirAll(folder, 0o755))
		}
	}
	must.OK(t, s.Close(t.Context()))
	check.Equal(t, "a failed create", len(m.there(failed.Name)), 0)
	check.Equal(t, "a warm-up pod", len(m.there(id)), 0)
	check.Equal(t, "another's", m.there("web"), m.folders("web"))
}

// Once the engine has forgotten its sandboxes, only the file of the run has their IDs.
func TestSettleRemovesRecordedSandboxes(t *testing.T) {
	need.Root(t)
	need.Tool(t, "unshare")
	m := onMachine(t)
	hex := strings.Repeat("5e", 30) + fmt.Sprintf("%04x", os.Getpid()&0xffff)
	keep := func(id string) {
		for _, folder := range m.folders(id)[:3] { // not the cgroups, because Settle reads those of the machine
			must.OK(t, os.MkdirAll(folder, 0o755))
		}
	}
	network := func(name string) {
		path := filepath.Join(m.root, "run/netns", name)
		must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Write(t, path, "")
		if out, err := exec.Command("unshare", "--net", "mount", "--bind", "/proc/self/ns/net", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	}
	for _, id := range []string{hex, Name("jj", 0, 7), "web"} {
		keep(id)
	}
	must.Write(t, filepath.Join(m.folders(hex)[0], "persist.json"), `{"Network":{"NetworkID":"/var/run/netns/cnitest-own","NetworkCreated":true}}`)
	for _, name := range []string{"cnitest-own", "cnitest-before", "cnitest-since"} {
		network(name)
	}
	f := NewFlight("jj", hex, foreignPrefix+"cnitest-before")
	f.root = m.root
	check.Equal(t, "found", len(must.Get(f.Settle(t.Context(), true))(t)), 6)
	check.Equal(t, "there", len(m.there(hex)), 3)
	_, err := f.Settle(t.Context(), false)
	check.Error(t, err, "ip netns delete cnitest-since")
	if strings.Contains(err.Error(), "cnitest-before") || strings.Contains(err.Error(), "cnitest-own") {
		t.Errorf("unexpected error: %v", err)
	}
	check.Equal(t, "left", len(m.there(hex))+len(m.there(Name("jj", 0, 7))), 0)
	check.Equal(t, "another's", len(m.there("web")), 3)
	left, _ := filepath.Glob(filepath.Join(m.root, "run/netns/*"))
	check.Equal(t, "networks", len(left), 2)
}

func TestSandboxOfAnUnknownRunStaysAndIsNamed(t *testing.T) {
	m := onMachine(t)
	for _, id := range []string{Name("abcdefgh", 0, 1), Name("known234", 0, 1), "tare-abcdefgh", "web"} {
		must.OK(t, os.MkdirAll(m.folders(id)[1], 0o755))
	}
	path := m.folders(Name("abcdefgh", 0, 1))[1]
	check.Equal(t, "lines", Unclear(m.root, []string{"known234"}), []string{path + " stays: its run has no folder here; to remove it: rm -r --one-file-system " + path})
	must.Get(os.Stat(path))(t)
}

// The cgroup paths in the state of a sandbox contain the run ID.
func TestSandboxIsFoundByItsState(t *testing.T) {
	m, mine, others := onMachine(t), strings.Repeat("5e", 32), strings.Repeat("5f", 32)
	for id, of := range map[string]string{mine: "kk", others: "other"} {
		must.OK(t, os.MkdirAll(m.folders(id)[0], 0o755))
		must.Write(t, filepath.Join(m.folders(id)[0], "persist.json"), `{"SandboxCgroupPath":"/tare-run-`+of+`/cri/`+Name(of, 0, 1)+`/kata_`+id+`"}`)
	}
	f := NewFlight("kk")
	f.root = m.root
	check.Equal(t, "keeps", f.Keeps(m.hs), []string{"folder " + m.folders(mine)[0]})
}
