package load

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fortio.org/fortio/fhttp"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/must"
)

// TestMain runs a verb if the test binary executes itself. Some tests need a process with
// its own limits or lifetime.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if verb, ok := testVerbs[os.Args[1]]; ok {
			verb(os.Args[2:])
			os.Exit(0)
		}
	}
	if code, handled := Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // the tests mostly wait
	code := m.Run()
	if left := children(); left != "" && code == 0 {
		fmt.Fprintln(os.Stderr, "processes still running:", left)
		code = 1
	}
	os.Exit(code)
}

var testVerbs = map[string]func([]string){
	"-few-files": func([]string) {
		limit := unix.Rlimit{Cur: 100, Max: 500}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
			fmt.Println(err)
		}
		fmt.Println(Need{Connections: 300, KeepAlive: true, Local: true}.Check())
		_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
		fmt.Println(limit.Cur)
		fmt.Println(Need{Connections: 1000, KeepAlive: true, Local: true}.Check())
		_, err := Start(context.Background(), ClientOptions{
			URL: "http://127.0.0.1:1/", Connections: 1000, Duration: time.Second, KeepAlive: true,
		})
		fmt.Println(err)
	},
	// -imports prints the number of goroutines and the flags after importing the package.
	"-imports": func([]string) {
		fmt.Println(runtime.NumGoroutine())
		flag.VisitAll(func(f *flag.Flag) { fmt.Println(f.Name) })
	},
	// -orphans prints the pids of its server and clients, and waits to be killed.
	"-orphans": func([]string) {
		s, err := Serve(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		c, err := Start(context.Background(), ClientOptions{URL: s.URL(), Connections: 2, Duration: time.Hour, Instances: 2})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.child.cmd.Process.Pid, pids(c)[0], pids(c)[1])
		_, err = c.Run(context.Background())
		fmt.Println(err)
	},
	// These do not follow the protocol of a client.
	"-nonsense": func([]string) { say("x\n") },
	"-flood":    func([]string) { say(strings.Repeat(" ", 2*longestLine)) },
	"-silent":   func([]string) { time.Sleep(time.Minute) },
	"-fails": func([]string) {
		fmt.Fprintln(os.Stderr, "it is\x1b[31m broken")
		os.Exit(3)
	},
	// -few-ports opens many more connections than there are local ports.
	"-few-ports": func([]string) {
		s, err := Serve(context.Background())
		if err != nil {
			fmt.Println(err)
			return
		}
		defer s.Close()
		fmt.Println(Need{Connections: 40, KeepAlive: false, Local: true}.Check())
		c, err := Start(context.Background(), ClientOptions{URL: s.URL(), Connections: 40, QPS: 2000, Duration: 400 * time.Millisecond, Timeout: time.Minute})
		if err != nil {
			fmt.Println(err)
			return
		}
		r, err := c.Run(context.Background())
		fmt.Println(r.Requests, r.Errors, r.Sockets, err)
		fmt.Println(Need{Connections: 60, KeepAlive: false, Local: true}.Check())
	},
}

func say(text string) {
	fmt.Print(text)
	time.Sleep(time.Minute)
}

// itself runs one of testVerbs and returns its output.
func itself(t *testing.T, attr *syscall.SysProcAttr, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	must.That(t, err == nil, "%v: %v\n%s", args, err, out)
	return string(out)
}

// children returns the pids of all children of this process, including zombies.
func children() string {
	var all []string
	tasks, _ := os.ReadDir("/proc/self/task")
	for _, task := range tasks {
		b, _ := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		all = append(all, strings.Fields(string(b))...)
	}
	return strings.Join(all, " ")
}

// pids returns the pids of the clients.
func pids(c *Clients) (out []int) {
	for _, one := range c.all {
		out = append(out, one.cmd.Process.Pid)
	}
	return out
}

// gone waits until the processes have exited.
func gone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || bytes.Contains(b, []byte(") Z ")) {
				break
			}
			must.That(t, !time.Now().After(end), "process %d is still running", pid)
		}
	}
}

// echo starts a server process for one test.
func echo(t *testing.T) *Server {
	t.Helper()
	s := must.Get(Serve(t.Context()))(t)
	t.Cleanup(func() { must.OK(t, s.Close()) })
	return s
}

// started starts clients and closes them at the end of the test.
func started(t *testing.T, o ClientOptions) *Clients {
	t.Helper()
	c := must.Get(Start(t.Context(), o))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// sent runs one load and returns its result.
func sent(t *testing.T, o ClientOptions) (Result, error) {
	t.Helper()
	c := started(t, o)
	r, err := c.Run(t.Context())
	must.OK(t, c.Close())
	gone(t, pids(c)...)
	return r, err
}

// counting is a server in this process that counts requests.
type counting struct {
	*httptest.Server
	requests, connections atomic.Int64
}

func newCounting(t *testing.T) *counting {
	t.Helper()
	c := &counting{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.requests.Add(1)
		fhttp.EchoHandler(w, r)
	}))
	c.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			c.connections.Add(1)
		}
	}
	c.Start()
	t.Cleanup(c.Close)
	return c
}

// serving starts a server in this process for one test.
func serving(t *testing.T, f http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s
}
