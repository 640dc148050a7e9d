package ready_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/ready"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/internal/testing/ports"
	"github.com/tare-bench/tare/internal/thread"
	"github.com/tare-bench/tare/record"
)

// lanes is a session that calls functions.
type lanes struct {
	do    func(lane int) // performs the operation
	reach atomic.Pointer[subject.Reached]
	again func() // called before each poll while no process is known
	ended subject.Ended
	exec  func(n int) int
	asked int
}

func (l *lanes) Prepare(_ context.Context, _ subject.Op, lanes []int) (subject.Batch, error) {
	return &started{l, lanes}, nil
}
func (l *lanes) Discard(context.Context, []int) error { return nil }
func (l *lanes) Close(context.Context) error          { return nil }
func (l *lanes) Reach(int) subject.Reached {
	if l.again != nil {
		l.again()
	}
	if r := l.reach.Load(); r != nil {
		return *r
	}
	return subject.Reached{}
}
func (l *lanes) Ended(context.Context, int) subject.Ended { return l.ended }
func (l *lanes) Exec(context.Context, int, []string) (subject.Executed, error) {
	l.asked++
	return subject.Executed{Exit: l.exec(l.asked)}, nil
}

type started struct {
	*lanes
	on []int
}

func (b *started) Start(context.Context) (int64, []record.Sample, error) {
	released := machine.Now()
	samples := make([]record.Sample, len(b.on))
	for i, n := range b.on {
		now := machine.Now()
		samples[i] = record.Sample{Lane: n, Start: now, First: now}
		b.do(n)
		samples[i].Returned = machine.Now()
	}
	return released, samples, nil
}

// start performs a batch on a session whose workloads are polled.
func start(t *testing.T, l *lanes, asked setting.Ready, timeout time.Duration, on ...int) []record.Sample {
	t.Helper()
	s := must.Get(ready.Wrap(l, asked, timeout))(t)
	samples := must.Get(subject.Operate(t.Context(), s, subject.Run, append(on, 0)[:max(1, len(on))]))(t)
	b := record.Batch{Lanes: len(samples), Released: samples[0].Start, Samples: samples}
	must.OK(t, b.Check())
	return samples
}

func TestReadinessIsBetweenTwoPolls(t *testing.T) {
	t.Parallel()
	at := ports.Held(t)
	path := filepath.Join(t.TempDir(), "ready")
	var before, after atomic.Int64
	for asked, become := range map[setting.Ready]func(){
		setting.Ready(fmt.Sprintf("tcp:%d", at)): func() {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at))
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { l.Close() })
		},
		setting.Ready("file:" + path): func() { _ = os.WriteFile(path, nil, 0o600) },
		"log:^ready: [0-9]+$": func() {
			f, err := os.OpenFile(path+".log", os.O_APPEND|os.O_WRONLY, 0)
			if err == nil {
				_, err = f.WriteString("dy: 17\n")
			}
			check.Error(t, err, "")
		},
	} {
		t.Run(string(asked), func(t *testing.T) {
			must.OK(t, os.WriteFile(path+".log", []byte("ready: no\nrea"), 0o600))
			var begun atomic.Bool
			polls, became := 0, make(chan struct{})
			l := &lanes{do: func(int) { begun.Store(true) }, again: func() {
				if !begun.Load() {
					return
				}
				if polls++; polls == 100 { // 100 polls have failed
					go func() {
						before.Store(machine.Now())
						become()
						after.Store(machine.Now())
						close(became)
					}()
				}
			}}
			l.reach.Store(&subject.Reached{Host: true, Log: path + ".log", Plain: true})
			s := start(t, l, asked, time.Minute)[0]
			<-became // a poll may succeed before the goroutine continues
			d, ok := s.Resolution()
			must.That(t, s.Failure == nil && ok && s.Unready <= after.Load() && s.Ready >= before.Load(),
				"ready between %d and %d, reported between %d and %d, %d polls: %+v", before.Load(), after.Load(), s.Unready, s.Ready, s.Polls, s.Failure)
			t.Logf("known to %v, of %d polls", d, s.Polls)
		})
	}
}

// apart starts a program in a new network namespace.
func apart(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	need.Root(t)
	if args[0] == probe.Name {
		root := t.TempDir()
		must.OK(t, probe.Rootfs(root))
		args[0] = root + probe.Name
	}
	c := exec.Command(args[0], args[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	t.Cleanup(func() {
		if c.Process != nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return c
}

// The server listens after one second. The loopback of its network is down at first.
func TestServerInItsOwnNetworkIsReadyWhenItListens(t *testing.T) {
	for asked, is := range map[setting.Ready]string{"tcp:8080": "tcp", "http:8080/=200": "http"} {
		c := apart(t, probe.ServeArgs(8080, "delay=1000")...)
		l := &lanes{}
		var began int64
		seen := make(chan int64, 1) // time at which an independent observer saw the listener
		l.do = func(int) {
			began = machine.Now()
			if err := thread.Parent(t.Context(), c.Start); err != nil {
				t.Error(err)
				seen <- 0
				return
			}
			go func() { seen <- listens(t, c.Process.Pid) }()
			l.reach.Store(&subject.Reached{Pid: c.Process.Pid})
		}
		s := start(t, l, asked, time.Minute)[0]
		d, ok := s.Resolution()
		listened := <-seen
		check.That(t, s.Failure == nil && ok && s.Ready >= began+1e9 && s.Unready <= listened && (s.Request > 0) == (is == "http"),
			"%s: ready after %v ± %v, listening after %v: %+v", asked, time.Duration(s.Ready-began), d, time.Duration(listened-began), s)
		t.Logf("%s: %v, known to %v, first request %v", asked, time.Duration(s.Ready-began), d, time.Duration(s.Request))
	}
}

// listens waits for a listener in the network of a process and returns the time.
func listens(t *testing.T, pid int) int64 {
	for {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
		b6, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp6", pid))
		if err != nil {
			t.Error("the process ended before it listened: ", err)
			return 0
		}
		if now := machine.Now(); strings.Contains(string(b)+string(b6), " 0A ") { // TCP_LISTEN
			return now
		}
		time.Sleep(time.Millisecond)
	}
}

func TestEndedWorkloadFailsImmediatelyWithItsStatus(t *testing.T) {
	c := apart(t, "/bin/sh", "-c", "sleep 0.1; exit 3")
	l := &lanes{ended: subject.Ended{Exit: 3, Known: true, Output: "no such port\n", Advice: "name one"}}
	l.do = func(int) {
		if err := thread.Parent(t.Context(), c.Start); err != nil {
			t.Error(err)
			return
		}
		l.reach.Store(&subject.Reached{Pid: c.Process.Pid})
	}
	began := time.Now()
	s := start(t, l, "tcp:8080", time.Minute)[0]
	said := "connection refused"
	if s.Polls == 0 { // on a busy machine it may end before the first poll
		said = "it was never polled"
	}
	if f := s.Failure; f == nil || f.Kind != record.FailWorkload || f.Exit != 3 || f.Output != "no such port\n" || f.Advice != "name one" || !strings.Contains(f.Detail, "ended before it was ready (tcp:8080), with status 3") || !strings.Contains(f.Detail, said) {
		t.Errorf("%+v after %d polls", f, s.Polls)
	}
	took := time.Since(began)
	check.That(t, took <= 50*time.Second, "the exit was detected after %v", took)
}

func TestNeverReadyFailsWithTheErrorOfTheLastPoll(t *testing.T) {
	t.Parallel()
	refused := strconv.Itoa(ports.Held(t))
	busy := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer busy.Close()
	taken := fmt.Sprint(busy.Addr().(*net.TCPAddr).Port)
	host := &subject.Reached{Pid: os.Getpid(), Host: true}
	for name, c := range map[string]struct {
		asked setting.Ready
		reach *subject.Reached
		on    []int
		kind  string
		said  string
	}{
		"no listener":           {setting.Ready("tcp:" + refused), host, nil, record.FailTimeout, "not ready (tcp:" + refused + ") within 50ms; the last of "},
		"port in use":           {setting.Ready("tcp:" + taken), host, nil, record.FailError, "port " + taken + " of this machine was already in use"},
		"same port twice":       {setting.Ready("tcp:" + refused), host, []int{0, 1}, record.FailError, "only one can listen on port " + refused},
		"same port in two pods": {setting.Ready("tcp:" + refused), &subject.Reached{Sharing: os.Getpid()}, []int{0, 1}, record.FailError, "only one can listen on port " + refused},
		"unreachable workload":  {"tcp:80", &subject.Reached{Pid: os.Getpid(), Guest: true, Why: "no way in: --network bridge"}, nil, record.FailError, "no way in: --network bridge"},
		"unknown location":      {"tcp:80", &subject.Reached{}, nil, record.FailError, "does not report where it is"},
		"no log":                {"log:x", host, nil, record.FailError, "no log file"},
		"log is a folder":       {"log:x", &subject.Reached{Log: t.TempDir()}, nil, record.FailError, "not a regular file"},
		"link out of the root":  {"file:/proc/self/root/nowhere", host, nil, record.FailTimeout, "/proc/self/root/nowhere"},
		"failing command":       {"exec:/check", host, nil, record.FailTimeout, "/check: exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lanes{do: func(int) {}, exec: func(int) int { return 1 }}
			l.reach.Store(c.reach)
			for _, s := range start(t, l, c.asked, 50*time.Millisecond, c.on...) {
				f := s.Failure
				check.That(t, f != nil && f.Kind == c.kind && strings.Contains(f.Detail, c.said) && s.Ready == 0, "%+v", f)
			}
		})
	}
}

// The CRI of iSulad reports no process of a pod. A pod with the host network uses the
// network of the engine.
func TestPodInTheEngineNetworkIsPolledThere(t *testing.T) {
	t.Parallel()
	at := ports.Held(t)
	l := &lanes{do: func(int) {
		server := must.Get(net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", at)))(t)
		t.Cleanup(func() { server.Close() })
	}}
	l.reach.Store(&subject.Reached{Sharing: os.Getpid()})
	if s := start(t, l, setting.Ready(fmt.Sprintf("tcp:%d", at)), time.Minute)[0]; s.Failure != nil || s.Ready == 0 {
		t.Errorf("%+v", s)
	}
	address, namespace, err := (&subject.Reached{Sharing: os.Getpid()}).Network()
	must.OK(t, err)
	defer namespace.Close()
	check.Equal(t, "address", address, "127.0.0.1")
	check.Equal(t, "network", namespace.Name(), fmt.Sprintf("/proc/%d/ns/net", os.Getpid()))
}

func TestCommandIsPolledUntilItExitsWithZero(t *testing.T) {
	t.Parallel()
	l := &lanes{do: func(int) {}, exec: func(n int) int { return max(3-n, 0) }}
	s := start(t, l, "exec:/check", 10*time.Second)[0]
	check.That(t, s.Failure == nil && s.Polls == 3 && s.Unready != 0 && s.Ready >= s.Unready, "%+v", s)
}

func TestReadyAtTheFirstPollHasNoLowerBound(t *testing.T) {
	t.Parallel()
	l := &lanes{do: func(int) {}, exec: func(int) int { return 0 }}
	s := start(t, l, "exec:/check", 10*time.Second)[0]
	_, known := s.Resolution()
	check.That(t, !known && s.Polls == 1 && s.Ready != 0 && s.Failure == nil, "%+v", s)
}

func TestUnpollableSessionIsRefused(t *testing.T) {
	t.Parallel()
	type plain struct{ subject.Session }
	_, err := ready.Wrap(plain{}, "tcp:80", time.Second)
	check.That(t, errors.Is(err, subject.ErrUnsupported) && strings.Contains(err.Error(), "omit --ready"), "%v", err)
	_, err = ready.Wrap(&lanes{}, "tcp", time.Second)
	check.That(t, err != nil, "an invalid readiness check was accepted")
}
