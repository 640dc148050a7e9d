package vm

import (
	"bufio"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed init
var initScript string

// entry is a file of the initramfs.
type entry struct {
	mode uint32
	text string // its content; empty: that of the file at from
	from string
}

// The types of file in a mode, of stat(2).
const (
	folder  = 0o040000
	regular = 0o100000
)

// write makes the initramfs.
func (g *Guest) write(file string) error {
	entries, err := g.entries()
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer f.Close()
	w := bufio.NewWriterSize(f, 1<<20)
	a := &archive{w: w}
	for _, name := range slices.Sorted(maps.Keys(entries)) { // folders before what is in them
		if err := a.add(name, entries[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := a.close(); err != nil {
		return err
	}
	return w.Flush()
}

func (g *Guest) entries() (map[string]entry, error) {
	all := map[string]entry{"/init": {mode: regular | 0o755, text: initScript}}
	carry := func(to, from string) { all[to] = entry{mode: regular | 0o755, from: from} }
	busybox, err := program("busybox")
	if err != nil {
		return nil, err
	}
	carry("/bin/busybox", busybox)
	for _, name := range append([]string{busybox}, g.Programs...) {
		from, err := program(name)
		if err != nil {
			return nil, err
		}
		carry(from, from)
		libraries, err := linked(from)
		if err != nil {
			return nil, err
		}
		for _, library := range libraries {
			carry(library, library)
		}
	}
	for to, from := range g.Files {
		carry(path.Join("/", to), from)
	}
	var list strings.Builder
	for _, c := range g.Commands {
		if !commandName.MatchString(c.Name) || len(c.Args) == 0 {
			return nil, fmt.Errorf("command %q needs a name of letters, digits and dashes, and a command line", c.Name)
		}
		fmt.Fprintln(&list, c.Name)
		all["/work/"+c.Name] = entry{mode: regular | 0o644, text: "exec " + quoted(c.Args) + "\n"}
	}
	all["/work/commands"] = entry{mode: regular | 0o644, text: list.String()}
	for _, name := range slices.Collect(maps.Keys(all)) {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			all[dir] = entry{mode: folder | 0o755}
		}
	}
	return all, nil
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

// archive writes the form of cpio that the kernel reads, "newc"
// (Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	w     io.Writer
	inode int
}

func (a *archive) add(name string, e entry) error {
	size := int64(len(e.text))
	var content io.Reader = strings.NewReader(e.text)
	if e.from != "" {
		real, err := filepath.EvalSymlinks(e.from)
		if err != nil {
			return err
		}
		f, err := os.Open(real)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		size, content = info.Size(), f
	}
	return a.put(strings.TrimPrefix(name, "/"), e.mode, size, content)
}

func (a *archive) put(name string, mode uint32, size int64, content io.Reader) error {
	a.inode++
	links := 1
	if mode&folder != 0 {
		links = 2
	}
	header := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		a.inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, len(name)+1, 0, name)
	if _, err := io.WriteString(a.w, header+padding(len(header))); err != nil {
		return err
	}
	if n, err := io.CopyN(a.w, content, size); err != nil {
		return fmt.Errorf("%d of %d bytes: %w", n, size, err)
	}
	_, err := io.WriteString(a.w, padding(int(size%4)))
	return err
}

func (a *archive) close() error { return a.put("TRAILER!!!", 0, 0, strings.NewReader("")) }

func padding(n int) string { return "\x00\x00\x00"[:(4-n%4)%4] }
