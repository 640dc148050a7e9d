package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/subject/kata"
)

// KataFacts are what a record says of Kata below the daemon behind a socket:
// shim is the program that it starts, as a path or a name on its PATH, and
// config the configuration file that it names to the shim, "" for none. Which
// file that is by default depends on the daemon's environment and mounts, not on
// tare's.
func KataFacts(ctx context.Context, socket, shim, config string) map[string]string {
	named := "not reported by the engine"
	if config != "" {
		named = config + ", not read"
	}
	d, err := DaemonOf(socket)
	if err != nil {
		return kata.Unread(fmt.Sprintf("%s; nor can the engine's surroundings be known: %v", named, err))
	}
	defer d.Close()
	if !d.shares("mnt") {
		return kata.Unread(named + "; the engine's mounts are not tare's")
	}
	environ, err := os.ReadFile(d.File("environ"))
	if err != nil {
		return kata.Unread(fmt.Sprintf("%s; nor can the engine's environment be known: %v", named, err))
	}
	if shim != "" && !filepath.IsAbs(shim) {
		shim = d.search().look(filepath.Base(shim))
	}
	inherited, _ := variable(string(environ), "KATA_CONF_FILE")
	return kata.Shim{Config: config, Environ: inherited, Program: shim}.Facts(ctx)
}

// NoShim says where the daemon behind a socket looks in vain for a shim, a path or a
// name: on its PATH and beside its own program. It is "" where the shim is there, or
// that cannot be known.
func NoShim(socket, shim string) string {
	d, err := DaemonOf(socket)
	if err != nil {
		return ""
	}
	defer d.Close()
	in := d.search()
	if own, err := os.Readlink(d.File("exe")); err == nil {
		in.path += ":" + filepath.Dir(own)
	}
	if filepath.IsAbs(shim) {
		in.path = filepath.Dir(shim)
	}
	if in.look(filepath.Base(shim)) != "" {
		return ""
	}
	return in.path
}

// variable is the value of one in a process's environment, as in
// /proc/PID/environ.
func variable(environ, name string) (value string, ok bool) {
	for v := range strings.SplitSeq(environ, "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
