// Testsum checks the tree with gofmt and go vet, runs go test, and ends with
// its own count of the tests, alone on the last line:
//
//	412 passed, 0 failed, 3 skipped
//
// Usage: [GO=go command] testsum [flags and packages of go test]
//
// It prints one line for each package as it ends, what a failing test printed,
// a sign of life when nothing ended for a while, and each skipped test with its
// reason. It exits 1 when a test or a check failed, or when no test ran.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"time"
)

// silence is how long nothing may be printed before a sign of life is.
const silence = 20 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, cmp.Or(os.Getenv("GO"), "go"), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is given the arguments of go test.
func run(ctx context.Context, goCommand string, args []string, stdout, stderr io.Writer) int {
	begin := time.Now()
	unclean := check(ctx, goCommand, stdout)

	t := newTally(stdout, modulePath())
	err := test(ctx, goCommand, args, t, stderr)
	t.finish(err)
	for _, name := range unclean {
		fmt.Fprintf(stdout, "%s is not clean, see the top\n", name)
	}
	fmt.Fprintf(stdout, "\nin %s\n%s\n", time.Since(begin).Round(100*time.Millisecond), t.count())

	switch {
	case ctx.Err() != nil:
		return 130
	case len(unclean) > 0 || t.failed > 0 || t.passed+t.failed+t.skipped == 0:
		return 1
	}
	return 0
}

// check returns the names of the checks that the tree does not pass.
func check(ctx context.Context, goCommand string, stdout io.Writer) (unclean []string) {
	gofmt := "gofmt"
	if root, err := exec.CommandContext(ctx, goCommand, "env", "GOROOT").Output(); err == nil {
		gofmt = filepath.Join(strings.TrimSpace(string(root)), "bin", "gofmt")
	}
	for _, c := range []struct {
		name    string
		command []string
		silent  bool // when all is well; it exits 0 either way
	}{
		{"gofmt", []string{gofmt, "-l", "."}, true},
		{"go vet", []string{goCommand, "vet", "./..."}, false},
	} {
		begin := time.Now()
		out, err := exec.CommandContext(ctx, c.command[0], c.command[1:]...).CombinedOutput()
		verdict := "ok  "
		if err != nil || (c.silent && len(out) > 0) {
			verdict = "FAIL"
			unclean = append(unclean, c.name)
			fmt.Fprintf(stdout, "%s\n%s", strings.Join(c.command, " "), out)
			if err != nil {
				fmt.Fprintln(stdout, err)
			}
		}
		fmt.Fprintf(stdout, "%s %7.1fs  %s\n", verdict, time.Since(begin).Seconds(), c.name)
	}
	return unclean
}

// test runs go test and feeds the tally with what it reports. The error is
// what go test ended with.
func test(ctx context.Context, goCommand string, args []string, t *tally, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, goCommand, append([]string{"test", "-json", "-timeout=20m"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stderr = stderr
	out, w := io.Pipe()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start go test: %w", err)
	}

	lines := make(chan []byte)
	go func() {
		defer close(lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				return
			}
		}
	}()
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		w.CloseWithError(io.EOF)
		ended <- err
	}()

	life := time.NewTicker(silence)
	defer life.Stop()
	for {
		select {
		case line, more := <-lines:
			if !more {
				return <-ended
			}
			t.line(line)
		case now := <-life.C:
			t.signOfLife(now)
		}
	}
}

// modulePath is what the packages' names begin with, and what a reader need
// not see on every line.
func modulePath() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Path
	}
	return ""
}

// event is a line of go test -json, see go doc test2json and go help buildjson.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of a build's output
	FailedBuild string
	Test        string
	Output      string
	Elapsed     float64 // seconds
}

// line takes one line of go test -json. What is none is shown as it is.
func (t *tally) line(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		fmt.Fprintf(t.out, "%s", line)
		return
	}
	t.add(e)
}

// failure says how go test ended when no test tells why.
func failure(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprintf("go test ended with %v and no failing test", exit)
	}
	return err.Error()
}
