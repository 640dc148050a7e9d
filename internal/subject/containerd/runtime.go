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

// shimmed maps runtimes to their own shims.
var shimmed = map[string]string{"runsc": "io.containerd.runsc.v1", "kata": "io.containerd.kata.v2"}

// runtime is a shim, with the OCI runtime that it calls.
type runtime struct {
	shim    string // "io.containerd.runc.v2"
	binary  string // the option BinaryName; "" for the shim's default
	path    string // the OCI runtime, or the shim that is one; "" if unknown
	version string // of the OCI runtime
	program string // path of the shim
	note    string
}

// resolve finds a runtime: "" and "runc" are containerd's default; others are an OCI runtime on PATH,
// one with its own shim, or a shim by its full name, "io.containerd.NAME.vN".
func resolve(ctx context.Context, name, called string, in search) (runtime, error) {
	var r runtime
	switch {
	case strings.HasPrefix(called, "io.containerd."):
		r.shim = called
	case shimmed[called] != "" && in.look(ShimProgram(shimmed[called])) != "":
		r.shim = shimmed[called]
	case called == "kata":
		return r, engine.Unavailable(name, "install Kata Containers and link containerd-shim-kata-v2 into a folder of that path",
			"no containerd-shim-kata-v2 on containerd's path (%s)", in.path)
	default:
		r.shim = runtimeV2
	}
	shim := ShimProgram(r.shim)
	if r.program = in.look(shim); r.program == "" {
		return r, engine.Unavailable(name, "install it, or start containerd with a PATH that has it", "no %s on containerd's path (%s)", shim, in.path)
	}
	if r.shim != runtimeV2 {
		r.path = r.program
		return r, nil
	}
	return r.withBinary(ctx, name, called, in)
}

// ShimProgram returns the program of a shim: containerd derives it from the last two words of the
// name.
func ShimProgram(shim string) string {
	words := strings.Split(shim, ".")
	return "containerd-shim-" + strings.Join(words[max(0, len(words)-2):], "-")
}

// withBinary adds the OCI runtime that the runc shim calls. It queries the runtime's version,
// which also shows whether the program is a runtime at all. It runs the daemon's default runtime
// only if tare may execute it.
func (r runtime) withBinary(ctx context.Context, name, called string, in search) (runtime, error) {
	program := called
	if called == "" || called == "runc" {
		if r.path = in.look("runc"); r.path == "" {
			return r, engine.Unavailable(name, "apt-get install runc", "no runc on containerd's path (%s)", in.path)
		}
		if program = in.executable(r.path); program == "" {
			r.note = "containerd has its own mount namespace: the version of its runc is unknown"
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
		r.note = "containerd-shim-runsc-v1 is missing: containerd's runc shim calls runsc"
	}
	return r, nil
}

// options returns the options of the shim.
func (r runtime) options() any {
	if r.shim != runtimeV2 {
		return nil
	}
	return &options.Options{BinaryName: r.binary}
}

// Runtimes lists the OCI runtimes on PATH and those with a shim, containerd's default first.
// Without containerd, the error is a *subject.Unavailable.
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
	for _, name := range append(oci.Names(), "kata") { // runc is first
		if _, err := resolve(ctx, name, name, in); err == nil {
			out = append(out, name)
		}
	}
	return out, nil
}
