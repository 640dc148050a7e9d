package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestClientAndServerCountTheSame(t *testing.T) {
	for name, o := range map[string]ClientOptions{
		"kept connections":                  {Connections: 5, KeepAlive: true},
		"a connection for each request":     {Connections: 5},
		"a connection each, fixed rate":     {Connections: 5, QPS: 500},
		"four clients, kept, at fixed rate": {Connections: 10, KeepAlive: true, Instances: 4, QPS: 1000},
		"an odd rate, an odd number":        {Connections: 7, Instances: 3, QPS: 333},
		"a thousand connections":            {Connections: 1000, KeepAlive: true},
		"a host that has a name":            {Connections: 2, URL: "localhost"},
		"a name that is looked up for each": {Connections: 2, URL: "localhost", ResolveEach: true},
		"an answer with a body, in parts":   {Connections: 2, KeepAlive: true, URL: "?size=100000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := echo(t)
			switch o.Duration = 400 * time.Millisecond; o.URL {
			case "localhost":
				o.URL = strings.Replace(s.URL(), "127.0.0.1", "localhost", 1)
			default:
				o.URL = s.URL() + o.URL
			}
			r, err := sent(t, o)
			if err != nil {
				t.Fatal(err)
			}
			said, err := s.Served()
			if err != nil || said.Requests != r.Requests || r.Errors != 0 {
				t.Errorf("%v: the server has %d requests, the client %d with %d errors: %v", err, said.Requests, r.Requests, r.Errors, r.Failures)
			}
			want := r.Requests
			if o.KeepAlive { // one on which no request was begun in time was not made
				want = min(int64(o.Connections), r.Sockets)
			}
			if said.Connections != want || r.Sockets != want {
				t.Errorf("the server has %d connections, the client %d, and there should be %d", said.Connections, r.Sockets, want)
			}
			if want := int64(0.4*o.QPS + 0.999); r.OpenLoop != (o.QPS > 0) || o.QPS > 0 && (r.Requests != want || r.QPS > 1.01*o.QPS) {
				t.Errorf("%d requests in 0.4 s, %g a second, at a rate of %g (open loop: %v)", r.Requests, r.QPS, o.QPS, r.OpenLoop)
			}
			if s.CPU() <= 0 || r.CPU <= 0 || r.Mean <= 0 || r.Mean > r.Max || r.P50 > r.P90 || r.P90 > r.P99 || r.P99 > r.P999 || r.P999 > r.Max {
				t.Errorf("figures that cannot be: %+v, server %d ns", r.Sent, s.CPU())
			}
		})
	}
}

func TestQuantilesAreThoseOfTheServersDelay(t *testing.T) {
	const long, short, off = 300 * time.Millisecond, 10 * time.Millisecond, 250 * time.Millisecond // others may use the machine
	for name, c := range map[string]struct {
		every         int64         // which of the requests takes long
		p50, p90, p99 time.Duration // at least
	}{
		"always the same":         {1, long, long, long},
		"every fifth is long":     {5, short, long, long},
		"every twentieth is long": {20, short, short, long},
	} {
		for loop, o := range map[string]ClientOptions{"closed": {Connections: 20}, "open": {Connections: 100, QPS: 200}} {
			t.Run(name+", "+loop, func(t *testing.T) {
				t.Parallel()
				var n atomic.Int64
				s := httptest.NewServer(handler(func(http.ResponseWriter, *http.Request) {
					if n.Add(1)%c.every == 0 {
						time.Sleep(long)
					} else {
						time.Sleep(short)
					}
				}))
				defer s.Close()
				o.URL, o.KeepAlive, o.Duration = s.URL, true, 700*time.Millisecond
				r, err := sent(t, o)
				if err != nil {
					t.Fatal(err)
				}
				for what, v := range map[string][2]time.Duration{
					"p50": {time.Duration(r.P50), c.p50}, "p90": {time.Duration(r.P90), c.p90}, "p99": {time.Duration(r.P99), c.p99},
				} {
					if v[0] < v[1] || v[0] > v[1]+off && what != "p99" {
						t.Errorf("%s is %s, and was %s", what, v[0], v[1])
					}
				}
			})
		}
	}
}

// A server stands still for half of the time. Whoever waits for an answer before
// it asks again sees that once on each connection; users who come at their own
// pace see it in half of their requests.
func TestAServerThatStandsStillIsSeenInFullByAnOpenLoop(t *testing.T) {
	for name, c := range map[string]struct {
		qps      float64
		min, max time.Duration // of p90
	}{
		"open":   {1000, 300 * time.Millisecond, 5 * time.Second},
		"closed": {0, 0, 250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var gate sync.RWMutex
			var once sync.Once
			var stood atomic.Int64 // the longest that a request was kept, as the server saw it
			s := httptest.NewServer(handler(func(http.ResponseWriter, *http.Request) {
				begun := time.Now()
				once.Do(func() {
					time.AfterFunc(200*time.Millisecond, func() {
						gate.Lock()
						time.AfterFunc(500*time.Millisecond, gate.Unlock)
					})
				})
				gate.RLock()
				defer gate.RUnlock()
				for kept := int64(time.Since(begun)); ; {
					if most := stood.Load(); kept <= most || stood.CompareAndSwap(most, kept) {
						return
					}
				}
			}))
			defer s.Close()
			r, err := sent(t, ClientOptions{URL: s.URL, Connections: 4, QPS: c.qps, KeepAlive: true, Duration: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if p := time.Duration(r.P90); p < c.min || p > c.max {
				t.Errorf("p90 is %s", p)
			}
			if c.qps > 0 && (r.Requests != 1000 || r.Unsent != 0 || r.Errors != 0) {
				t.Errorf("%d requests, %d not sent, %d errors", r.Requests, r.Unsent, r.Errors)
			}
			// In a closed loop one request on each connection met the standstill; in an
			// open one a thousand a second were due.
			slow := int64(0)
			for _, b := range r.Histogram {
				if time.Duration(b.To) >= 250*time.Millisecond {
					slow += b.Count
				}
			}
			if p := time.Duration(r.P999); c.qps > 0 && (slow < 240 || p < 480*time.Millisecond) || c.qps == 0 && slow > 4 {
				t.Errorf("%d of %d requests took 250ms and more, p99.9 is %s, of a standstill of 500ms", slow, r.Requests, p)
			}
			if longest := stood.Load(); r.Max < longest || longest < int64(250*time.Millisecond) {
				t.Errorf("the longest is %s, and the server kept one for %s", time.Duration(r.Max), time.Duration(longest))
			}
		})
	}
}

// A server keeps up that answers all that is due, however late the last of it.
func TestARateIsThatOfWhatWasAskedHoweverLateTheLastAnswer(t *testing.T) {
	t.Parallel()
	const takes = time.Second
	s := httptest.NewServer(handler(func(http.ResponseWriter, *http.Request) { time.Sleep(takes) }))
	defer s.Close()
	begun := time.Now()
	r, err := sent(t, ClientOptions{URL: s.URL, Connections: 60, QPS: 100, KeepAlive: true, Duration: 400 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests != 40 || r.Errors != 0 || math.Abs(r.QPS*float64(r.Elapsed)/1e9-40) > 1e-6 || time.Duration(r.Elapsed) > time.Since(begun)-takes+10*time.Millisecond {
		t.Errorf("%d requests, %d errors, %g a second in %s", r.Requests, r.Errors, r.QPS, time.Duration(r.Elapsed))
	}
}

// Requests begin 0, 1.1 and 2.2 s after the beginning. No more is handed out at 2.5 s, and
// the answer to the third comes at 3.3 s, within its time-out.
func TestWhatIsSentLateHasItsWholeTimeOut(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := httptest.NewServer(handler(func(http.ResponseWriter, *http.Request) {
		n.Add(1)
		time.Sleep(1100 * time.Millisecond)
	}))
	defer s.Close()
	r, err := sent(t, ClientOptions{URL: s.URL, Connections: 1, QPS: 20, KeepAlive: true, Duration: 500 * time.Millisecond, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if r.Errors != 0 || r.Requests != n.Load() || r.Requests < 2 || r.Unsent == 0 {
		t.Errorf("%d requests of %d that came, %d errors, %d unsent: %v", r.Requests, n.Load(), r.Errors, r.Unsent, r.Failures)
	}
}

func TestMoreThanAServerCanDoIsSaidToBeUnsent(t *testing.T) {
	s := httptest.NewServer(handler(func(http.ResponseWriter, *http.Request) { time.Sleep(50 * time.Millisecond) }))
	defer s.Close()
	r, err := sent(t, ClientOptions{
		URL: s.URL, Connections: 2, QPS: 500, KeepAlive: true, Duration: 400 * time.Millisecond, Timeout: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Requests+r.Unsent != 200 || r.Unsent < 150 || r.QPS > 45 {
		t.Errorf("%d requests, %d unsent, %g per second", r.Requests, r.Unsent, r.QPS)
	}
	// The last was due 0.3 s before the end of all, and nine of ten before that.
	if p := time.Duration(r.P50); p < 400*time.Millisecond {
		t.Errorf("p50 is %s, and most requests were waited for longer", p)
	}
	if p := time.Duration(r.P90); p < 600*time.Millisecond {
		t.Errorf("p90 is %s, and a tenth of all requests was waited for longer", p)
	}
}

// What is never answered took at least as long as it was waited for. A closed loop
// has no time for it, since nobody would have asked in that time.
func TestRequestsWithoutAnAnswerInTimeCountInAnOpenLoop(t *testing.T) {
	for name, c := range map[string]struct {
		qps float64
		min time.Duration // of p90
	}{
		"open, timed out":           {100, 190 * time.Millisecond},
		"closed, and so not in any": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var n atomic.Int64
			s := httptest.NewServer(handler(func(_ http.ResponseWriter, r *http.Request) {
				if n.Add(1)%3 == 0 {
					<-r.Context().Done()
				}
			}))
			defer s.Close()
			r, err := sent(t, ClientOptions{URL: s.URL, Connections: 40, QPS: c.qps, Duration: 400 * time.Millisecond, Timeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			if r.Errors == 0 || r.Failures[late] != r.Errors {
				t.Fatalf("%d errors: %v", r.Errors, r.Failures)
			}
			if want := r.Errors; c.qps > 0 && total(r.Missing) != want || c.qps == 0 && total(r.Missing) != 0 {
				t.Errorf("%d of %d errors have a time", total(r.Missing), want)
			}
			if p := time.Duration(r.P90); p < c.min {
				t.Errorf("p90 is %s, and every third request was waited for for 200ms", p)
			}
			if p := time.Duration(r.P50); p > 190*time.Millisecond {
				t.Errorf("p50 is %s", p)
			}
		})
	}
}

func TestAServerBehindAnotherAddressIsAskedByItsOwnName(t *testing.T) {
	var host atomic.Value
	s := httptest.NewServer(handler(func(_ http.ResponseWriter, r *http.Request) { host.Store(r.Host + r.URL.RequestURI()) }))
	defer s.Close()
	if _, err := sent(t, ClientOptions{URL: s.URL + "/a?b=c", Host: "shop.example:8080", Connections: 1, Duration: 50 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	if got := host.Load(); got != "shop.example:8080/a?b=c" {
		t.Errorf("the server was asked for %v", got)
	}
	s.Close()
	_, err := sent(t, ClientOptions{URL: s.URL, Host: "shop.example:8080", Connections: 1, Duration: 50 * time.Millisecond})
	if !errors.Is(err, ErrNoAnswer) || !strings.HasSuffix(err.Error(), "curl -v http://shop.example:8080") {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"a\r\nX: y", "a b", "a/b", "x@y", strings.Repeat("a", 300)} {
		if _, err := Start(t.Context(), ClientOptions{URL: s.URL, Host: bad, Connections: 1, Duration: time.Second}); err == nil || !strings.Contains(err.Error(), "the load's host") {
			t.Errorf("%q is a host: %v", bad, err)
		}
	}
}

func TestWhereALoadIsSentIsFoundByItsURL(t *testing.T) {
	for text, want := range map[string]string{
		"http://127.0.0.1/":         "127.0.0.1:80",
		"http://127.0.0.1:8080/a":   "127.0.0.1:8080",
		"https://127.0.0.1/":        "127.0.0.1:443",
		"http://[::1]:9/":           "[::1]:9",
		"http://[::ffff:7f00:1]:9/": "127.0.0.1:9",
		"http://localhost:8080/":    "127.0.0.1:8080",
	} {
		if got, err := Find(t.Context(), text); err != nil || got.String() != want {
			t.Errorf("%s is at %v, %v; not at %s", text, got, err, want)
		}
	}
	for _, bad := range []string{"http://127.0.0.1:0/", "http://127.0.0.1:70000/", "http://nowhere.invalid/", ":"} {
		if got, err := Find(t.Context(), bad); err == nil {
			t.Errorf("%s is at %v", bad, got)
		}
	}
}

func TestAKilledClientEndsTheLoadWithAnError(t *testing.T) {
	s := echo(t)
	c, err := Start(t.Context(), ClientOptions{URL: s.URL(), Connections: 9, Duration: time.Minute, Instances: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	victim := pids(c)[1]
	time.AfterFunc(200*time.Millisecond, func() { unix.Kill(victim, unix.SIGKILL) })
	_, err = c.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("client 2 of 3 (process %d) ended before its time: signal: killed", victim)) {
		t.Errorf("%v", err)
	}
	gone(t, pids(c)...)
}

func TestTheEndOfTheContextEndsEverything(t *testing.T) {
	for name, after := range map[string]time.Duration{"at once": 0, "midway": 200 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := Serve(ctx)
			if err != nil {
				t.Fatal(err)
			}
			c, err := Start(ctx, ClientOptions{URL: s.URL(), Connections: 4, Duration: time.Minute, Instances: 2})
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(after, cancel)
			if _, err := c.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			gone(t, append(pids(c), s.child.cmd.Process.Pid)...)
			if err := errors.Join(c.Close(), s.Close()); err != nil {
				t.Errorf("Close after that: %v", err)
			}
			if _, err := Start(ctx, ClientOptions{URL: s.URL(), Connections: 1, Duration: time.Second}); !errors.Is(err, context.Canceled) {
				t.Errorf("Start after that: %v", err)
			}
		})
	}
}

func TestClientsThatAreNotWantedEnd(t *testing.T) {
	c, err := Start(t.Context(), ClientOptions{URL: "http://127.0.0.1:1/", Connections: 4, Duration: time.Minute, Instances: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	gone(t, pids(c)...)
}

func TestClientsWaitUntilTheyAreTold(t *testing.T) {
	s := echo(t)
	c, err := Start(t.Context(), ClientOptions{URL: s.URL(), Connections: 4, Duration: 50 * time.Millisecond, Instances: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	time.Sleep(100 * time.Millisecond)
	used := c.all[0].cpu()
	time.Sleep(100 * time.Millisecond)
	if n, err := s.Served(); err != nil || n.Connections != 0 || c.all[0].cpu()-used > int64(20*time.Millisecond) {
		t.Errorf("before they were told: %+v, %v, %d ns of CPU time", n, err, c.all[0].cpu()-used)
	}
	if r, err := c.Run(t.Context()); err != nil || r.Requests == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestALoadThatCannotBeIsRefused(t *testing.T) {
	good := ClientOptions{URL: "http://127.0.0.1/", Connections: 1, Duration: time.Second}
	for name, change := range map[string]func(*ClientOptions){
		"no URL":                     func(o *ClientOptions) { o.URL = "" },
		"a URL of a file":            func(o *ClientOptions) { o.URL = "file:///etc/passwd" },
		"a URL without a host":       func(o *ClientOptions) { o.URL = "http:///x" },
		"a URL with a line break":    func(o *ClientOptions) { o.URL = "http://127.0.0.1/\r\nHost: other" },
		"a URL with a password":      func(o *ClientOptions) { o.URL = "http://me:secret@127.0.0.1/" },
		"no connections":             func(o *ClientOptions) { o.Connections = 0 },
		"a million connections":      func(o *ClientOptions) { o.Connections = 1e6 },
		"less connections than ones": func(o *ClientOptions) { o.Instances = 2 },
		"a negative rate":            func(o *ClientOptions) { o.QPS = -1 },
		"more requests than count":   func(o *ClientOptions) { o.QPS = 1e300 },
		"not one request":            func(o *ClientOptions) { o.QPS = 0.5 },
		"no time":                    func(o *ClientOptions) { o.Duration = 0 },
		"a time-out of nothing":      func(o *ClientOptions) { o.Timeout = -time.Second },
		"cgroups of nobody":          func(o *ClientOptions) { o.Groups = [][]string{{}, {}} },
		"a cgroup that is none":      func(o *ClientOptions) { o.Groups = [][]string{{"/tmp"}} },
		"a cgroup that isn't there":  func(o *ClientOptions) { o.Groups = [][]string{{"/sys/fs/cgroup/nowhere"}} },
	} {
		t.Run(name, func(t *testing.T) {
			o := good
			change(&o)
			c, err := Start(t.Context(), o)
			if err == nil {
				c.Close()
				t.Fatal("it was started")
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the password is in it: %v", err)
			}
		})
	}
}

func TestLoadIsDividedWithNothingLost(t *testing.T) {
	for range 200 {
		of := 1 + rand.IntN(50)
		n, sum := of+rand.IntN(3000), 0
		for i := range of {
			part := share(n, i, of)
			if part < n/of || part > n/of+1 {
				t.Fatalf("part %d of %d by %d is %d", i, n, of, part)
			}
			sum += part
		}
		if sum != n {
			t.Fatalf("%d by %d is %d together", n, of, sum)
		}
	}
}
