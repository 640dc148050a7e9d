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
)

// sender sends the requests of one client and counts what comes of them.
type sender struct {
	clientConfig
	clients  []fhttp.Fetcher
	answers  []answer // of each client
	failures failures
	latency  histogram
	lag      histogram
	alarm    *alarm
	begun    int64 // ns of CLOCK_MONOTONIC

	started, answered, failed, sockets atomic.Int64
	unsent                             atomic.Int64
	last                               atomic.Int64 // end of the last answer, ns from the beginning
	stop                               chan struct{}
	stopOnce                           sync.Once
}

func newSender(c clientConfig) (*sender, error) {
	s := &sender{clientConfig: c, stop: make(chan struct{})}
	listen(&s.failures)
	fhttp.BufferSizeKb = buffer >> 10
	if err := fnet.FlagResolveIPType.Set("ip"); err != nil { // not IPv4 alone
		return nil, err
	}
	var err error
	if s.alarm, err = newAlarm(); err != nil {
		return nil, err
	}
	s.answers = make([]answer, c.Connections)
	for i := range c.Connections {
		o := fhttp.HTTPOptions{
			URL: c.URL, Resolve: c.Resolve, NoResolveEachConn: true,
			DisableKeepAlive: !c.KeepAlive, HTTPReqTimeOut: c.Timeout, ID: i,
			DataWriter: &s.answers[i],
		}
		client, err := fhttp.NewClient(o.Init(c.URL))
		if err != nil {
			return nil, fmt.Errorf("make connection %d of %d to %s: %w", i+1, c.Connections, c.URL, err)
		}
		s.clients = append(s.clients, client)
	}
	return s, nil
}

// grace is how much longer than a time-out a request is waited for.
const grace = 200 * time.Millisecond

// run sends from begun until the time is over, and waits for what was sent then, no
// longer than for a time-out.
func (s *sender) run(begun int64) (*Result, error) {
	if err := s.alarm.until(begun); err != nil {
		return nil, err
	}
	s.begun = begun
	used := clock(unix.CLOCK_PROCESS_CPUTIME_ID)
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
		case <-left(s.Duration + s.Timeout + grace):
		}
	}
	return s.result(clock(unix.CLOCK_PROCESS_CPUTIME_ID) - used), nil
}

// now is the time since the beginning, ns.
func (s *sender) now() int64 { return monotonic() - s.begun }

func (s *sender) halt() { s.stopOnce.Do(func() { close(s.stop) }) }

// closed sends on one connection one request after the other.
func (s *sender) closed(i int) {
	failed := 0
	for now := s.now(); now < int64(s.Duration) && !s.stopped(); now = s.now() {
		if s.request(i, now) {
			failed = 0
			continue
		}
		// A port that refuses would be tried a hundred thousand times a second.
		wait := time.Millisecond << min(failed, 7)
		failed++
		select {
		case <-time.After(min(wait, s.Duration-time.Duration(s.now()))):
		case <-s.stop:
		}
	}
}

// open sends on one connection what is due. Connections take turns; one that waits
// for an answer leaves its turn to the others.
func (s *sender) open(i int, due <-chan int64) {
	for at := range due {
		s.request(i, at)
	}
}

// pace hands out when requests are due. Where no connection is free it waits, and
// what became due meanwhile follows at once: none is left out, and each one's
// latency counts from when it was due.
func (s *sender) pace(due chan<- int64) {
	defer close(due)
	n := int64(math.Ceil((s.Duration.Seconds()*s.QPS - float64(s.Share)) / float64(s.Of)))
	for k := range n {
		at := int64(float64(int64(s.Share)+k*int64(s.Of)) / s.QPS * 1e9)
		if s.now() < at {
			if s.alarm.until(s.begun+at) != nil {
				s.unsent.Store(n - k)
				return
			}
			s.lag.add(s.now() - at)
		}
		if s.stopped() { // select below has no order
			s.unsent.Store(n - k)
			return
		}
		select {
		case due <- at:
		case <-s.stop:
			s.unsent.Store(n - k)
			return
		}
	}
}

func (s *sender) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// request sends one request and counts its answer; from is what its latency is
// counted from.
func (s *sender) request(i int, from int64) bool {
	client, answer := s.clients[i], &s.answers[i]
	_, connects := client.GetIPAddress()
	before := connects.Count
	s.started.Add(1)
	code, _, _ := client.StreamFetch(context.Background())
	now := s.now()
	s.sockets.Add(connects.Count - before)
	if why := answer.wrong(code); why != "" || code == fhttp.SocketError {
		client.Close() // what is left of this answer would be taken for the next one
		s.fail(why)
		return false
	}
	s.latency.add(now - from)
	s.answered.Add(1)
	for {
		old := s.last.Load()
		if now <= old || s.last.CompareAndSwap(old, now) {
			return true
		}
	}
}

// hopeless is after how many failures a client without any answer gives up, or one
// on each connection where those are more; or with the first after a time-out.
const hopeless = 8

// fail counts a failure, whose reason is not yet known where it isn't empty.
func (s *sender) fail(why string) {
	if why != "" {
		s.failures.add(why, 1)
	}
	failed := s.failed.Add(1)
	many := failed >= int64(max(hopeless, s.Connections)) || s.now() >= int64(s.Timeout)
	if many && s.answered.Load() == 0 {
		s.halt()
	}
}

// result is what there is to say. Goroutines may still wait for answers: what they
// wait for has failed.
func (s *sender) result(cpu int64) *Result {
	r := &Result{Histogram: s.latency.bins(), CPU: cpu, Unsent: s.unsent.Load()}
	answered := total(r.Histogram)
	if waiting := s.started.Load() - answered - s.failed.Load(); waiting > 0 {
		s.failures.add(late, waiting)
	}
	var unconnected int64
	r.Failures, unconnected = s.failures.snapshot()
	r.Requests = s.started.Load()
	r.Errors = r.Requests - answered
	r.Sockets = max(s.sockets.Load()-unconnected, 0)
	r.Elapsed = max(int64(s.Duration), s.last.Load())
	if s.stopped() {
		r.Elapsed = max(s.now(), 1)
	}
	r.QPS = float64(answered) / (float64(r.Elapsed) / 1e9)
	if r.OpenLoop = s.QPS > 0; r.OpenLoop {
		r.Lag = quantile(s.lag.bins(), 0.99, s.lag.max.Load())
	}
	if answered > 0 {
		r.Mean = s.latency.sum.Load() / answered
	}
	r.Max = s.latency.max.Load()
	r.quantiles()
	return r
}
