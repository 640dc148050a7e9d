// Package hosttools finds the files that a host's program needs in an empty root file system:
// the program, its dynamic linker, and the libraries that this linker loads. So the same
// program runs inside a container and outside, with any image.
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

// Program is a host's program that can be copied into a container.
type Program struct {
	Name    string
	Path    string // on the host and in the container, links resolved: "/usr/bin/fio"
	Version string // first line of --version: "fio-3.33"
	Files   []probe.File
}

// Fio finds the flexible I/O tester.
func Fio(ctx context.Context) (*Program, error) {
	p, err := Find(ctx, "fio")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(p.Version, "fio-") || strings.ContainsAny(p.Version, " \t") {
		return nil, fmt.Errorf("carry fio: %s --version printed %q, expected a version of fio", p.Path, p.Version)
	}
	return p, nil
}

// Find finds a program on PATH, its version, and the files that it needs. Files that it opens
// later, such as plug-ins and data, are not included.
func Find(ctx context.Context, name string) (p *Program, err error) {
	defer func() {
		if err != nil {
			p, err = nil, fmt.Errorf("carry %s: %w", name, err)
		}
	}()
	path, err := exec.LookPath(name)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("not on PATH: apt-get install %[1]s, dnf install %[1]s or apk add %[1]s", name)
	}
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err == nil {
		// Libraries may be relative to the program ($ORIGIN), by its path in the kernel.
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	// Before --version: another program may do anything.
	files, err := Files(ctx, path)
	if err != nil {
		return nil, err
	}
	p = &Program{Name: name, Path: path, Files: files}
	p.Version, err = version(ctx, path)
	return p, err
}

// Files returns a program, whose path has no links, its dynamic linker and the libraries that
// it loads.
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
		// glibc's linker needs this list to find libraries outside of its default folders.
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

// cache is glibc's list of libraries, see ld.so(8).
const cache = "/etc/ld.so.cache"

// interpreter returns the dynamic linker of an ELF file, "" for none.
func interpreter(path string) (string, error) {
	f, err := elf.Open(path)
	if err != nil {
		return "", fmt.Errorf("%s is not an ELF program: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		if p.Filesz < 2 || p.Filesz > 4096 {
			return "", fmt.Errorf("%s: invalid length %d of the dynamic linker's name", path, p.Filesz)
		}
		b := make([]byte, p.Filesz)
		if _, err := p.ReadAt(b, 0); err != nil {
			return "", fmt.Errorf("read the dynamic linker's name in %s: %w", path, err)
		}
		name := strings.TrimRight(string(b), "\x00")
		if !filepath.IsAbs(name) || strings.ContainsRune(name, 0) {
			return "", fmt.Errorf("%s: invalid dynamic linker %q", path, name)
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
		return "", fmt.Errorf("%s --version printed no version: %.80q", path, out)
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

// Together adds files to others. The same path from different sources is an error.
func Together(files, more []probe.File) ([]probe.File, error) {
	sources := map[string]string{}
	for _, f := range files {
		sources[f.Name()] = f.Source
	}
	for _, f := range more {
		switch source, there := sources[f.Name()]; {
		case !there:
			files = append(files, f)
			sources[f.Name()] = f.Source
		case source != f.Source:
			return nil, fmt.Errorf("%s exists already, from %s", f.Path, source)
		}
	}
	return files, nil
}
