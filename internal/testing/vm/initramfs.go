package vm

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/subject/hosttools"
)

//go:embed init
var initScript string

//go:embed run
var runScript string

// write creates the initramfs from a folder with links to its content, in the kernel's
// format (Documentation/driver-api/early-userspace/buffer-format.rst).
func (g *Guest) write(ctx context.Context, file string) error {
	busybox, err := program("busybox", install)
	if err != nil {
		return err
	}
	root := file + ".d"
	if err := g.fill(ctx, root, busybox); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, busybox, "sh", "-c", `find . | "$0" cpio -o -H newc -L -R 0:0 >"$1"`, busybox, file)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("busybox cpio: %w: %s", err, out)
	}
	return nil
}

// fill adds the machine's content to a folder.
func (g *Guest) fill(ctx context.Context, root, busybox string) error {
	carried := map[string]string{"/bin/busybox": busybox}
	for _, name := range append([]string{busybox}, g.Programs...) {
		from, err := program(name, install)
		if err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(from)
		if err != nil {
			return err
		}
		files, err := hosttools.Files(ctx, real)
		if err != nil {
			return err
		}
		carried[from] = real
		for _, f := range files {
			carried[f.Path] = f.Source
		}
	}
	maps.Copy(carried, g.Files)
	texts, list := map[string]string{"init": initScript, "work/run": runScript}, ""
	for _, c := range g.Commands {
		if !commandName.MatchString(c.Name) || len(c.Args) == 0 {
			return fmt.Errorf("command %q needs a name of letters, digits and dashes, and a command line", c.Name)
		}
		list += c.Name + "\n"
		texts["work/"+c.Name] = "exec " + quoted(c.Args) + "\n"
	}
	texts["work/commands"] = list
	if len(g.BeforePowerCut) > 0 {
		texts["work/before-power-cut"] = "exec " + quoted(g.BeforePowerCut) + "\n"
	}
	if g.Disk != nil {
		texts["init"], texts["work/guest.service"] = initDisk, guestService
		carried = map[string]string{"/bin/busybox": busybox}
		for to, from := range g.Files {
			carried["/carried"+to] = from
		}
		for _, module := range g.Disk.modules {
			carried["/modules/"+filepath.Base(module)] = module
		}
	}
	for to, from := range carried {
		at := filepath.Join(root, to)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.Symlink(from, at)); err != nil {
			return err
		}
	}
	for to, text := range texts {
		at := filepath.Join(root, to)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o755)); err != nil {
			return err
		}
	}
	return nil
}

var commandName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// quoted quotes arguments for the guest's shell, which expands nothing in single quotes.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}
