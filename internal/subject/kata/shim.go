package kata

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject/child"
)

// Shim is what is known of the shim that an engine starts.
type Shim struct {
	Config  string // the configuration file that the engine names to it; "" for none
	Environ string // KATA_CONF_FILE of the engine, which the shim inherits
	Program string // path of the shim; "" if it was not found
}

// Facts are "kata version", where the shim itself can be asked, and those of the
// file that it reads. Both runtimes take what the
// engine names, the environment's, or their default; the Go runtime in this
// order (loadRuntimeConfig of its containerd-shim-v2), runtime-rs with the first
// two swapped (load_config of its runtimes crate). Where the file cannot be
// known, "kata config" says why and is the only fact of it.
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

// banner is what both runtimes' shims say that they are.
var banner = regexp.MustCompile(`^Kata Containers containerd shim \((Golang|Rust)\): id: "?[\w.-]+"?, version: ([\w.+-]{1,64}),`)

func (s Shim) configured() map[string]string {
	if s.Config != "" && s.Environ != "" && s.Config != s.Environ {
		return Unread(fmt.Sprintf("the engine names %s, and its KATA_CONF_FILE %s: Kata's Go runtime takes the first, runtime-rs the second", s.Config, s.Environ))
	}
	path := s.Config
	if path == "" {
		real, err := plain(s.Program)
		if err != nil {
			return Unread("not reported by the engine; " + err.Error())
		}
		if path = s.Environ; path == "" {
			if path, err = standard(real); err != nil {
				return Unread("not reported by the engine; " + err.Error())
			}
		}
	}
	if !filepath.IsAbs(path) {
		return Unread(fmt.Sprintf("the engine names %q, which is no absolute path", path))
	}
	return Facts(path)
}

// Unread are the facts when it is not known what Kata reads, with the reason.
func Unread(why string) map[string]string { return map[string]string{"kata config": why} }

// plain returns the real path of a shim that has no configuration of its own. A
// shim for one hypervisor, containerd-shim-kata-qemu-v2, is often a script that
// sets KATA_CONF_FILE and calls the plain one; that is not executed, nor read
// beyond the four bytes by which an ELF file is known.
func plain(program string) (string, error) {
	const name = "containerd-shim-kata-v2"
	if program == "" {
		return "", fmt.Errorf("its shim was not found")
	}
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return "", fmt.Errorf("look at its shim: %w", err)
	}
	if !isELF(real) || filepath.Base(real) != name {
		return "", fmt.Errorf("%s is not %s itself and may name a file of its own", program, name)
	}
	return real, nil
}

func isELF(path string) bool {
	f, err := machine.OpenPlain(path, 0)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	magic := make([]byte, 4)
	_, err = io.ReadFull(f, magic)
	return err == nil && string(magic) == "\x7fELF"
}

// standard is the file that a plain shim reads when nobody names one.
func standard(shim string) (string, error) {
	among, known := candidates(shim)
	return choose(shim, among, known)
}

// candidates are the files that a plain shim looks for, in its order, which is
// compiled into it: runtime-rs has all of its paths, the Go runtime that in
// /etc and that below its own prefix. known is false where the shim's path does
// not tell which of the two it is, and all files are candidates.
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

// choose is the one of the candidates that is there; of several, the first,
// where the shim is known.
func choose(shim string, among []string, known bool) (string, error) {
	var there []string
	for _, p := range among {
		if _, err := os.Stat(p); err == nil {
			there = append(there, p)
		}
	}
	switch {
	case len(there) == 0:
		return "", fmt.Errorf("looked for %s", strings.Join(among, ", "))
	case len(there) > 1 && !known:
		return "", fmt.Errorf("which of these %s takes is compiled into it: %s", shim, strings.Join(there, ", "))
	}
	return there[0], nil
}
