package containerd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/subject/kata"
)

// KataFacts returns facts about the Kata installation that the daemon behind a socket uses. shim
// is the program that the daemon starts, a path or a name on its PATH; config is the
// configuration file that it passes to the shim, "" for none. The default file depends on the
// daemon's environment and mounts, not on tare's.
func KataFacts(ctx context.Context, socket, shim, config string) map[string]string {
	named := "not reported by the engine"
	if config != "" {
		named = config + ", not read"
	}
	d, err := DaemonOf(socket)
	if err != nil {
		return kata.Unread(fmt.Sprintf("%s; the engine's environment is unavailable: %v", named, err))
	}
	defer d.Close()
	if !d.shares("mnt") {
		return kata.Unread(named + "; the engine's mounts are not tare's")
	}
	environ, err := os.ReadFile(d.File("environ"))
	if err != nil {
		return kata.Unread(fmt.Sprintf("%s; the engine's environment is unavailable: %v", named, err))
	}
	if shim != "" && !filepath.IsAbs(shim) {
		shim = d.search().look(filepath.Base(shim))
	}
	inherited, _ := variable(string(environ), "KATA_CONF_FILE")
	return kata.Shim{Config: config, Environ: inherited, Program: shim}.Facts(ctx)
}

// NoShim returns the folders that the daemon behind a socket searched in vain for a shim: its
// PATH and the folder of its own program. It returns "" if the shim exists or if that is
// unknown.
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

// variable returns a variable of an environment in the form of /proc/PID/environ.
func variable(environ, name string) (value string, ok bool) {
	for v := range strings.SplitSeq(environ, "\x00") {
		if value, ok := strings.CutPrefix(v, name+"="); ok {
			return value, true
		}
	}
	return "", false
}
