package ready

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// log is ready when a line of the workload's output matches.
type log struct {
	file    *os.File
	plain   bool
	pattern *regexp.Regexp
	rest    []byte // of an incomplete line
	piece   []byte
}

// Limits of one read, and of a line.
const (
	maxPiece = 256 << 10
	maxLine  = 16 << 10
)

// follow opens a container's log once it exists. The file is foreign: only a regular file is
// accepted.
func follow(pattern *regexp.Regexp, at subject.Reached, started bool) (poller, error) {
	if at.Log == "" {
		return nil, errNotYet
	}
	f, err := engine.OpenLog(at.Log)
	if errors.Is(err, os.ErrNotExist) && !started {
		return nil, errNotYet
	}
	if err != nil {
		return nil, fmt.Errorf("its log: %w", err)
	}
	return &log{file: f, plain: at.Plain, pattern: pattern, piece: make([]byte, maxPiece)}, nil
}

func (l *log) close() { l.file.Close() }

var errNoLine = errors.New("no line of its output matches")

func (l *log) poll(_ context.Context, began int64) (int64, error) {
	n, err := l.file.Read(l.piece)
	if err != nil && !errors.Is(err, io.EOF) {
		return began, fmt.Errorf("read its log: %w", err)
	}
	text := append(l.rest, l.piece[:n]...)
	whole := bytes.LastIndexByte(text, '\n') + 1
	lines := engine.ParseLog(text[:whole], l.plain)
	if l.rest = bytes.Clone(text[whole:]); len(l.rest) > maxLine {
		l.rest = l.rest[:maxLine] // the end of a long line is not matched
	}
	for line := range strings.Lines(lines) {
		line = strings.TrimRight(line, "\r\n")
		if l.pattern.MatchString(line[:min(len(line), maxLine)]) && !strings.HasPrefix(line, "tare-probe/1 ") {
			return 0, nil
		}
	}
	return began, errNoLine
}

// file is ready when it exists in the root of the container's first process.
type file struct{ root, path string }

func inRoot(at subject.Reached, path string) (poller, error) {
	if at.Host {
		return file{"/", path}, nil
	}
	if at.Pid == 0 {
		return nil, errNotYet
	}
	return file{fmt.Sprintf("/proc/%d/root", at.Pid), path}, nil
}

func (file) close() {}

var errRoot = errors.New("its first process has not entered the container's root yet")

// poll resolves the path within the container's root, links included. The process may be known
// before it has entered that root.
func (f file) poll(_ context.Context, began int64) (int64, error) {
	root, err := unix.Open(f.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return began, fmt.Errorf("its root: %w", err)
	}
	defer unix.Close(root)
	var own, its unix.Stat_t
	if f.root != "/" && unix.Stat("/", &own) == nil && unix.Fstat(root, &its) == nil && own.Dev == its.Dev && own.Ino == its.Ino {
		return began, errRoot
	}
	fd, err := unix.Openat2(root, f.path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return began, fmt.Errorf("%s: %w", f.path, err)
	}
	unix.Close(fd)
	return 0, nil
}

// command is ready when it exits with 0 and says accepts its output.
type command struct {
	subject.Executor
	lane int
	args []string
	left func() time.Duration
	says func(output string) error
}

// inside polls by a command in the container, which is possible after the batch.
func (w *watch) inside(started bool, says func(string) error, args ...string) (poller, error) {
	if w.executor == nil {
		return nil, errors.New("commands in it are unsupported")
	}
	if !started {
		return nil, errNotYet
	}
	return command{Executor: w.executor, lane: w.lane, args: args, left: w.left, says: says}, nil
}

// statedFile returns the error of the file that the probe checked.
func statedFile(output string) error {
	found, err := probe.ParseFileSystems(output)
	if err == nil && found[0].Errno != 0 {
		err = found[0].Errno
	}
	return err
}

func anything(string) error { return nil }

func (c command) close() {}

func (c command) poll(ctx context.Context, began int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, c.left())
	defer cancel()
	ended, err := c.Exec(ctx, c.lane, c.args)
	if err != nil {
		return began, err
	}
	if ended.Exit != 0 {
		return began, fmt.Errorf("%s: exit status %d: %.200s", strings.Join(c.args, " "), ended.Exit, strings.TrimSpace(ended.Said()))
	}
	if err := c.says(ended.Output); err != nil {
		return began, fmt.Errorf("%s: %w", strings.Join(c.args, " "), err)
	}
	return 0, nil
}
