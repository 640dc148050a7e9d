package vm

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

//go:embed init
var initScript string

// write makes the initramfs, of a folder with links to what is carried, in the form
// that the kernel reads (Documentation/driver-api/early-userspace/buffer-format.rst).
func (g *Guest) write(file string) error {
	busybox, err := program("busybox")
	if err != nil {
		return err
	}
	root := file + ".d"
	if err := g.fill(root, busybox); err != nil {
		return err
	}
	cmd := exec.Command(busybox, "sh", "-c", `find . | "$0" cpio -o -H newc -L -R 0:0 >"$1"`, busybox, file)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("busybox cpio: %w: %s", err, out)
	}
	return nil
}

// fill puts into a folder what the machine has.
func (g *Guest) fill(root, busybox string) error {
	carried := map[string]string{"bin/busybox": busybox}
	for _, name := range append([]string{busybox}, g.Programs...) {
		from, err := program(name)
		if err != nil {
			return err
		}
		libraries, err := linked(from)
		if err != nil {
			return err
		}
		for _, path := range append(libraries, from) {
			carried[path] = path
		}
	}
	for to, from := range g.Files {
		carried[to] = from
	}
	texts, list := map[string]string{"init": initScript}, ""
	for _, c := range g.Commands {
		if !commandName.MatchString(c.Name) || len(c.Args) == 0 {
			return fmt.Errorf("command %q needs a name of letters, digits and dashes, and a command line", c.Name)
		}
		list += c.Name + "\n"
		texts["work/"+c.Name] = "exec " + quoted(c.Args) + "\n"
	}
	texts["work/commands"] = list
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

// quoted is for the guest's shell, which takes what is in ” as it is.
func quoted(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// libraryPath are the paths in a line of ldd: "libc.so.6 => /lib/libc.so.6 (0x…)",
// or the linker's own, "/lib64/ld-linux-x86-64.so.2 (0x…)".
var libraryPath = regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$`)

// linked are the libraries of a program, by the paths where they are looked for.
func linked(program string) ([]string, error) {
	out, err := exec.Command("ldd", program).CombinedOutput()
	text := string(out)
	if err != nil {
		if strings.Contains(text, "not a dynamic executable") {
			return nil, nil
		}
		return nil, fmt.Errorf("ask ldd for the libraries of %s: %w: %s", program, err, text)
	}
	var all []string
	for _, match := range libraryPath.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all, nil
}
