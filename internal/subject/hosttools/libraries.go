package hosttools

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/tare-bench/tare/internal/term"
)

// most is the limit of a program's libraries.
const most = 1000

// libraries returns the libraries that a program's dynamic linker would load, with --list,
// which glibc (since 2.27) and musl support.
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

// parseList parses a dynamic linker's list, one library per line:
//
//	linux-vdso.so.1 (0x00007ffd3e7f2000)                              the kernel's
//	libz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f2b5c400000)
//	/lib64/ld-linux-x86-64.so.2 (0x00007f2b5c600000)                  the linker, or a library linked by path
//	/lib/ld-musl-x86_64.so.1 (0x7f2b5c600000)
//	libx.so.1 => not found
//
// An unknown line is an error, since a library could be missing.
func parseList(out string) ([]string, error) {
	var libs []string
	for line := range strings.Lines(out) {
		line = strings.TrimSpace(line)
		if line == "" || line == "statically linked" {
			continue
		}
		if name, found := strings.CutSuffix(line, " => not found"); found {
			return nil, fmt.Errorf("the library %s is missing: reinstall the program", term.Clean(name))
		}
		m := listed().FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("unknown line %.200q", line)
		}
		at := m[2]
		switch {
		case m[1] == "" && !strings.Contains(at, "/") && strings.HasPrefix(at, "linux-"):
			continue // linux-vdso.so.1, linux-gate.so.1
		case !filepath.IsAbs(at):
			return nil, fmt.Errorf("a library without an absolute path: %.200q", line)
		}
		if libs = append(libs, at); len(libs) > most {
			return nil, fmt.Errorf("more than %d libraries", most)
		}
	}
	return libs, nil
}

// listed matches "NAME => PATH (0x1234)" and "PATH (0x1234)".
var listed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(.* => )?(.*?) \(0x[0-9a-f]{1,16}\)$`) })
