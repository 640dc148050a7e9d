// Command neighbours runs a command on a busy machine. It has busy loops, disk writers,
// processes with the names of engines and their shims, and cgroups of containers. BPF
// programs and maps have the names and pins of Kmesh and Cilium. There is a configuration
// of isulad, and with -docker N a dockerd with N containers.
//
//	go run ./internal/testing/neighbours go test ./internal/node/...
//
// Mounts and pins are in a separate mount namespace, which the command shares; it ends with
// its last process. The other processes end with this one, however it ends. The next start
// removes the cgroups and the folder of a killed one.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/need"
)

const (
	inside  = "TARE_NEIGHBOURS" // set in the environment once this program has a mount namespace
	prefix  = "neighbour-"      // followed by the creator's pid: names a cgroup or a folder
	folders = "/var/tmp"
	id      = "5f0c4a9e2b7d4c1f8a6e3b9d0c7f2a1e5f0c4a9e2b7d4c1f8a6e3b9d0c7f2a1e"
)

// roles maps the name of a process of this binary to its function.
var roles = map[string]func(){
	"busy": func() {
		for { //nolint:staticcheck // a busy loop on purpose
		}
	},
	"writer": write,
}

// sleepers are command lines of idle processes.
var sleepers = []string{
	"containerd-shim-runc-v2 -namespace moby -id " + id + " -address /run/containerd/containerd.sock",
	"containerd-shim-kata-v2 -namespace k8s.io -id " + id,
	"conmon --api-version 1 -c " + id + " -u " + id,
	"isulad-shim " + id + " /run/isulad/runc/" + id + " runc info 3m0s",
	"qemu-system-x86_64 -name sandbox-" + id + " -m 2048",
	"dockerd -H fd://", "isulad", "crio", "kubelet --container-runtime-endpoint=unix:///run/containerd/containerd.sock",
}

// maps and programs of Kmesh and Cilium, by the folder of their pins.
var (
	maps = map[string][]string{
		"bpf_kmesh_workload/map": {"km_service", "km_endpoint", "km_backend", "kmesh_map64", "kmesh_map1600"},
		"tc/globals":             {"cilium_lb4_serv", "cilium_calls_00"},
	}
	programs = map[string][]string{
		"bpf_kmesh_workload/sockconn": {"cgroup_connect4", "sockops_prog", "sendmsg_prog"},
		"tc/programs":                 {"cil_from_netdev", "cil_to_host"},
	}
)

// covered reports whether this process has a mount over /etc in its mount namespace.
var covered bool

func main() {
	if role := roles[os.Args[0]]; role != nil {
		role()
	}
	if slices.ContainsFunc(sleepers, func(line string) bool { return strings.Fields(line)[0] == os.Args[0] }) {
		_ = os.WriteFile("/proc/self/comm", []byte(os.Args[0]), 0)
		sleep()
	}
	containers := flag.Int("docker", 0, "containers of a dockerd; 0 for no dockerd")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: neighbours [-docker N] COMMAND [ARGUMENT...]")
		os.Exit(1)
	}
	code, err := run(flag.Args(), *containers)
	if err != nil {
		fmt.Fprintln(os.Stderr, "neighbours:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(command []string, containers int) (code int, err error) {
	// One thread does everything: it owns the mount namespace, and the neighbours end with
	// it.
	runtime.LockOSThread()
	if err := sweep(); err != nil {
		return 1, err
	}
	dir := filepath.Join(folders, prefix+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 1, err
	}
	var running []*exec.Cmd
	defer func() {
		for _, cmd := range running {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		err = errors.Join(err, engines.Stop(), sweep())
	}()
	if err := errors.Join(configure(dir), pinAll()); err != nil {
		return 1, err
	}
	for _, line := range append([]string{"busy", "busy", "writer", "writer"}, sleepers...) {
		argv := strings.Fields(line)
		cmd := exec.Command("/proc/self/exe")
		cmd.Args, cmd.Dir = argv, dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if err := cmd.Start(); err != nil {
			return 1, err
		}
		running = append(running, cmd)
	}
	if err := group(running[len(running)-1].Process.Pid); err != nil {
		return 1, err
	}
	if containers > 0 {
		if err := docker(containers); err != nil {
			return 1, err
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signal.Notify(make(chan os.Signal, 1), unix.SIGINT, unix.SIGTERM) // the command handles signals, and this process ends after it
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1), nil
	}
	return 0, err
}

func sleep() {
	for {
		time.Sleep(time.Hour)
	}
}

// write writes files and syncs them.
func write() {
	block := bytes.Repeat([]byte("neighbour"), 1<<20/9)
	file, err := os.Create(strconv.Itoa(os.Getpid()))
	for i := int64(0); err == nil; i = (i + 1) % 64 {
		_, err = file.WriteAt(block, i<<20)
		err = errors.Join(err, file.Sync())
		time.Sleep(5 * time.Millisecond)
	}
	fmt.Fprintln(os.Stderr, "neighbours: write:", err)
	os.Exit(1)
}

// configure creates a configuration of isulad and a bpffs.
func configure(dir string) error {
	layers, upper, work := dir+"/layers", dir+"/layers/upper", dir+"/layers/work"
	for _, step := range []func() error{
		func() error { return unix.Unshare(unix.CLONE_NEWNS) },
		func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return unix.Mount("bpf", "/sys/fs/bpf", "bpf", 0, "") },
		func() error { return os.Mkdir(layers, 0o755) },
		func() error { return unix.Mount("tmpfs", layers, "tmpfs", 0, "") },
		func() error { return errors.Join(os.Mkdir(upper, 0o755), os.Mkdir(work, 0o755)) },
		func() error {
			return unix.Mount("overlay", "/etc", "overlay", 0, "lowerdir=/etc,upperdir="+upper+",workdir="+work)
		},
	} {
		if err := step(); err != nil {
			return fmt.Errorf("mount a bpffs, and a tmpfs over /etc, in a separate namespace: %w", err)
		}
	}
	covered = true
	config := `{"default-runtime":"lcr","pod-sandbox-image":"mirrorgooglecontainers/pause-amd64:3.0","runtimes":{"kata":{"path":"/usr/bin/kata-runtime"}}}`
	return errors.Join(os.Mkdir("/etc/isulad", 0o755), os.WriteFile("/etc/isulad/daemon.json", []byte(config), 0o644))
}

func pinAll() error {
	each := func(folders map[string][]string, load func(name string) (pinned, error)) error {
		for folder, names := range folders {
			for _, name := range names {
				object, err := load(name)
				if err == nil {
					err = errors.Join(os.MkdirAll(filepath.Join("/sys/fs/bpf", folder), 0o700), object.Pin(filepath.Join("/sys/fs/bpf", folder, name)))
				}
				if err != nil {
					return fmt.Errorf("load and pin %s: %w", name, err)
				}
			}
		}
		return nil
	}
	return errors.Join(each(maps, func(name string) (pinned, error) {
		return ebpf.NewMap(&ebpf.MapSpec{Name: name, Type: ebpf.Hash, KeySize: 4, ValueSize: 64, MaxEntries: 1000})
	}), each(programs, func(name string) (pinned, error) {
		return ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, License: "GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	}))
}

type pinned interface{ Pin(path string) error }

// group moves a process into a tree of cgroups like Docker's.
func group(pid int) error {
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	for _, h := range hs {
		dir := filepath.Join(h.Mount, prefix+strconv.Itoa(os.Getpid()), "docker", id)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		// Ignore errors: a new cpuset cgroup has no CPUs and accepts no process.
		_ = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0)
	}
	return nil
}

// sweep removes the folders and cgroups of this process and of dead ones.
func sweep() error {
	hs, err := cgroup.Hierarchies()
	errs := []error{err}
	for _, place := range append([]cgroup.Hierarchy{{Mount: folders}}, hs...) {
		found, err := filepath.Glob(filepath.Join(place.Mount, prefix+"*"))
		errs = append(errs, err)
		for _, dir := range found {
			pid, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(dir), prefix))
			if err != nil || pid != os.Getpid() && unix.Kill(pid, 0) == nil {
				continue
			}
			if place.Mount == folders {
				if covered && pid == os.Getpid() {
					_ = unix.Unmount("/etc", unix.MNT_DETACH) // its layers are in the folder
				}
				errs = append(errs, mounts.RemoveTree(dir))
				continue
			}
			for _, each := range []string{filepath.Join(dir, "docker", id), filepath.Join(dir, "docker"), dir} {
				for range 50 { // a killed process takes a moment to end
					if err = os.Remove(each); err == nil || errors.Is(err, os.ErrNotExist) {
						err = nil
						break
					}
					time.Sleep(20 * time.Millisecond)
				}
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// starter starts the engine. An error ends the program.
type starter struct{}

func (starter) Helper() {}

func (starter) Fatalf(format string, arguments ...any) { panic(fmt.Errorf(format, arguments...)) }

func (s starter) Skipf(format string, arguments ...any) { s.Fatalf(format, arguments...) }

// docker starts a dockerd with containers of tare's probe, which have their own names.
func docker(containers int) (err error) {
	defer func() {
		if failed, ok := recover().(error); ok {
			err = failed
		}
	}()
	was := os.Getenv(need.Variable)
	defer func() { _ = os.Setenv(need.Variable, was) }()
	if err := os.Setenv(need.Variable, "all"); err != nil {
		return err
	}
	d := engines.Docker(starter{})
	probe, err := image.Probe()
	if err != nil {
		return err
	}
	archive, err := probe.Open()
	if err != nil {
		return err
	}
	defer archive.Close()
	load := exec.Command(d.Command, "-H", d.Host, "load")
	load.Stdin = archive
	if out, err := load.CombinedOutput(); err != nil {
		return fmt.Errorf("load an image: %w: %s", err, out)
	}
	for range containers {
		if out, err := exec.Command(d.Command, "-H", d.Host, "run", "--detach", "--network", "none", probe.Ref, "neighbour").CombinedOutput(); err != nil {
			return fmt.Errorf("run a container: %w: %s", err, out)
		}
	}
	return nil
}
