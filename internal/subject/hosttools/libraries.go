package hosttools

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// most is how many libraries a program may have.
const most = 1000

// libraries asks a program's own dynamic linker which ones it would load, and
// returns the paths at which it finds them. Both glibc's (2.27 and later) and
// musl's linker know --list.
func libraries(ctx context.Context, interpreter, path string) ([]string, error) {
	out, err := ask(ctx, interpreter, "--list", path)
	if err != nil {
		return nil, err
	}
	libs, err := parseList(out)
	if err != nil {
		return nil, fmt.Errorf("%s --list %s: %w", interpreter, path, err)
	}
	return libs, nil
}

// parseList reads what a dynamic linker lists, one library a line:
//
//	linux-vdso.so.1 (0x00007ffd3e7f2000)                              the kernel's
//	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f2b5c400000)
//	/lib64/ld-linux-x86-64.so.2 (0x00007f2b5c600000)                  the linker itself, or named with its path
//	/lib/ld-musl-x86_64.so.1 (0x7f2b5c600000)
//	libx.so.1 => not found
//
// A line that it does not know is an error: a library would be missing.
func parseList(out string) ([]string, error) {
	var libs []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" || line == "statically linked" {
			continue
		}
		name, rest, found := strings.Cut(line, " => ")
		if !found {
			name, rest = "", line
		}
		if rest == "not found" {
			return nil, fmt.Errorf("the library %s is not there: install the program anew", term.Clean(name))
		}
		at, address, ok := cutAddress(rest)
		switch {
		case !ok || !hex(address):
			return nil, fmt.Errorf("unknown line %.200q", line)
		case !found && !strings.Contains(at, "/") && strings.HasPrefix(at, "linux-"):
			continue // linux-vdso.so.1, linux-gate.so.1
		case !filepath.IsAbs(at):
			return nil, fmt.Errorf("a library at no absolute path: %.200q", line)
		}
		if libs = append(libs, at); len(libs) > most {
			return nil, fmt.Errorf("more than %d libraries", most)
		}
	}
	return libs, nil
}

// cutAddress splits "PATH (0x1234)".
func cutAddress(s string) (path, address string, ok bool) {
	path, address, ok = strings.Cut(s, " (0x")
	if !ok || !strings.HasSuffix(address, ")") {
		return "", "", false
	}
	return path, strings.TrimSuffix(address, ")"), true
}

func hex(s string) bool {
	return s != "" && len(s) <= 16 && strings.Trim(s, "0123456789abcdef") == ""
}
