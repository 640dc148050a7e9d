// Package vm boots a virtual machine for tests. Its only cgroup hierarchy is v2. The
// package runs commands in it and returns their output files.
//
// The machine is emulated in software, because tests cannot require KVM, so it is about
// ten times slower than its host. It has no network and is gone when Run returns. There
// are two kinds:
//
//   - a small one without a disk: the kernel is Debian's for clouds, which
//     scripts/install-vm fetches, and the root is busybox and the files of the
//     test (weigh_test.go);
//   - a Debian with systemd and container engines on a disk, which
//     scripts/install-vm-debian makes (debian_test.go).
//
// A boot is expensive, so all tests of one machine share one boot.
package vm

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Guest describes the content and commands of a machine.
type Guest struct {
	// Disk is the guest's disk; nil means none.
	Disk *Disk
	// Programs of this machine are copied to the same path with their shared libraries. A
	// guest with a disk has its own programs.
	Programs []string
	// Files maps paths in the guest to files of this machine.
	Files map[string]string
	// Commands run in sequence, regardless of exit codes.
	Commands []Command
	// BeforePowerCut, if set, runs after the results were sent. If it exits with 0, the
	// machine loses power.
	BeforePowerCut []string
}

// Command is one command line.
type Command struct {
	Name string   // names the results: letters, digits and dashes
	Args []string // passed without a shell
}

// Outcome is the result of a command.
type Outcome struct {
	Exits   map[string]int    // of the commands, by their names
	Files   map[string][]byte // the files it wrote to /out, by name, plus NAME.stdout and NAME.stderr
	Console string            // what the kernel and init printed
	Ran     time.Duration     // from the start of the machine until it was off
}

const (
	maxConsole = 1 << 20
	maxResults = 64 << 20
)

// cutPower is the guest's message that requests the power cut.
const cutPower = "guest: cut the power"

var errPowerCut = errors.New("the power was cut")

// Run boots a machine and returns once it is off and its process has exited. The error
// names missing files and how to get them, or has the end of the console output.
func Run(ctx context.Context, g Guest) (*Outcome, error) {
	qemu, err := program("qemu-system-x86_64", install)
	if err != nil {
		return nil, err
	}
	m := machine{qemu: qemu, memory: "1536"}
	if g.Disk != nil {
		m.memory, m.kernel, m.disk = "3072", g.Disk.kernel, g.Disk.args()
	} else if m.kernel, err = Kernel(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tare-vm-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the machine: %w", err)
	}
	defer os.RemoveAll(dir)
	m.initramfs = filepath.Join(dir, "initramfs")
	if err := g.write(ctx, m.initramfs); err != nil {
		return nil, fmt.Errorf("make the machine's root: %w", err)
	}
	begin := time.Now()
	console, results, err := m.boot(ctx)
	if len(g.BeforePowerCut) > 0 {
		if err == nil {
			err = errors.New("it did not get to the power cut")
		} else if errors.Is(err, errPowerCut) {
			err = nil
		}
	}
	out := &Outcome{Console: string(console), Ran: time.Since(begin)}
	if err == nil {
		err = out.read(bytes.NewReader(results), g.Commands)
	}
	if err != nil {
		return out, fmt.Errorf("the machine, after %v: %w; its console ends with:\n%s", out.Ran.Round(time.Second), err, tail(out.Console, 4000))
	}
	return out, nil
}

// machine is the input for QEMU.
type machine struct {
	qemu, kernel, initramfs string
	memory                  string // MiB
	disk                    []string
}

// boot returns the output of the two serial ports. The first one is the console.
func (m *machine) boot(ctx context.Context) (console, results []byte, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer read.Close()
	ctx, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	cmd := exec.CommandContext(ctx, m.qemu, append([]string{
		// The emulation lacks the first feature or is slow with the second. A second CPU
		// would wait for the first while others use the core that emulates it.
		"-accel", "tcg,thread=single", "-cpu", "max,-cx16,-la57", "-m", m.memory, "-smp", "1",
		"-nodefaults", "-no-user-config", "-display", "none", "-monitor", "none", "-no-reboot",
		"-serial", "stdio", "-serial", "file:/proc/self/fd/3",
		"-kernel", m.kernel, "-initrd", m.initramfs,
		"-append", // A process that waits for a core for minutes is not stuck.
		"console=ttyS0 quiet panic=-1 mitigations=off nokaslr rcupdate.rcu_cpu_stall_suppress=1 nowatchdog" +
			" systemd.default_timeout_start_sec=infinity systemd.service_watchdogs=0",
	}, m.disk...)...)
	screen := &bounded{limit: maxConsole, full: func() { kill(fmt.Errorf("it printed more than %d bytes", maxConsole)) },
		phrase: cutPower, said: func() { kill(errPowerCut) }}
	data := &bounded{limit: maxResults, full: func() { kill(fmt.Errorf("its results are larger than %d bytes", maxResults)) }}
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = screen, screen, []*os.File{write}
	// To watch a running machine, set TARE_VM_CONSOLE=FILE, which also receives the
	// console output.
	if path := os.Getenv("TARE_VM_CONSOLE"); path != "" {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return nil, nil, err
		}
		defer file.Close()
		cmd.Stdout = io.MultiWriter(screen, file)
	}
	cmd.WaitDelay = 5 * time.Second
	// The machine exits with this process, even if it is killed. The kernel watches the
	// thread that started it, so that thread must not exit.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = cmd.Start()
	write.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", m.qemu, err)
	}
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(data, read)
		drained <- err
	}()
	err = cmd.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	// The process has exited and closed the other end.
	if e := <-drained; err == nil && e != nil {
		err = fmt.Errorf("read its results: %w", e)
	}
	return screen.bytes(), data.bytes(), err
}

// bounded stores written data up to a limit and then calls full. It calls said when a
// phrase was written.
type bounded struct {
	mu     sync.Mutex
	b      bytes.Buffer
	limit  int
	full   func()
	phrase string
	said   func()
}

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.b.Len()+len(p) > b.limit {
		b.full()
		return 0, errors.New("too much")
	}
	begin := max(0, b.b.Len()-len(b.phrase))
	n, err := b.b.Write(p)
	if b.phrase != "" && bytes.Contains(b.b.Bytes()[begin:], []byte(b.phrase)) {
		b.said()
	}
	return n, err
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

func tail(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	if len(s) > n {
		s = "…" + s[len(s)-n:]
	}
	return s
}

// How to build the files that both kinds of machines need.
const (
	install       = "run scripts/install-vm"
	installDebian = "run scripts/install-vm-debian"
)

// program returns the path of a program of this machine. how is added to the error.
func program(name, how string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("no %s: %w; %s", name, err, how)
	}
	return filepath.Abs(path)
}

// Kernel returns the most recent kernel that scripts/install-vm unpacked into the user's
// cache.
func Kernel() (string, error) {
	return newest("kernel", install, "vm-linux-image-*", "boot", "vmlinuz-*")
}

// newest returns the file in the user's cache whose folder changed last. what and how are
// added to the error.
func newest(what, how, folder string, below ...string) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no %s: %w; set XDG_CACHE_HOME or HOME, and %s", what, err, how)
	}
	cache = filepath.Join(cache, "tare")
	found, err := filepath.Glob(filepath.Join(append([]string{cache, folder}, below...)...))
	if err == nil && len(found) == 0 {
		err = errors.New("none in " + cache)
	}
	if err != nil {
		return "", fmt.Errorf("no %s for the machine: %w; %s", what, err, how)
	}
	changed := func(file string) (at time.Time) {
		rest, _ := filepath.Rel(cache, file)
		folder, _, _ := strings.Cut(rest, "/")
		if info, err := os.Stat(filepath.Join(cache, folder)); err == nil {
			at = info.ModTime()
		}
		return at
	}
	return slices.MaxFunc(found, func(a, b string) int { return changed(a).Compare(changed(b)) }), nil
}

// read parses the results. A command without a result is an error.
func (o *Outcome) read(results io.Reader, commands []Command) error {
	o.Exits, o.Files = map[string]int{}, map[string][]byte{}
	for r := tar.NewReader(results); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("its results are broken: %w", err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("its results are broken: %w", err)
		}
		o.Files[path.Clean(header.Name)] = text
	}
	for _, c := range commands {
		text, ok := o.Files[c.Name+".exit"]
		if !ok {
			return fmt.Errorf("the command %s has not ended", c.Name)
		}
		code, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return fmt.Errorf("the end of the command %s: %w", c.Name, err)
		}
		o.Exits[c.Name] = code
	}
	return nil
}

// Output returns a command's output for the message of a failed test.
func (o *Outcome) Output(name string) string {
	return fmt.Sprintf("%s exited with %d\n%s%s", name, o.Exits[name], tail(string(o.Files[name+".stdout"]), 8000), tail(string(o.Files[name+".stderr"]), 8000))
}
