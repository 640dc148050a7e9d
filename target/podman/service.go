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
	"syscall"

	"github.com/tare-bench/tare/meter/process"
	"github.com/tare-bench/tare/probe/image"
	"github.com/tare-bench/tare/record"
	"github.com/tare-bench/tare/target"
	"github.com/tare-bench/tare/target/engine"
	"github.com/tare-bench/tare/target/kata"
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
}

const startService = "systemctl start podman.socket, or: podman system service --time 0 unix:///run/podman/podman.sock"

func newService(ctx context.Context, name, runtime string, e target.Engine) (*Service, error) {
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
	if pid, err := process.Listener(engine.Socket(address)); err == nil {
		s.rlimits = lowered(pid)
	}
	s.image, err = image.Probe()
	return s, err
}

// serviceAddress is what e says, else what podman's own clients go by.
func serviceAddress(e target.Engine) string {
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
	Resources struct {
		Memory *limit  `json:"memory,omitempty"`
		Pids   *limit  `json:"pids,omitempty"`
		CPU    *shares `json:"cpu,omitempty"`
	} `json:"resource_limits"`
	Rlimits []rlimit   `json:"r_limits,omitempty"`
	Log     *logDriver `json:"log_configuration,omitempty"`
}

type limit struct {
	Limit int64 `json:"limit"`
}

type shares struct {
	Shares int64 `json:"shares"`
}

type rlimit struct {
	Type string `json:"type"` // without RLIMIT_
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

type logDriver struct {
	Driver string `json:"driver"`
}

func (s *Service) specify(runID, name string, limits target.Limits) []byte {
	spec := specification{
		Name: name, Image: s.image.Ref, Command: []string{name}, Labels: map[string]string{engine.RunLabel: runID},
		OCIRuntime: s.runtime, Rlimits: s.rlimits,
	}
	spec.Netns.Mode = s.network
	if limits.Memory > 0 {
		spec.Resources.Memory = &limit{limits.Memory}
	}
	if limits.Pids > 0 {
		spec.Resources.Pids = &limit{limits.Pids}
	}
	if limits.CPUShares > 0 {
		spec.Resources.CPU = &shares{limits.CPUShares}
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
func (s *Service) calls(op target.Op, runID, name string, limits target.Limits) string {
	at := "/v" + s.client.version + "/libpod/containers/"
	create := "POST " + at + "create " + string(s.specify(runID, name, limits))
	start := "POST " + at + name + "/start"
	switch op {
	case target.Create:
		return create
	case target.Run:
		return create + "; " + start
	case target.Start:
		return start
	case target.Stop:
		return "POST " + at + name + "/stop"
	case target.Remove:
		return "DELETE " + at + name
	}
	return ""
}

// Info implements target.Target.
func (s *Service) Info() record.Target {
	out := record.Target{
		Name: s.name, Kind: "podman", Version: s.info.Version.Version, Path: s.client.address, Clock: s.info.clock(),
		Operations: operations(func(op target.Op) string { return s.calls(op, "RUN", "ID", target.DefaultLimits) }, "the service has replied"),
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
