package load

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"fortio.org/fortio/fhttp"
	"fortio.org/fortio/fnet"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/machine"
)

// sender sends the requests of one client and counts the answers.
type sender struct {
	clientConfig
	clients  []fhttp.Fetcher
	answers  []answer // by client
	failures failures
	latency  histogram
	missing  histogram      // in an open loop, see Result.Missing
	waiting  []atomic.Int64 // by client: due time of its pending request, or -1
	lag      histogram
	alarm    *alarm
	begun    int64 // ns of CLOCK_MONOTONIC

	started, failed, sockets, unsent atomic.Int64
	last                             atomic.Int64    // end of the last answer, ns from the start
	lastSent                         atomic.Int64    // time at which the last answered request was sent, ns from the start
	stopped                          context.Context // done once no more requests may be sent
	halt                             context.CancelFunc
}

func newSender(c clientConfig) (*sender, error) {
	s := &sender{clientConfig: c}
	s.stopped, s.halt = context.WithCancel(context.Background())
	listen(&s.failures)
	fhttp.BufferSizeKb = buffer >> 10
	if err := fnet.FlagResolveIPType.Set("ip"); err != nil { // not IPv4 alone
		return nil, err
	}
	var err error
	if s.alarm, err = newAlarm(); err != nil {
		return nil, err
	}
	s.answers, s.waiting = make([]answer, c.Connections), make([]atomic.Int64, c.Connections)
	for i := range c.Connections {
		s.waiting[i].Store(-1)
		o := fhttp.HTTPOptions{
			URL: c.URL, Resolve: c.Resolve, NoResolveEachConn: true,
			DisableKeepAlive: !c.KeepAlive, HTTPReqTimeOut: c.Timeout, ID: i,
			DataWriter: &s.answers[i],
		}
		if c.ResolveEach {
			o.Resolve, o.NoResolveEachConn = "", false
		}
		o.Init(c.URL)
		if c.Host != "" {
			if err := o.AddAndValidateExtraHeader("Host: " + c.Host); err != nil {
				return nil, err
			}
		}
		client, err := fhttp.NewClient(&o)
		if err != nil {
			return nil, fmt.Errorf("make connection %d of %d to %s: %w", i+1, c.Connections, c.URL, err)
		}
		s.clients = append(s.clients, client)
	}
	return s, nil
}

// grace is the additional waiting time after a timeout.
const grace = 200 * time.Millisecond

// run sends requests from begun on for the duration and waits for the answers. If a closed
// loop gets a CPU late, it starts late, so that it runs for its whole duration. In an open
// loop requests may be sent up to one timeout after the end, and each has its full timeout.
func (s *sender) run(begun int64) (*Result, error) {
	if err := s.alarm.until(begun); err != nil {
		return nil, err
	}
	if s.begun = begun; s.QPS <= 0 {
		s.begun = max(begun, machine.Now())
	}
	used := machine.Clock(unix.CLOCK_PROCESS_CPUTIME_ID)
	var all sync.WaitGroup
	due := make(chan int64)
	if s.QPS > 0 {
		all.Go(func() { s.pace(due) })
	}
	for i := range s.clients {
		all.Go(func() {
			if s.QPS > 0 {
				s.open(i, due)
			} else {
				s.closed(i)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	left := func(d time.Duration) <-chan time.Time { return time.After(d - time.Duration(s.now())) }
	select {
	case <-done:
	case <-left(s.Duration + s.Timeout):
		s.halt()
		select {
		case <-done:
		case <-left(s.Duration + waits(s.QPS)*s.Timeout + grace):
		}
	}
	return s.result(machine.Clock(unix.CLOCK_PROCESS_CPUTIME_ID) - used), nil
}

// waits returns the maximum number of timeouts that a load takes after its duration.
func waits(qps float64) time.Duration {
	if qps > 0 {
		return 2
	}
	return 1
}

// now returns the time since the start, ns.
func (s *sender) now() int64 { return machine.Now() - s.begun }

// closed sends one request after the other on a connection.
func (s *sender) closed(i int) {
	failed := 0
	for now := s.now(); now < int64(s.Duration) && s.stopped.Err() == nil; now = s.now() {
		if s.request(i, now) {
			failed = 0
			continue
		}
		// Back off: otherwise a refused connection would be retried a hundred thousand
		// times per second.
		wait := time.Millisecond << min(failed, 7)
		failed++
		select {
		case <-time.After(min(wait, s.Duration-time.Duration(s.now()))):
		case <-s.stopped.Done():
		}
	}
}

// open sends due requests on a connection. Free connections take turns.
func (s *sender) open(i int, due <-chan int64) {
	for at := range due {
		s.request(i, at)
	}
}

// pace passes the due times of requests to connections. If no connection is free, it waits, and
// later sends all requests that became due. Each latency counts from the due time.
func (s *sender) pace(due chan<- int64) {
	defer close(due)
	n := int64(math.Ceil((s.Duration.Seconds()*s.QPS - float64(s.Share)) / float64(s.Instances)))
	for k := range n {
		at := s.dueAt(k)
		if s.now() < at {
			if s.alarm.until(s.begun+at) != nil {
				s.unsentFrom(k, n)
				return
			}
			s.lag.add(s.now() - at)
		}
		if s.stopped.Err() != nil { // the select below has no priority
			s.unsentFrom(k, n)
			return
		}
		select {
		case due <- at:
		case <-s.stopped.Done():
			s.unsentFrom(k, n)
			return
		}
	}
}

// dueAt returns the due time of this client's k-th request, ns from the start.
func (s *sender) dueAt(k int64) int64 {
	return int64(float64(int64(s.Share)+k*int64(s.Instances)) / s.QPS * 1e9)
}

const maxSingle = 1 << 20 // unsent requests that are counted one by one; more are grouped

// unsentFrom counts the unsent requests from the k-th up to the n-th, exclusive. Requests
// that are already due are counted with their waiting time.
func (s *sender) unsentFrom(k, n int64) {
	s.unsent.Store(n - k)
	stride := (n-k)/maxSingle + 1
	for now := s.now(); k < n; k += stride {
		at := s.dueAt(k)
		if at > now {
			return
		}
		s.missing.addTimes(now-at, min(stride, n-k))
	}
}

// request sends one request and counts its answer. The latency counts from the time from.
func (s *sender) request(i int, from int64) bool {
	client, answer := s.clients[i], &s.answers[i]
	_, connects := client.GetIPAddress()
	before, began := connects.Count, s.now()
	s.started.Add(1)
	s.waiting[i].Store(from)
	*answer = answerWhole // reset
	code, _, _ := client.StreamFetch(context.Background())
	now := s.now()
	s.waiting[i].Store(-1) // before the count, see result
	s.sockets.Add(connects.Count - before)
	why := answer.wrong(code)
	if why == "" && code != fhttp.SocketError && now-began >= int64(s.Timeout) {
		why = late // fortio repeats an unanswered request on a kept connection
	}
	if why != "" || code == fhttp.SocketError {
		client.Close() // the rest of this answer would be mistaken for the next one
		if s.QPS > 0 && now-began >= int64(s.Timeout) {
			s.missing.add(now - from)
		}
		s.fail(why)
		return false
	}
	s.latency.add(now - from)
	latest(&s.last, now)
	latest(&s.lastSent, began)
	return true
}

// hopeless is the number of failures after which a client that has no answer yet gives up. A
// client with more connections needs one failure per connection. Once the timeout has
// passed, one failure is enough.
const hopeless = 8

// fail counts a failure. why is its reason, or "" if fortio's log has it.
func (s *sender) fail(why string) {
	if why != "" {
		s.failures.add(why, 1)
	}
	failed := s.failed.Add(1)
	many := failed >= int64(max(hopeless, s.Connections)) || s.now() >= int64(s.Timeout)
	if many && s.last.Load() == 0 {
		s.halt()
	}
}

// result returns the result. Pending requests count as failed.
func (s *sender) result(cpu int64) *Result {
	// In this order no request is both answered and missing.
	r := &Result{Histogram: s.latency.bins(), CPU: cpu}
	answered := total(r.Histogram)
	if answered > 0 { // else Run returns an error
		r.Missing, r.Max = s.waitedFor()
	}
	r.Unsent = s.unsent.Load()
	if waiting := s.started.Load() - answered - s.failed.Load(); waiting > 0 {
		s.failures.add(late, waiting)
	}
	r.Failures = s.failures.snapshot()
	r.Requests = s.started.Load()
	r.Errors = r.Requests - answered
	r.Sockets = max(s.sockets.Load()-s.failures.connect.Load(), 0)
	r.Elapsed = s.elapsed()
	r.QPS = float64(answered) / (float64(r.Elapsed) / 1e9)
	if r.OpenLoop = s.QPS > 0; r.OpenLoop {
		r.Lag = quantile(s.lag.bins(), 0.99, s.lag.max.Load())
	}
	r.Max = max(r.Max, s.latency.max.Load())
	sum := float64(s.latency.sum.Load())
	for _, b := range r.Missing {
		sum += float64(min(b.To, r.Max)) * float64(b.Count)
	}
	if n := answered + total(r.Missing); n > 0 {
		r.Mean = int64(sum / float64(n))
	}
	r.quantiles()
	return r
}

// elapsed returns the duration (ns) for the rate of answers. In an open loop it ends when
// the last answered request was sent: a server that keeps up with the rate may send its
// last answer after the end.
func (s *sender) elapsed() int64 {
	now := s.now()
	switch {
	case s.stopped.Err() != nil && (s.QPS <= 0 || now < int64(s.Duration)):
		return max(now, 1)
	case s.QPS > 0:
		return max(int64(s.Duration), s.lastSent.Load())
	}
	return max(int64(s.Duration), s.last.Load())
}

// waitedFor returns the waiting times of an open loop's unanswered requests, including pending
// ones.
func (s *sender) waitedFor() (bins []Bin, longest int64) {
	if s.QPS <= 0 {
		return nil, 0
	}
	bins, longest = s.missing.bins(), s.missing.max.Load()
	var still histogram
	for i := range s.waiting {
		if from := s.waiting[i].Load(); from >= 0 {
			still.add(s.now() - from)
		}
	}
	return together(bins, still.bins()), max(longest, still.max.Load())
}
