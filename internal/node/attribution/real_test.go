package attribution_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/engines"
	"github.com/tare-bench/tare/internal/node/attribution"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/cri"
	"github.com/tare-bench/tare/internal/subject/oci"
	"github.com/tare-bench/tare/record"
)

func TestMain(m *testing.M) { engines.Main(m) }

const held = 32 << 20 // bytes that an exec session holds

// started is a container that a test started.
type started struct {
	id    string
	group string
	pid   int
}

// bare starts containers of a bare runtime, each with an exec session that
// holds memory.
func bare(t *testing.T, n int, runtime ...string) []started {
	t.Helper()
	dir, run := t.TempDir(), fmt.Sprintf("%08x", os.Getpid())
	hs, err := cgroup.Hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cgroup.Remove(hs, cgroup.Prefix+run); err != nil {
			t.Error(err)
		}
	})
	// crun refuses cgroup2 beside version 1, so it does not see that one.
	command := func(args ...string) *exec.Cmd {
		words := append(append(slices.Clone(runtime), "--root", filepath.Join(dir, "state")), args...)
		cmd := exec.Command("sh", append([]string{"-c", `umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"`, "sh"}, words...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		return cmd
	}
	var out []started
	for i := range n {
		id := fmt.Sprintf("c%d-%s", i, run)
		bundle := filepath.Join(dir, id)
		if err := oci.WriteBundle(bundle, run, subject.DefaultLimits); err != nil {
			t.Fatal(err)
		}
		log, err := os.Create(filepath.Join(dir, id+".log"))
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		pidFile := filepath.Join(dir, id+".pid")
		start := command("run", "--detach", "--bundle", bundle, "--pid-file", pidFile, id)
		start.Stdout, start.Stderr = log, log
		if err := start.Run(); err != nil {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("%v: %s", err, text)
		}
		t.Cleanup(func() {
			if text, err := command("delete", "--force", id).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, text)
			}
		})
		text, err := os.ReadFile(pidFile)
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		session(t, command("exec", id, probe.Name, "hold", strconv.Itoa(held), "60"))
		out = append(out, started{id: id, group: "/" + cgroup.Prefix + run + "/" + id, pid: pid})
	}
	return out
}

// session runs a command that goes on until the test's end, and waits for its
// first line.
func session(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line := make(chan string, 1)
	go func() {
		buffer := make([]byte, 256)
		n, _ := pipe.Read(buffer)
		line <- string(buffer[:n])
	}()
	select {
	case text := <-line:
		if text == "" {
			t.Fatalf("%s ended without a word", strings.Join(cmd.Args, " "))
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s says nothing", strings.Join(cmd.Args, " "))
	}
}

// found picks the members of a box from a fresh snapshot, and reads them.
func found(t *testing.T, box func(*attribution.Snapshot) []attribution.Box, daemons ...int) (*attribution.Snapshot, []attribution.Box, []record.Process) {
	t.Helper()
	r := new(attribution.Reader)
	s, err := r.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	boxes := box(s)
	var problems record.Problems
	var out []record.Process
	for _, m := range s.Members(boxes, daemons, &problems) {
		p, err := r.Process(m, &problems)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		out = append(out, p)
	}
	if problems.Reused+problems.Denied+problems.Broken > 0 {
		t.Errorf("%+v", problems)
	}
	return s, boxes, out
}

func count(processes []record.Process, lane int) (roles map[record.Role]int, memory int64, long string) {
	roles = map[record.Role]int{}
	for _, p := range processes {
		if p.Lane == lane {
			roles[p.Role]++
			memory += p.PSSAnon + p.PSSShmem
			if !p.Read {
				roles["unread"]++
			}
		}
		long += fmt.Sprintf("\n  %d %s %s lane %d: %s", p.Pid, p.Name, p.Role, p.Lane, p.Rule)
	}
	return roles, memory, long
}

// inGroup compares with the kernel's own list: every process of the group is
// on the lane, and the processes in the group are no other lane's.
func inGroup(t *testing.T, group string, processes []record.Process, lane int) {
	t.Helper()
	hs, err := cgroup.Hierarchies()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, h := range hs {
		if !h.Has("memory") {
			continue
		}
		_ = filepath.WalkDir(filepath.Join(h.Mount, group), func(path string, _ os.DirEntry, _ error) error {
			text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for _, word := range strings.Fields(string(text)) {
				pid, _ := strconv.Atoi(word)
				n++
				if !slices.ContainsFunc(processes, func(p record.Process) bool { return p.Pid == pid && p.Lane == lane }) {
					t.Errorf("process %d of %s is not on lane %d", pid, path, lane)
				}
			}
			return nil
		})
	}
	if n == 0 {
		t.Errorf("nobody is in %s", group)
	}
}

func TestRealRuntimesProcessesAreFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("runtimes need root")
	}
	for name, c := range map[string]struct {
		runtime []string
		want    map[record.Role]int
	}{
		"runc":  {[]string{"runc"}, map[record.Role]int{record.RoleWorkload: 2, record.RoleRuntime: 1}},
		"crun":  {[]string{"crun"}, map[record.Role]int{record.RoleWorkload: 2, record.RoleRuntime: 1}},
		"runsc": {[]string{engines.Runsc(), "--platform=systrap", "--network=none"}, map[record.Role]int{record.RoleSentry: 1, record.RoleWorkload: -1, record.RoleGofer: 1, record.RoleRuntime: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := exec.LookPath(c.runtime[0]); err != nil {
				t.Skipf("there is no %s here: %v", name, err)
			}
			containers := bare(t, 2, c.runtime...)
			for how, box := range map[string]func(*attribution.Snapshot) []attribution.Box{
				"as a target says": func(*attribution.Snapshot) (out []attribution.Box) {
					for i, c := range containers {
						out = append(out, attribution.Box{Lane: i, IDs: []string{c.id}, Workload: c.pid, Group: c.group})
					}
					return out
				},
				"without a group": func(*attribution.Snapshot) (out []attribution.Box) {
					for i, c := range containers {
						out = append(out, attribution.Box{Lane: i, IDs: []string{c.id}, Workload: c.pid})
					}
					return out
				},
				"without being named": func(s *attribution.Snapshot) (out []attribution.Box) {
					for i, c := range containers {
						for _, f := range s.Sandboxes() {
							if f.Box.Group == c.group && slices.Contains(f.Box.IDs, c.id) {
								f.Box.Lane = i
								out = append(out, f.Box)
							}
						}
					}
					return out
				},
			} {
				t.Run(how, func(t *testing.T) {
					s, boxes, processes := found(t, box)
					if len(boxes) != len(containers) {
						t.Fatalf("%d of %d: %+v", len(boxes), len(containers), s.Sandboxes())
					}
					pods := map[string]int{}
					for _, g := range s.Charges(processes, boxes) {
						switch g.Charge {
						case record.ChargePod:
							pods[g.Path] = g.Lane
						case record.ChargeOverhead:
							t.Errorf("%+v", g)
						}
					}
					for lane := range containers {
						roles, memory, long := count(processes, lane)
						for role, n := range c.want {
							if roles[role] != n && (n >= 0 || roles[role] < 2) {
								t.Errorf("%d of %s, want %d%s", roles[role], role, n, long)
							}
						}
						if len(roles) != len(c.want) {
							t.Errorf("%v%s", roles, long)
						}
						// gVisor keeps what it holds in a memfd of which it maps
						// little: its group is charged, its processes do not show it.
						if name != "runsc" && memory < held || memory > held+100<<20 {
							t.Errorf("%d bytes with %d held%s", memory, held, long)
						}
						inGroup(t, containers[lane].group, processes, lane)
						if got, ok := pods[containers[lane].group]; !ok || got != lane {
							t.Errorf("%v", pods)
						}
					}
				})
			}
		})
	}
}

// engine is how a test starts containers by an engine's own command.
type engine struct {
	run    func(runtime, name string) *exec.Cmd // prints the id
	remove func(name string) *exec.Cmd
	exec   func(runtime, id string, args ...string) *exec.Cmd
}

func TestRealEnginesProcessesAreFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("engines need root")
	}
	image := "localhost/tare-attribution-test:1"
	t.Run("docker", func(t *testing.T) {
		d := engines.Docker(t)
		docker := func(args ...string) *exec.Cmd {
			return exec.Command(d.Command, append([]string{"-H", d.Host}, args...)...)
		}
		output(t, docker("import", archive(t), image))
		throughEngine(t, "docker", []int{d.Pid, d.ContainerdPid}, engine{
			run: func(runtime, name string) *exec.Cmd {
				return docker("run", "-d", "--name", name, "--network=none", "--runtime="+runtime, image, probe.Name, "token")
			},
			exec:   func(_, id string, args ...string) *exec.Cmd { return docker(append([]string{"exec", id}, args...)...) },
			remove: func(name string) *exec.Cmd { return docker("rm", "-f", name) },
		}, d.Runtimes)
	})
	t.Run("podman", func(t *testing.T) {
		p := engines.Podman(t)
		podman := func(runtime string, args ...string) *exec.Cmd {
			return exec.Command(p.Command, append([]string{"--runtime=" + runtime}, args...)...)
		}
		output(t, podman("runc", "import", archive(t), image))
		throughEngine(t, "podman", []int{p.Pid}, engine{
			run: func(runtime, name string) *exec.Cmd {
				return podman(runtime, "run", "-d", "--name", name, "--network=none", image, probe.Name, "token")
			},
			exec: func(runtime, id string, args ...string) *exec.Cmd {
				return podman(runtime, append([]string{"exec", id}, args...)...)
			},
			remove: func(name string) *exec.Cmd { return podman("runc", "rm", "-f", name) },
		}, p.Runtimes)
	})
}

// throughEngine starts two containers with each runtime, and looks whether each
// has all its processes and nothing else.
func throughEngine(t *testing.T, name string, daemons []int, e engine, runtimes []string) {
	for _, runtime := range runtimes {
		t.Run(runtime, func(t *testing.T) {
			var ids []string
			for i := range 2 {
				c := fmt.Sprintf("tare-attribution-%s-%d", runtime, i)
				t.Cleanup(func() { output(t, e.remove(c)) })
				ids = append(ids, strings.TrimSpace(output(t, e.run(runtime, c))))
				session(t, e.exec(runtime, ids[i], probe.Name, "hold", strconv.Itoa(held), "60"))
			}
			for how, box := range map[string]func(*attribution.Snapshot) []attribution.Box{
				"by its id": func(*attribution.Snapshot) (out []attribution.Box) {
					for i, id := range ids {
						out = append(out, attribution.Box{Lane: i, IDs: []string{id}})
					}
					return out
				},
				"without being named": func(s *attribution.Snapshot) (out []attribution.Box) {
					for i, id := range ids {
						for _, f := range s.Sandboxes() {
							if slices.Contains(f.Box.IDs, id) {
								if f.Engine != name || f.Name != id[:12] {
									t.Errorf("%+v", f)
								}
								f.Box.Lane = i
								out = append(out, f.Box)
							}
						}
					}
					return out
				},
			} {
				t.Run(how, func(t *testing.T) {
					s, boxes, processes := found(t, box, daemons...)
					if len(boxes) != len(ids) {
						t.Fatalf("%d of %d: %+v", len(boxes), len(ids), s.Sandboxes())
					}
					var groups []string
					for lane := range ids {
						roles, memory, long := count(processes, lane)
						beside := record.RoleShim
						if name == "podman" {
							beside = record.RoleMonitor
						}
						inside, want := record.RoleWorkload, 2
						if strings.Contains(runtime, "runsc") {
							inside, want = record.RoleSentry, 1
						} else if memory < held || memory > held+200<<20 {
							t.Errorf("%d bytes with %d held%s", memory, held, long)
						}
						if roles[beside] < 1 || roles[inside] != want || roles[record.RoleRuntime] < 1 || roles["unread"] > 0 || want == 0 {
							t.Errorf("%v%s", roles, long)
						}
						var own []string
						for _, g := range s.Charges(processes, boxes) {
							if g.Lane == lane && g.Charge == record.ChargePod {
								own = append(own, g.Path)
							}
						}
						if len(own) != 1 || !strings.Contains(own[0], ids[lane]) {
							t.Errorf("%v: %v", own, s.Charges(processes, boxes))
							continue
						}
						groups = append(groups, own[0])
						inGroup(t, own[0], processes, lane)
					}
					if len(groups) == 2 && groups[0] == groups[1] {
						t.Error(groups)
					}
					roles, _, long := count(processes, -1)
					if roles[record.RoleDaemon] < len(daemons) || len(roles) != 1 {
						t.Errorf("%v%s", roles, long)
					}
				})
			}
		})
	}
}

func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v: %s", strings.Join(cmd.Args, " "), err, stderr.String())
	}
	return string(out)
}

// archive makes a tar file of a root file system with the probe in it.
func archive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, file := filepath.Join(dir, "root"), filepath.Join(dir, "root.tar")
	if err := probe.Rootfs(root); err != nil {
		t.Fatal(err)
	}
	output(t, exec.Command("tar", "-C", root, "-cf", file, "."))
	return file
}

func TestRealPodsProcessesAreFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("engines need root")
	}
	for name, start := range map[string]func(t *testing.T) (subject.Engine, int){
		"containerd": func(t *testing.T) (subject.Engine, int) {
			d := engines.Containerd(t, engines.V2)
			return subject.Engine{Address: d.Address}, d.Pid
		},
		"cri-o": func(t *testing.T) (subject.Engine, int) {
			d := engines.CRIO(t)
			return subject.Engine{Address: "unix://" + d.Socket, Command: d.Skopeo}, d.Pid
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, daemon := start(t)
			tg, err := cri.New(t.Context(), "cri+"+name+"/runc", name, "runc", e)
			if err != nil {
				t.Fatal(err)
			}
			run := fmt.Sprintf("p%07x", os.Getpid())
			s, err := tg.Open(t.Context(), subject.Env{RunID: run, Dir: t.TempDir(), StateDir: t.TempDir(), Lanes: 2, Timeout: time.Minute, Limits: subject.DefaultLimits})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(context.Background()); err != nil {
					t.Error(err)
				}
				if hs, err := cgroup.Hierarchies(); err != nil || cgroup.Remove(hs, cgroup.Prefix+run) != nil {
					t.Errorf("the run's cgroup is left; %v", err)
				}
			})
			b, err := s.Prepare(t.Context(), subject.Run, []int{0, 1})
			if err != nil {
				t.Fatal(err)
			}
			_, samples, err := b.Start(t.Context())
			if err != nil || samples[0].Failure != nil || samples[1].Failure != nil {
				t.Fatalf("%v %+v", err, samples)
			}
			sandboxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			pids := map[string][2][]int{}
			for how, box := range map[string]func(*attribution.Snapshot) []attribution.Box{
				"as the target says": func(*attribution.Snapshot) (out []attribution.Box) {
					for _, b := range sandboxes {
						out = append(out, attribution.Box(b))
					}
					return out
				},
				"without being named": func(s *attribution.Snapshot) (out []attribution.Box) {
					for _, b := range sandboxes {
						for _, f := range s.Sandboxes() {
							// CRI-O's pods have no process and so no id to be seen.
							if slices.Contains(f.Box.IDs, b.IDs[0]) && f.Engine == name {
								f.Box.Lane = b.Lane
								out = append(out, f.Box)
							}
						}
					}
					return out
				},
			} {
				snapshot, boxes, processes := found(t, box, daemon)
				if len(boxes) != 2 {
					t.Fatalf("%s: %d boxes: %+v", how, len(boxes), snapshot.Sandboxes())
				}
				groups := snapshot.Charges(processes, boxes)
				var all [2][]int
				for lane := range all {
					roles, _, long := count(processes, lane)
					if roles[record.RoleWorkload] != 1 || roles[record.RoleShim]+roles[record.RoleMonitor] < 1 || roles["unread"] > 0 ||
						(roles[record.RolePause] == 1) != (sandboxes[lane].Pause != 0) {
						t.Errorf("%s: %v%s", how, roles, long)
					}
					if !slices.ContainsFunc(groups, func(g attribution.GroupCharge) bool { return g.Charge == record.ChargePod && g.Lane == lane }) {
						t.Errorf("%s: %v", how, groups)
					}
					for _, p := range processes {
						if p.Lane == lane {
							all[lane] = append(all[lane], p.Pid)
						}
					}
				}
				inGroup(t, sandboxes[0].Group, processes, 0)
				inGroup(t, sandboxes[1].Group, processes, 1)
				pids[how] = all
			}
			for lane := range 2 {
				if a, b := pids["as the target says"][lane], pids["without being named"][lane]; !slices.Equal(a, b) {
					t.Errorf("lane %d: %v by the target, %v found", lane, a, b)
				}
			}
		})
	}
}
