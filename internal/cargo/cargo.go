// Package cargo prepares the user's program as the workload in place of the probe. It puts
// the probe in front of the command of the user's image. So every target starts it like the
// probe, and its first instruction is timed in the same way. Engines load the derived
// image, which differs from the user's by one layer and its entry point. Without an engine
// the image's files are unpacked once, and each container has a layer on top.
package cargo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Cargo is a workload for any target.
type Cargo struct {
	Image   *image.Image // for engines; its configuration has entry point, environment, user and folder
	Process              // the same, for containers without an engine
	Host    []string     // command of a plain process on the host, or nil
	HostEnv []string     // additional variables, NAME=VALUE
	Mounts  []setting.Mount

	Source string // requested source: "docker: redis:7", "the file app.tar", "" for tare's own image
	Digest string // of the configuration of the user's image, "sha256:…"

	dir    string
	layers []string // their files, uncompressed, the lowest first
	unpack func() (string, error)
}

// Process is the process defined by the image's configuration and the user's options.
type Process struct {
	Args     []string // program that the probe executes, looked up in PATH if it has no slash, and its arguments
	Env      []string // NAME=VALUE; only the names may be shown or recorded
	Dir      string   // absolute
	UID, GID uint32
	Stop     unix.Signal // stop signal; by default SIGTERM
}

// Lender is a place that may have a named image, such as an engine.
type Lender struct {
	Name string // "docker", for people
	// Save writes a named image to a file as an archive. The error wraps ErrNoImage if
	// there is none.
	Save func(ctx context.Context, ref, file string) error
}

// ErrNoImage means that a lender does not have an image.
var ErrNoImage = errors.New("no such image")

// Make prepares the requested workload in a folder of the run, or returns nil if none
// was requested. The image is a file, or that of the first lender with the name. It is
// pulled only on request. An unusable image is an error.
func Make(ctx context.Context, w setting.Workload, dir string, lenders []Lender) (*Cargo, error) {
	if !w.Is() {
		return nil, nil
	}
	// The files keep their owners and modes, so deny other users access to the folder.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("prepare the workload: %w", err)
	}
	env, err := w.Environment(os.LookupEnv)
	if err = errors.Join(err, withoutZero(append(w.OnHost(), w.Image))); err != nil {
		return nil, err
	}
	for _, m := range w.Mounts {
		source, _, _ := m.Parts()
		if _, err := os.Stat(source); err != nil {
			return nil, fmt.Errorf("--mount %s: %w", m, err)
		}
	}
	c := &Cargo{Host: w.OnHost(), HostEnv: env, Mounts: w.Mounts, dir: dir}
	img, err := c.find(ctx, w, lenders)
	if err != nil {
		return nil, err
	}
	if err := c.derive(ctx, img, &w); err != nil {
		return nil, fmt.Errorf("prepare the workload of %s: %w", c.Source, err)
	}
	c.unpack = sync.OnceValues(func() (string, error) { return unpack(ctx, c.dir, c.layers, c.Dir) })
	return c, nil
}

// Root returns a folder with the unpacked files of the image. Do not write to it.
func (c *Cargo) Root() (string, error) { return c.unpack() }

// find returns the user's image, or tare's if none is given.
func (c *Cargo) find(ctx context.Context, w setting.Workload, lenders []Lender) (v1.Image, error) {
	if w.Image == "" {
		own, err := image.Probe()
		if err != nil {
			return nil, err
		}
		file := filepath.Join(c.dir, "probe.tar")
		if err := own.Save(file); err != nil {
			return nil, err
		}
		return open(ctx, file, c.dir)
	}
	if info, err := os.Stat(w.Image); err == nil && info.Mode().IsRegular() {
		c.Source = "the file " + filepath.Base(w.Image)
		return opened(ctx, w.Image, c.dir, c.Source)
	}
	if w.Pull {
		c.Source = w.Image + ", pulled"
		return pull(ctx, w.Image)
	}
	file := filepath.Join(c.dir, "image.tar")
	var tried []error
	for _, l := range lenders {
		err := l.Save(ctx, w.Image, file)
		if err == nil {
			c.Source = l.Name + ": " + w.Image
			return opened(ctx, file, c.dir, c.Source)
		}
		tried = append(tried, fmt.Errorf("%s: %w", l.Name, err))
		if ctx.Err() != nil {
			break
		}
	}
	if len(lenders) == 0 {
		tried = append(tried, errors.New("there is no such file, and no target has an engine that could have the image"))
	}
	return nil, fmt.Errorf("image %s: %w; give an archive of it (docker save %s -o FILE), or pull it with --pull", w.Image, errors.Join(tried...), w.Image)
}

func opened(ctx context.Context, file, dir, source string) (v1.Image, error) {
	img, err := open(ctx, file, dir)
	if err != nil {
		return nil, fmt.Errorf("image: %s: %w", source, err)
	}
	return img, nil
}

// process combines an image's configuration and the user's options.
func process(config *v1.Config, w *setting.Workload, env []string, users accounts) (Process, error) {
	p := Process{Args: slices.Concat(config.Entrypoint, config.Cmd), Env: over(config.Env, env), Dir: cmp.Or(config.WorkingDir, "/")}
	if len(w.Command) > 0 {
		p.Args = w.Command
	}
	if len(p.Args) == 0 {
		return p, errors.New("the image has no command: set one with --command 'PROGRAM ARG'")
	}
	if !path.IsAbs(p.Dir) {
		return p, fmt.Errorf("its working folder %.200q is not absolute", p.Dir)
	}
	err := withoutZero(append(slices.Concat(p.Args, p.Env), p.Dir))
	if err != nil {
		return p, err
	}
	if p.UID, p.GID, err = users.find(cmp.Or(w.User, config.User)); err != nil {
		return p, err
	}
	p.Stop, err = signal(config.StopSignal)
	return p, err
}

// withoutZero rejects strings with NUL bytes, where the kernel would truncate them.
func withoutZero(all []string) error {
	if i := slices.IndexFunc(all, func(s string) bool { return strings.ContainsRune(s, 0) }); i >= 0 {
		return fmt.Errorf("%.200q has a NUL byte, which is invalid in commands, variables and paths", all[i])
	}
	return nil
}

// signal parses a signal name or number; "" is SIGTERM.
func signal(s string) (unix.Signal, error) {
	n, err := strconv.Atoi(s)
	switch {
	case s == "":
		return unix.SIGTERM, nil
	case err == nil && n >= 1 && n <= 64:
		return unix.Signal(n), nil
	}
	if n := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")); n != 0 {
		return n, nil
	}
	return 0, fmt.Errorf("invalid stop signal %.40q", s)
}

// over returns the variables of both lists; above replaces equal names. It always includes
// a PATH, like engines.
func over(below, above []string) []string {
	if !has(below, "PATH") {
		below = append([]string{"PATH=" + image.Path}, below...)
	}
	kept := slices.DeleteFunc(slices.Clone(below), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return has(above, name)
	})
	return append(kept, above...)
}

func has(env []string, name string) bool {
	return slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}
