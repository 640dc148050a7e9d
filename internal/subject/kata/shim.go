package kata

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/child"
)

// Shim describes the shim that an engine starts.
type Shim struct {
	Config  string // configuration file that the engine passes to it; "" for none
	Environ string // KATA_CONF_FILE of the engine, which the shim inherits
	Program string // path of the shim; "" if it was not found
}

// Facts returns "kata version", if the shim reports it, and the facts of its configuration
// file. The file is the engine's, KATA_CONF_FILE's or the default. The Go runtime uses this
// order (loadRuntimeConfig of its containerd-shim-v2), runtime-rs prefers KATA_CONF_FILE
// (load_config of its runtimes crate). If the file is unknown, "kata config" has the reason and
// is the only fact.
func (s Shim) Facts(ctx context.Context) map[string]string {
	facts := s.configured()
	if real, err := plain(s.Program); err == nil {
		out, err := child.Run(ctx, child.Command{Args: []string{real, "--version"}})
		if m := banner.FindStringSubmatch(out.Output); err == nil && m != nil {
			facts["kata version"] = m[2] + " (" + m[1] + ")"
		}
	}
	return facts
}

// banner matches the version output of both runtimes' shims.
var banner = regexp.MustCompile(`^Kata Containers containerd shim \((Golang|Rust)\): id: "?[\w.-]+"?, version: ([\w.+-]{1,64}),`)

func (s Shim) configured() map[string]string {
	if s.Config != "" && s.Environ != "" && s.Config != s.Environ {
		return Unread(fmt.Sprintf("the engine passes %s, and its KATA_CONF_FILE is %s: Kata's Go runtime uses the first, runtime-rs the second", s.Config, s.Environ))
	}
	path := s.Config
	if path == "" {
		real, err := plain(s.Program)
		if err != nil {
			return Unread("not reported by the engine; " + err.Error())
		}
		if path = s.Environ; path == "" {
			among, known := candidates(real)
			if path, err = choose(real, among, known); err != nil {
				return Unread("not reported by the engine; " + err.Error())
			}
		}
	}
	if !filepath.IsAbs(path) {
		return Unread(fmt.Sprintf("the engine passes %q, which is not an absolute path", path))
	}
	return Facts(path)
}

// Unread returns the facts for an unknown configuration, with the reason.
func Unread(why string) map[string]string { return map[string]string{"kata config": why} }

// plain returns the real path of a shim without its own configuration. A shim for one
// hypervisor, such as containerd-shim-kata-qemu-v2, is often a script that sets KATA_CONF_FILE
// and calls the plain one. Scripts are not executed, and only the first four bytes are read, to
// recognise ELF files.
func plain(program string) (string, error) {
	const name = "containerd-shim-kata-v2"
	if program == "" {
		return "", fmt.Errorf("its shim was not found")
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", fmt.Errorf("inspect its shim: %w", err)
	}
	if !isELF(real) || filepath.Base(real) != name {
		return "", fmt.Errorf("%s is not %s itself and may use its own file", program, name)
	}
	return real, nil
}

func isELF(path string) bool {
	magic, err := machine.ReadPlain(path, 0, 4)
	return err == nil && string(magic) == "\x7fELF"
}

// candidates returns the configuration files that a plain shim tries, in its compiled-in order:
// runtime-rs tries all its paths, the Go runtime those in /etc and below its prefix. If the
// shim's path does not show which of the two it is, known is false and all files are
// candidates.
func candidates(shim string) (paths []string, known bool) {
	rust := strings.Contains(shim, "/runtime-rs/")
	if !rust && !strings.HasPrefix(shim, "/opt/kata/bin/") {
		return configPaths, false
	}
	for _, p := range configPaths {
		if rust == strings.Contains(p, "/runtime-rs/") && (rust || !strings.HasPrefix(p, "/usr/")) {
			paths = append(paths, p)
		}
	}
	return paths, true
}

// choose returns the existing file that a shim uses by default. If several exist, it returns
// the first one, or an error if the order is unknown.
func choose(shim string, among []string, known bool) (string, error) {
	there := slices.DeleteFunc(slices.Clone(among), func(p string) bool {
		_, err := os.Stat(p)
		return err != nil
	})
	switch {
	case len(there) == 0:
		return "", fmt.Errorf("looked for %s", strings.Join(among, ", "))
	case len(there) > 1 && !known:
		return "", fmt.Errorf("%s uses one of these, compiled in: %s", shim, strings.Join(there, ", "))
	}
	return there[0], nil
}
