// Package hosttools finds what a program of the host needs to run in an empty root
// file system: itself, its dynamic linker, and the libraries that this linker
// says it loads. So the same program runs inside a container and outside,
// whatever image there is.
package hosttools

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject/child"
	"github.com/tare-bench/tare/internal/term"
)

// Program is a program of the host that can be carried into a container.
type Program struct {
	Name    string
	Path    string // on the host and in the container, with no link in it: "/usr/bin/fio"
	Version string // the first line that --version prints: "fio-3.33"
	Files   []probe.File
}

// Fio finds the flexible I/O tester.
func Fio(ctx context.Context) (*Program, error) {
	p, err := Find(ctx, "fio")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(p.Version, "fio-") || strings.ContainsAny(p.Version, " \t") {
		return nil, fmt.Errorf("carry fio: %s --version says %q, which is no version of fio", p.Path, p.Version)
	}
	return p, nil
}

// Find finds a program on PATH, its version, and the files that it needs. What a
// program opens later by its own choice, such as plug-ins and data, is not among
// them.
func Find(ctx context.Context, name string) (*Program, error) {
	p, err := find(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("carry %s: %w", name, err)
	}
	return p, nil
}

func find(ctx context.Context, name string) (*Program, error) {
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("there is none on PATH; install it: apt-get install %[1]s, dnf install %[1]s or apk add %[1]s", name)
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		// Libraries may be named relative to the program ($ORIGIN), by the
		// kernel's path of it.
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	// Before it is asked: what is no such program may do anything.
	files, err := Files(ctx, path)
	if err != nil {
		return nil, err
	}
	p := &Program{Name: name, Path: path, Files: files}
	p.Version, err = version(ctx, path)
	return p, err
}

// Files are a program with no link in its path, its dynamic linker and the libraries
// that this one would load.
func Files(ctx context.Context, path string) ([]probe.File, error) {
	paths := []string{path}
	interpreter, err := interpreter(path)
	if err != nil {
		return nil, err
	}
	if interpreter != "" {
		libraries, err := libraries(ctx, interpreter, path)
		if err != nil {
			return nil, err
		}
		paths = append(append(paths, interpreter), libraries...)
		// Where the host's libraries lie at other than the linker's own
		// places, glibc's linker finds them by this list.
		if _, err := os.Stat(cache); err == nil {
			paths = append(paths, cache)
		}
	}
	var files []probe.File
	for _, at := range paths {
		mode := os.FileMode(0o755)
		if at == cache {
			mode = 0o644
		}
		f := probe.File{Path: at, Source: at, Mode: mode}
		if !slices.Contains(files, f) {
			files = append(files, f)
		}
	}
	return files, nil
}

// cache is where glibc keeps which library is where, see ld.so(8).
const cache = "/etc/ld.so.cache"

// interpreter is the dynamic linker that an ELF file asks for, "" for none.
func interpreter(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is no ELF program that could be carried: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		if p.Filesz < 2 || p.Filesz > 4096 {
			return "", fmt.Errorf("%s names its dynamic linker in %d bytes", path, p.Filesz)
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return "", fmt.Errorf("read the dynamic linker's name in %s: %w", path, err)
		}
		name := strings.TrimRight(string(b), "\x00")
		if !filepath.IsAbs(name) || strings.ContainsRune(name, 0) {
			return "", fmt.Errorf("%s names the dynamic linker %q", path, name)
		}
		return name, nil
	}
	return "", nil
}

func version(ctx context.Context, path string) (string, error) {
	out, err := ask(ctx, path, "--version")
	if err != nil {
		return "", err
	}
	line, _, _ := strings.Cut(strings.TrimSpace(out), "\n")
	if line = term.Clean(strings.TrimSpace(line)); line == "" || len(line) > 200 {
		return "", fmt.Errorf("%s --version did not say a version: %.80q", path, out)
	}
	return line, nil
}

// ask runs a program of the host and returns its output.
func ask(ctx context.Context, args ...string) (string, error) {
	ended, err := child.Ask(ctx, args)
	if err != nil {
		return "", err
	}
	if ended.Exit != 0 {
		return "", fmt.Errorf("%s: exit status %d: %.300s", ended.Command, ended.Exit, term.Clean(strings.TrimSpace(ended.Stderr)))
	}
	return ended.Output, nil
}

// Together adds files to others. Where both have the same path from different
// sources, nothing is replaced: that is an error.
func Together(files, more []probe.File) ([]probe.File, error) {
	sources := map[string]string{}
	for _, f := range files {
		sources[clean(f.Path)] = f.Source
	}
	for _, f := range more {
		switch source, there := sources[clean(f.Path)]; {
		case !there:
			files = append(files, f)
			sources[clean(f.Path)] = f.Source
		case source != f.Source:
			return nil, fmt.Errorf("%s is there already, from %s", f.Path, source)
		}
	}
	return files, nil
}

func clean(path string) string { return filepath.Clean("/" + strings.TrimPrefix(path, "/")) }
