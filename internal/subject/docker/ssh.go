package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
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

// stream is a command as a connection.
type stream struct {
	in     io.WriteCloser
	out    io.ReadCloser
	cmd    *exec.Cmd
	errors tail
	told   chan struct{} // closed when nothing more comes to errors
	began  bool          // something came back
}

func dialCommand(ctx context.Context, program []string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Not bound to ctx: a connection outlives the request that opened it. It
	// ends with its input, however tare ends.
	s := &stream{cmd: exec.Command(program[0], program[1:]...), told: make(chan struct{})}
	// A group of its own keeps the terminal's Ctrl-C from it.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program[0], err)
	}
	go func() {
		_, _ = io.Copy(&s.errors, stderr)
		close(s.told)
	}()
	return s, nil
}

func (s *stream) Write(b []byte) (int, error) {
	n, err := s.in.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		err = s.ended()
	}
	return n, err
}

func (s *stream) Read(b []byte) (int, error) {
	n, err := s.out.Read(b)
	if n == 0 && errors.Is(err, io.EOF) && !s.began {
		return 0, s.ended()
	}
	s.began = s.began || n > 0
	return n, err
}

// ended is what the command said when it went.
func (s *stream) ended() error {
	select {
	case <-s.told:
	case <-time.After(time.Second):
	}
	return fmt.Errorf("%s ended: %s", s.cmd.Path, s.errors.String())
}

// Close ends the command by closing its input, and after a while by force.
func (s *stream) Close() error {
	err := errors.Join(s.in.Close(), s.out.Close())
	go func() {
		end := time.AfterFunc(2*time.Second, func() { _ = s.cmd.Process.Kill() })
		defer end.Stop()
		_ = s.cmd.Wait()
	}()
	return err
}

// LocalAddr and the rest make it a net.Conn. The transport sets no deadlines.
func (s *stream) LocalAddr() net.Addr              { return &net.UnixAddr{Name: s.cmd.Path, Net: "unix"} }
func (s *stream) RemoteAddr() net.Addr             { return s.LocalAddr() }
func (s *stream) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (s *stream) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (s *stream) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

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
