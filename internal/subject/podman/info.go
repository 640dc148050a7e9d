package podman

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
	"github.com/tare-bench/tare/internal/subject/kata"
)

// info is the relevant part of `podman info --format json`.
type info struct {
	Host struct {
		CgroupManager   string `json:"cgroupManager"`
		CgroupVersion   string `json:"cgroupVersion"`
		DatabaseBackend string `json:"databaseBackend"` // since 4.6
		EventLogger     string `json:"eventLogger"`
		LogDriver       string `json:"logDriver"`
		NetworkBackend  string `json:"networkBackend"`
		ServiceIsRemote bool   `json:"serviceIsRemote"`
		Conmon          struct {
			Version string `json:"version"`
		} `json:"conmon"`
		OCIRuntime struct {
			Name    string `json:"name"`
			Path    string `json:"path"`
			Version string `json:"version"` // output of --version, several lines
		} `json:"ociRuntime"`
		Security struct {
			Rootless bool `json:"rootless"`
		} `json:"security"`
	} `json:"host"`
	Store struct {
		GraphDriverName string         `json:"graphDriverName"`
		GraphRoot       string         `json:"graphRoot"`
		Status          map[string]any `json:"graphStatus"`
		RunRoot         string         `json:"runRoot"`
	} `json:"store"`
	Version struct {
		Version string `json:"Version"`
	} `json:"version"`
}

func ask(ctx context.Context, podman cli.Program) (info, error) {
	out, err := podman.Run(ctx, "info", "--format", "json")
	if err != nil {
		return info{}, err
	}
	return parseInfo(out)
}

func parseInfo(text []byte) (info, error) {
	var i info
	if err := json.Unmarshal(text, &i); err != nil {
		return info{}, fmt.Errorf("parse the output of podman info: %w", err)
	}
	if i.Version.Version == "" || i.Host.OCIRuntime.Name == "" {
		return info{}, fmt.Errorf("podman info has no version or no runtime")
	}
	return i, nil
}

// oldest is the first supported version: it has `create --pull never` and `rm --ignore`.
const oldest = 3

// check returns why this podman cannot be measured.
func (i info) check(name string) error {
	switch {
	case i.major() < oldest:
		return engine.Unavailable(name, "install a newer podman", "podman %s is too old (minimum: %d.0)", i.Version.Version, oldest)
	case i.Host.ServiceIsRemote:
		return engine.Unavailable(name, "unset CONTAINER_HOST, or weigh that service as docker, with --docker-host",
			"this podman is the client of a service, where the runtime cannot be chosen")
	}
	return nil
}

func (i info) major() int {
	major, _, _ := strings.Cut(i.Version.Version, ".")
	n, _ := strconv.Atoi(major)
	return n
}

// runtimeBanner returns the first line of the runtime's version output.
func (i info) runtimeBanner() string {
	line, _, _ := strings.Cut(i.Host.OCIRuntime.Version, "\n")
	return strings.TrimSpace(line)
}

func (i info) isCrun() bool { return strings.HasPrefix(i.runtimeBanner(), "crun ") }

// aliases returns all names of the runtime, its version output included: gVisor's program may
// have any name.
func (i info) aliases() []string {
	return []string{i.Host.OCIRuntime.Name, i.Host.OCIRuntime.Path, i.runtimeBanner()}
}

func (i info) clock() string { return engine.Clock(strings.Join(i.aliases(), " ")) }

// logDriver returns the log driver to request, "" for the default.
func (i info) logDriver() string {
	if d := i.Host.LogDriver; d == "none" || strings.HasPrefix(d, "passthrough") {
		return "k8s-file"
	}
	return ""
}

func (i info) config() map[string]string {
	backing, _ := i.Store.Status["Backing Filesystem"].(string)
	c := map[string]string{
		"runtime":             i.Host.OCIRuntime.Name,
		"runtime path":        i.Host.OCIRuntime.Path,
		"runtime version":     i.runtimeBanner(),
		"storage driver":      i.Store.GraphDriverName,
		"storage root":        i.Store.GraphRoot,
		"backing file system": backing,
		"run root":            i.Store.RunRoot,
		"cgroup driver":       i.Host.CgroupManager,
		"cgroup version":      i.Host.CgroupVersion,
		"monitor":             i.Host.Conmon.Version,
		"event logger":        i.Host.EventLogger,
		"log driver":          i.Host.LogDriver,
		"network backend":     i.Host.NetworkBackend,
		"database":            i.Host.DatabaseBackend,
		"rootless":            strconv.FormatBool(i.Host.Security.Rootless),
	}
	if kata.Is(i.Host.OCIRuntime.Name) || kata.Is(i.Host.OCIRuntime.Path) {
		maps.Copy(c, kata.Facts(""))
	}
	maps.DeleteFunc(c, func(_, value string) bool { return value == "" })
	return c
}
