package podman

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Service is podman's API service with one runtime.
type Service struct {
	name    string
	client  *client
	info    info
	image   *image.Image
	network string
	driver  string
	runtime string // to ask for with every container; "" for the service's own
	rlimits []rlimit
	afar    string // why the service is taken to be on another machine, "" where it is on this one
}

const startService = "systemctl start podman.socket, or: podman system service --time 0 unix:///run/podman/podman.sock"

func newService(ctx context.Context, name, runtime string, e subject.Engine) (*Service, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &Service{name: name, network: network(e)}
	address := serviceAddress(e)
	var err error
	if s.client, err = connect(ctx, address); err != nil {
		advice := startService
		if errors.Is(err, fs.ErrPermission) {
			advice = "run tare as root, or as a user who may open the socket"
		} else if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED) {
			advice = "make this work: curl --unix-socket " + engine.Socket(address) + " http://podman/_ping"
		}
		return nil, engine.Unavailable(name, advice, "%v", err)
	}
	out, err := s.client.call(ctx, http.MethodGet, "/info", nil)
	if err == nil {
		s.info, err = parseInfo(out)
	}
	if err != nil {
		return nil, engine.Unavailable(name, startService, "%v", err)
	}
	s.info.Host.ServiceIsRemote = false // which it is to any client
	if err := s.info.check(name); err != nil {
		return nil, err
	}
	if err := s.choose(runtime); err != nil {
		return nil, err
	}
	s.driver = s.info.logDriver()
	if pid, err := procs.Listener(engine.Socket(address)); err == nil {
		s.rlimits = lowered(pid)
		s.afar = elsewhere(pid)
	} else {
		s.afar = err.Error()
	}
	s.image, err = image.Probe()
	return s, err
}

// elsewhere says why what listens on the service's socket is not the service on
// this machine, "" where it is: a socket may also lead through a tunnel or to a
// virtual machine. systemd listens for a service that it starts when it is asked.
func elsewhere(pid int) string {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Sprintf("the process %d that listens on the socket cannot be looked at", pid)
	}
	exe = filepath.Base(strings.TrimSuffix(exe, " (deleted)")) // by an upgrade
	if exe != "podman" && exe != "systemd" {
		return exe + " listens on the socket, which is not podman"
	}
	ours, err := os.Readlink("/proc/self/ns/pid")
	theirs, err2 := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	if err != nil || err2 != nil || ours != theirs {
		return "the service has a pid namespace of its own"
	}
	return ""
}

// serviceAddress is what e says, else what podman's own clients go by.
func serviceAddress(e subject.Engine) string {
	if e.Address != "" {
		return e.Address
	}
	host, given := e.Env["CONTAINER_HOST"]
	if !given {
		host = os.Getenv("CONTAINER_HOST")
	}
	if host != "" {
		return host
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && os.Geteuid() != 0 {
		return "unix://" + filepath.Join(dir, "podman/podman.sock")
	}
	return "unix:///run/podman/podman.sock"
}

// choosing is the first version whose API heeds a container's oci_runtime.
// Those before take it and use their own runtime without a word.
const choosing = 6

func (s *Service) choose(runtime string) error {
	own := s.info.Host.OCIRuntime
	switch {
	case runtime == "" || runtime == own.Name || runtime == own.Path:
		return nil
	case s.info.major() >= choosing:
		s.runtime = runtime
		return nil
	}
	return engine.Unavailable(s.name, fmt.Sprintf("weigh podman/%s, or start a service for it and name its address: podman --runtime %s system service --time 0 unix:///run/podman/%s.sock",
		runtime, runtime, filepath.Base(runtime)),
		"the API of podman %s takes no runtime for a container (since %d.0 it does), and this service's is %s", s.info.Version.Version, choosing, own.Name)
}

// wanted is the runtime that a container must have, as podman names it.
func (s *Service) wanted() string { return cmp.Or(s.runtime, s.info.Host.OCIRuntime.Name) }

// callings are all by which that runtime may be known.
func (s *Service) callings() []string {
	if s.runtime != "" {
		return []string{s.runtime}
	}
	return s.info.callings()
}

// specification is a container as the API takes it: what is used of podman's
// SpecGenerator.
type specification struct {
	Name       string            `json:"name"`
	Image      string            `json:"image"`
	Command    []string          `json:"command"`
	Labels     map[string]string `json:"labels"`
	OCIRuntime string            `json:"oci_runtime,omitempty"`
	Netns      struct {
		Mode string `json:"nsmode"`
	} `json:"netns"`
	Mounts    []mount  `json:"mounts,omitempty"`
	Devices   []device `json:"devices,omitempty"`
	Resources struct {
		Memory *limit `json:"memory,omitempty"`
		Pids   *limit `json:"pids,omitempty"`
		CPU    *cpu   `json:"cpu,omitempty"`
	} `json:"resource_limits"`
	Rlimits []rlimit   `json:"r_limits,omitempty"`
	Log     *logDriver `json:"log_configuration,omitempty"`
}

type limit struct {
	Limit int64 `json:"limit"`
}

type cpu struct {
	Shares int64 `json:"shares,omitempty"`
	Quota  int64 `json:"quota,omitempty"`
	Period int64 `json:"period,omitempty"`
}

type mount struct {
	Destination string   `json:"destination"`
	Source      string   `json:"source"`
	Type        string   `json:"type"`
	Options     []string `json:"options"`
}

// device is one as the command line has it, SOURCE:DESTINATION:PERMISSIONS: the
// service takes it apart.
type device struct {
	Path string `json:"path"`
}

type rlimit struct {
	Type string `json:"type"` // without RLIMIT_
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

type logDriver struct {
	Driver string `json:"driver"`
}

// making is what a container is made of.
type making struct {
	runID, ref, name string
	limits           subject.Limits
	place            cli.Place
}

func (s *Service) specify(m making) []byte {
	limits := m.limits
	spec := specification{
		Name: m.name, Image: m.ref, Command: []string{m.name}, Labels: map[string]string{engine.RunLabel: m.runID},
		OCIRuntime: s.runtime, Rlimits: s.rlimits,
	}
	spec.Netns.Mode = s.network
	if limits.Memory > 0 {
		spec.Resources.Memory = &limit{limits.Memory}
	}
	// Podman has a limit of its own where none is asked for; 0 is what its
	// command sends for -1, none.
	spec.Resources.Pids = &limit{limits.Pids}
	if quota := limits.CPUQuota(); limits.CPUShares > 0 || quota > 0 {
		spec.Resources.CPU = &cpu{Shares: limits.CPUShares, Quota: quota, Period: subject.CPUPeriod * min(quota, 1)}
	}
	if m.place.Folder != "" {
		// As -v FOLDER:/data:Z on the command line.
		spec.Mounts = append(spec.Mounts, mount{subject.VolumePath, m.place.Folder, "bind", []string{"rbind", "Z"}})
	}
	if m.place.Tmpfs != nil {
		spec.Mounts = append(spec.Mounts, mount{subject.VolumePath, "tmpfs", "tmpfs", tmpfs(m.place)})
	}
	if m.place.Device != "" {
		spec.Devices = []device{{m.place.Device + ":" + subject.DevicePath + ":" + cli.DeviceAccess}}
	}
	if s.driver != "" {
		spec.Log = &logDriver{s.driver}
	}
	b, err := json.Marshal(spec)
	if err != nil {
		panic(err) // there is nothing in it that could fail
	}
	return b
}

// calls names the requests of an operation.
func (s *Service) calls(op subject.Op, m making) string {
	at := "/v" + s.client.version + "/libpod/containers/"
	create := "POST " + at + "create " + string(s.specify(m))
	start := "POST " + at + m.name + "/start"
	switch op {
	case subject.Create:
		return create
	case subject.Run:
		return create + "; " + start
	case subject.Start:
		return start
	case subject.Stop:
		return "POST " + at + m.name + "/stop"
	case subject.Remove:
		return "DELETE " + at + m.name
	}
	return ""
}

// Info implements subject.Target.
func (s *Service) Info() record.Target {
	m := making{"RUN", s.image.Ref, "ID", subject.DefaultLimits, cli.Place{}}
	out := record.Target{
		Name: s.name, Kind: "podman", Version: s.info.Version.Version, Path: s.client.address, Clock: s.info.clock(),
		Operations: operations(func(op subject.Op) string { return s.calls(op, m) }, "the service has replied"),
		Config:     s.info.config(), Notes: []string{stopNote},
	}
	out.Config["via"] = "API"
	out.Config["address"] = s.client.address
	out.Config["API version"] = s.client.version
	out.Config["network"] = s.network
	if s.runtime != "" {
		out.Clock = engine.Clock(s.runtime)
		out.Config["runtime"] = s.runtime
		delete(out.Config, "runtime path")
		delete(out.Config, "runtime version")
		if kata.Is(s.runtime) {
			maps.Copy(out.Config, kata.Facts(""))
		}
	}
	if s.driver != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("log driver %s instead of %s, which keeps no output to prove that the workload ran", s.driver, s.info.Host.LogDriver))
		out.Config["log driver"] = s.driver
	}
	if s.rlimits != nil {
		out.Notes = append(out.Notes, "containers are given the service's own limits of files and processes, because the service may not raise them (no CAP_SYS_RESOURCE), which it would do otherwise")
	}
	return out
}
