package docker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sshCommand is how the docker command itself reaches a daemon behind ssh: by
// `docker system dial-stdio` on the other side, which joins its streams to the
// daemon's socket.
func sshCommand(host string) ([]string, error) {
	u, err := url.Parse(host)
	if err != nil {
		return nil, err
	}
	if _, has := u.User.Password(); has {
		return nil, errors.New("a password has no place in an address: use keys")
	}
	// The other side's shell reads the path.
	const harmless = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"
	switch {
	case u.Hostname() == "" || u.Hostname()[0] == '-' || strings.HasPrefix(u.User.Username(), "-"):
		return nil, fmt.Errorf("%q names no host", host)
	case strings.Trim(u.Path, harmless) != "" || u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q: only a socket's path may stand behind the host", host)
	}
	args := []string{"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"}
	if u.User.Username() != "" {
		args = append(args, "-l", u.User.Username())
	}
	if u.Port() != "" {
		args = append(args, "-p", u.Port())
	}
	args = append(args, "--", u.Hostname(), "docker")
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		args = append(args, "--host", "unix://"+path)
	}
	return append(args, "system", "dial-stdio"), nil
}

// stream is a command as a connection: its standard input and output are one end of
// a pair of sockets.
type stream struct {
	net.Conn
	cmd    *exec.Cmd
	errors tail
	ended  chan struct{}
	began  bool // something came back
}

func dialCommand(ctx context.Context, program []string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	defer ours.Close() // a connection has its own
	defer theirs.Close()
	// Not bound to ctx: a connection outlives the request that opened it. It
	// ends with its input, however tare ends.
	s := &stream{cmd: exec.Command(program[0], program[1:]...), ended: make(chan struct{})}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirs, theirs, &s.errors
	// A group of its own keeps the terminal's Ctrl-C from it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.Conn, err = net.FileConn(ours); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", program[0], err), s.Conn.Close())
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	return s, nil
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.Conn.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = s.said()
	}
	return n, err
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if n == 0 && err != nil && !s.began && !errors.Is(err, net.ErrClosed) {
		return 0, s.said()
	}
	s.began = s.began || n > 0
	return n, err
}

// said is what the command said when it went.
func (s *stream) said() error {
	select {
	case <-s.ended:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("%s ended: %s", s.cmd.Path, s.errors.String())
}

// Close ends the command by closing its input, and after a while by force.
func (s *stream) Close() error {
	time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Kill() }) // or it has ended
	return s.Conn.Close()
}

// tail keeps the last KiB of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, b...)
	t.text = t.text[max(0, len(t.text)-1024):]
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
