package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
)

// A minimal client is this program once more: it reads an operation a line,
// performs it, and writes what it took. What it made is removed, not timed, when
// it is told "discard", and at the end of its input.
const (
	clientVerb  = "client"
	discardWord = "discard"
)

// clientOrders are what a minimal client is told.
type clientOrders struct {
	Kind      string // "docker", "containerd", "cri"
	Address   string
	Namespace string // of containerd
	API       string // Docker's version of it
	RunID     string
	Dir       string // for the containers' logs
	Group     string // cgroup for the containers, where the client says which
	Limits    subject.Limits
}

// minimal is a client of one engine. It holds one container at a time.
type minimal interface {
	// prepare returns the call of an operation, which is what is timed, and
	// what to wait for afterwards, which may be nil.
	prepare(ctx context.Context, op subject.Op) (call, after func(ctx context.Context) error, err error)
	discard(ctx context.Context) error
	close(ctx context.Context) error
}

func newMinimal(ctx context.Context, o clientOrders) (minimal, error) {
	switch o.Kind {
	case "docker":
		return newDockerClient(o)
	case "containerd":
		return newContainerdClient(ctx, o)
	case "cri":
		return newCRIClient(ctx, o)
	}
	return nil, fmt.Errorf("there is no client %q", o.Kind)
}

// clientFarewell is shorter: whoever started the client, and the engine with it,
// may be gone.
const (
	clientPatience = time.Minute
	clientFarewell = 20 * time.Second
)

// serve is a minimal client's main function.
func serve(text string) (err error) {
	var o clientOrders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), clientPatience)
	defer cancel()
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	if err := cgroup.Delegate(hs, o.Group, "memory", "pids", "cpu"); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	c, err := newMinimal(ctx, o)
	if err != nil {
		return errors.Join(err, cgroup.Remove(hs, o.Group))
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		ns, err := perform(c, orders.Text())
		if err != nil {
			fmt.Printf("- %s\n", strconv.Quote(err.Error()))
			continue
		}
		fmt.Printf("%d ok\n", ns)
	}
	clean, cancelClean := context.WithTimeout(context.Background(), clientFarewell)
	defer cancelClean()
	return errors.Join(c.discard(clean), c.close(clean), cgroup.Remove(hs, o.Group))
}

// perform returns what an operation took (ns).
func perform(c minimal, word string) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientPatience)
	defer cancel()
	if word == discardWord {
		return 0, c.discard(ctx)
	}
	call, after, err := c.prepare(ctx, subject.Op(word))
	if err != nil {
		return 0, err
	}
	began := lane.Now()
	err = call(ctx)
	took := lane.Now() - began
	if err == nil && after != nil {
		err = after(ctx)
	}
	return took, err
}

// until polls for something that is about to happen.
func until(ctx context.Context, what string, happened func() bool) error {
	for !happened() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return nil
}

// reported waits for the first line in a log, so that what comes next finds a
// workload that heeds SIGTERM.
func reported(path string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return until(ctx, "wait for the workload", func() bool {
			text, err := os.ReadFile(path)
			return err == nil && strings.HasSuffix(string(text), "\n")
		})
	}
}

// minimalClient is a running one.
type minimalClient struct{ *loop }

func startClient(o clientOrders) (minimalClient, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return minimalClient{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return minimalClient{}, err
	}
	l, err := startLoop(program, clientVerb, string(text))
	return minimalClient{l}, err
}

func (c minimalClient) do(_ context.Context, op subject.Op) (float64, error) {
	return c.order(string(op))
}

func (c minimalClient) discard(context.Context) error {
	_, err := c.order(discardWord)
	return err
}

func (c minimalClient) order(word string) (float64, error) {
	if _, err := fmt.Fprintln(c.in, word); err != nil {
		return 0, fmt.Errorf("the minimal client is gone: %w", err)
	}
	line, err := c.out.ReadString('\n')
	if err != nil {
		return 0, fmt.Errorf("the minimal client is gone: %w", err)
	}
	ns, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	if rest != "ok" {
		if text, err := strconv.Unquote(rest); err == nil {
			rest = text
		}
		return 0, errors.New(rest)
	}
	return strconv.ParseFloat(ns, 64)
}

func (c minimalClient) close() error {
	_ = c.in.Close()
	return c.cmd.Wait()
}
