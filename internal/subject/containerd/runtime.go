package containerd

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/containerd/containerd/api/types/runc/options"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/oci"
)

// shimmed are the runtimes that have a shim of their own.
var shimmed = map[string]string{"runsc": "io.containerd.runsc.v1", "kata": "io.containerd.kata.v2"}

// runtime is how containers are told to run: which shim, and which OCI runtime
// that one calls.
type runtime struct {
	shim    string // "io.containerd.runc.v2"
	binary  string // the option BinaryName; "" leaves the shim its default
	path    string // the OCI runtime, or the shim that is one; "" unknown
	version string // of the OCI runtime
	program string // path of the shim
	note    string
}

// resolve finds the runtime of a name: "" and "runc" are containerd's own
// default, the others any OCI runtime on PATH, one with a shim of its own, or a
// shim by its full name, "io.containerd.NAME.vN".
func resolve(ctx context.Context, name, called string, in search) (runtime, error) {
	var r runtime
	switch {
	case strings.HasPrefix(called, "io.containerd."):
		r.shim = called
	case shimmed[called] != "" && in.look(ShimProgram(shimmed[called])) != "":
		r.shim = shimmed[called]
	case called == "kata":
		return r, engine.Unavailable(name, "install Kata Containers and link containerd-shim-kata-v2 into a folder of that path",
			"there is no containerd-shim-kata-v2 on containerd's path (%s)", in.path)
	default:
		r.shim = runtimeV2
	}
	shim := ShimProgram(r.shim)
	if r.program = in.look(shim); r.program == "" {
		return r, engine.Unavailable(name, "install it, or start containerd with a PATH that has it", "there is no %s on containerd's path (%s)", shim, in.path)
	}
	if r.shim != runtimeV2 {
		r.path = r.program
		return r, nil
	}
	return r.withBinary(ctx, name, called, in)
}

// ShimProgram is the program of a shim, which containerd finds by the last two
// words of its name.
func ShimProgram(shim string) string {
	words := strings.Split(shim, ".")
	return "containerd-shim-" + strings.Join(words[max(0, len(words)-2):], "-")
}

// withBinary adds the OCI runtime that the runc shim calls. It is asked for its
// version, so that what is no runtime is found out here; the daemon's own, only
// where tare may execute it.
func (r runtime) withBinary(ctx context.Context, name, called string, in search) (runtime, error) {
	program := called
	if called == "" || called == "runc" {
		if r.path = in.look("runc"); r.path == "" {
			return r, engine.Unavailable(name, "apt-get install runc", "there is no runc on containerd's path (%s)", in.path)
		}
		if program = in.own(r.path); program == "" {
			r.note = "containerd's mounts are not tare's, and so is its runc: its version was not asked for"
			return r, nil
		}
	}
	t, err := oci.New(ctx, filepath.Base(program), program)
	if not, ok := errors.AsType[*subject.Unavailable](err); ok {
		return r, &subject.Unavailable{Name: name, Reason: not.Reason, Advice: not.Advice}
	}
	if err != nil {
		return r, err
	}
	info := t.Info()
	r.path, r.version = info.Path, info.Version
	if called != "" && called != "runc" {
		r.binary = info.Path
	}
	if called == "runsc" {
		r.note = "there is no containerd-shim-runsc-v1: runsc is called by containerd's runc shim"
	}
	return r, nil
}

// options are what the shim is told.
func (r runtime) options() any {
	if r.shim != runtimeV2 {
		return nil
	}
	return &options.Options{BinaryName: r.binary}
}

// Runtimes lists what containers can be run with, containerd's default first:
// the OCI runtimes on PATH and those that have a shim. The error is a
// *subject.Unavailable when there is no containerd.
func Runtimes(ctx context.Context, e subject.Engine) ([]string, error) {
	p, err := addressOf(e)
	if err != nil {
		return nil, &subject.Unavailable{Name: "containerd", Reason: err.Error(), Advice: "give --containerd-address the path of its socket"}
	}
	c, err := Connect(ctx, p.socket, p.namespace)
	if err != nil {
		return nil, &subject.Unavailable{Name: "containerd", Reason: err.Error(), Advice: adviceFor(err)}
	}
	defer func() { _ = c.Close() }()
	in, letGo := searchOf(p.socket)
	defer letGo()
	var out []string
	for _, name := range append(oci.Names(), "kata") { // runc is the first
		if _, err := resolve(ctx, name, name, in); err == nil {
			out = append(out, name)
		}
	}
	return out, nil
}
