package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client/pkg/versions"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/kata"
	"github.com/tare-bench/tare/record"
)

// Info implements subject.Target.
func (t *Target) Info() record.Target {
	info := record.Target{
		Name: t.name, Kind: "docker", Version: t.info.ServerVersion, Path: cmp.Or(engine.Socket(t.host), t.host), Clock: t.clock(),
		Operations: t.operations(), Config: t.config(), Notes: t.notes(),
	}
	if t.command != nil {
		info.Path = t.command.Path
	}
	return info
}

// operations describes the timed operations.
func (t *Target) operations() map[string]record.Operation {
	d := &driver{Target: t, image: &image.Image{Ref: image.Repository}, env: subject.Env{RunID: "RUN", Limits: subject.DefaultLimits}}
	if i, err := image.Probe(); err == nil {
		d.image = i
	}
	reply, both := "the daemon has replied", " to both requests"
	if t.command != nil {
		reply, both = "the command has exited with 0", ""
	}
	alive := "; then: the workload has reported in the container's log, inspect says running"
	if t.local {
		alive += ", its process lives"
	}
	shown := func(op subject.Op) string {
		if t.command != nil {
			return lane.Quote(d.commands().Line(op, "ID", engine.Place{}))
		}
		_, shown, _ := d.call(context.Background(), op, engine.State{Name: "ID"}, engine.Place{})
		return shown
	}
	return engine.Operations("containers of Docker have no pods", shown, map[subject.Op]string{
		subject.Create: reply + "; then: inspect says created",
		subject.Start:  reply + alive,
		subject.Stop:   reply + ", once the container has exited on the stop signal; then: inspect says exited, with status 0",
		subject.Remove: reply + "; then: the container is no longer listed",
		subject.Run:    reply + both + alive,
	})
}

// compact returns v as JSON without empty members.
func compact(v any) string {
	var all any
	b, _ := json.Marshal(v) // a type of the API
	_ = json.Unmarshal(b, &all)
	empty(all)
	b, _ = json.Marshal(all)
	return string(b)
}

// empty removes empty members of objects, and reports whether nothing is left.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return empty(member) })
		return len(v) == 0
	case []any:
		return !slices.ContainsFunc(v, func(member any) bool { return !empty(member) })
	}
	return reflect.ValueOf(v).IsZero()
}

// config lists the daemon's facts that affect results.
func (t *Target) config() map[string]string {
	r := t.info.Runtimes[t.oci()]
	facts := map[string]string{
		"runtime": t.oci(), "runtime path": r.Path, "runtime type": r.Type, "runtime version": t.program,
		"runtime arguments": lane.Quote(r.Args),
		"via":               t.via, "address": t.host, "tls": "", "network": t.network,
		"api version": t.ClientVersion(), "storage driver": t.info.Driver, "log driver": t.info.LoggingDriver,
		"cgroup driver": t.info.CgroupDriver, "cgroup version": t.info.CgroupVersion,
		"security": strings.Join(t.info.SecurityOptions, " "), "root": t.info.DockerRootDir,
		"live restore": strconv.FormatBool(t.info.LiveRestoreEnabled), "debug": strconv.FormatBool(t.info.Debug),
		"product": t.version.Platform.Name, "kernel": t.info.KernelVersion,
		"daemon": "on this machine", "command version": t.client,
	}
	for _, s := range t.info.DriverStatus {
		if s[0] == "Backing Filesystem" {
			facts["backing file system"] = s[1]
		}
	}
	if !t.local {
		facts["daemon"] = "elsewhere: " + t.remote
	}
	if strings.HasPrefix(t.host, "tcp://") {
		facts["tls"] = tlsKind(t.secure)
	}
	for _, c := range t.version.Components {
		if c.Name == "containerd" {
			facts["containerd version"] = c.Version
		}
	}
	if t.local && (kata.Is(t.oci()) || kata.Is(r.Path) || kata.Is(r.Type)) {
		path, _ := r.Options["ConfigPath"].(string)
		maps.Copy(facts, kata.Facts(path))
	}
	maps.DeleteFunc(facts, func(_, value string) bool { return value == "" })
	return facts
}

// notes lists what a reader of the results needs to know.
func (t *Target) notes() []string {
	var notes []string
	switch {
	case !t.local:
		notes = append(notes, "the daemon counts as remote ("+t.remote+"): the workload's first instruction and exit have no stamps")
	case t.clock() == "guest":
		notes = append(notes, "the workload has a guest clock, so its first instruction has no stamp")
	}
	if t.podman {
		notes = append(notes, "the daemon is Podman's service; its stop polls for the end of the process (every 100 ms in version 4.3, every 10 ms in later ones), and its monitor's clean-up after a stop is awaited, untimed")
		if t.ulimits != nil {
			notes = append(notes, "containers have the service's limits of files and processes: the service may not raise them (no CAP_SYS_RESOURCE)")
		}
	}
	if n := logNote(t.info, t.ClientVersion()); n != "" {
		notes = append(notes, n)
	}
	notes = append(notes, "stop sends the stop signal, and SIGKILL after 10 s, which counts as a failure")
	if !slices.ContainsFunc(t.info.SecurityOptions, func(o string) bool { return o == "seccomp" || strings.HasPrefix(o, "name=seccomp") }) {
		notes = append(notes, "containers have no seccomp profile")
	}
	return notes
}

// logNote describes how the daemon's log driver affects the check that the workload ran. That check
// needs the workload's line in the container's log.
func logNote(info system.Info, api string) string {
	without := "the first instruction has no stamp, and only the container's state shows that it runs"
	switch d := info.LoggingDriver; {
	case d == "json-file" || d == "local" || d == "journald":
		return ""
	case d == "none":
		return "the daemon's log driver is none: " + without
	case versions.LessThan(api, "1.41"):
		return fmt.Sprintf("the daemon's log driver %s cannot be read before Docker 20.10: %s", d, without)
	default:
		return fmt.Sprintf("the daemon's log driver is %s: the workload's line is read from the daemon's cache; if that is disabled, %s", d, without)
	}
}
