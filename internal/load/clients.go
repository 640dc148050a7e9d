package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/term"
)

// ClientOptions define a load.
type ClientOptions struct {
	URL         string // http or https; clients connect only to its host
	Connections int    // of all clients together
	// QPS is the number of requests per second of all clients in an open loop. 0 is a closed
	// loop: each connection sends its next request after the last answer.
	QPS       float64
	KeepAlive bool
	// ResolveEach resolves the host for each connection, and uses several addresses in turn,
	// like the fortio command. Otherwise the host is resolved once for the load.
	ResolveEach bool
	Duration    time.Duration
	Instances   int           // client processes that share connections and QPS; 0 means 1
	Groups      [][]string    `json:"-"` // folders of cgroups of each instance, or none
	Net         *os.File      `json:"-"` // network namespace of the clients; nil: tare's
	Timeout     time.Duration // timeout of one answer; 0 means 3 s
	// Host is the host, with an optional port, in the requests; by default that of the URL. It
	// allows another address in the URL, such as a service's.
	Host string
}

// Limits of a load.
const (
	maxInstances = 256
	maxConnects  = 1 << 17
	maxDuration  = 24 * time.Hour
	maxRequests  = 1e10
)

// ErrNoAnswer means that no request was answered.
var ErrNoAnswer = errors.New("not one request was answered")

// Clients are the client processes of a load.
type Clients struct {
	options ClientOptions
	all     []*child
}

// Start starts the clients and waits until they are ready in their cgroups. They make no
// connection before Run. The end of ctx ends them.
func Start(ctx context.Context, o ClientOptions) (*Clients, error) {
	o.Instances = max(o.Instances, 1)
	o.Timeout = cmp.Or(o.Timeout, 3*time.Second)
	u, err := o.check()
	if err != nil {
		return nil, err
	}
	addr, err := lookUp(ctx, u) // once for the load
	if err != nil {
		return nil, err
	}
	c := &Clients{options: o}
	o.URL = u.String()
	for i := range o.Instances {
		var groups []string
		if i < len(o.Groups) {
			groups = o.Groups[i]
		}
		one, err := begin(ctx, verbClient, fmt.Sprintf("client %d of %d", i+1, o.Instances), o.Net, groups, clientConfig{o, addr.String(), i})
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		c.all = append(c.all, one)
	}
	for _, one := range c.all {
		var ready bool
		if err := one.hear(&ready, time.Now().Add(patience)); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// share returns the i-th part of n.
func share(n, i, of int) int { return n*(i+1)/of - n*i/of }

func (o *ClientOptions) check() (*url.URL, error) {
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the load's URL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil:
		return nil, fmt.Errorf("the load's URL %q: it must be http://HOST[:PORT]/PATH, or https, without a password", u.Redacted())
	case o.Host != "" && !validHost(o.Host):
		return nil, fmt.Errorf("the load's host %q: it must be a name or an address, with an optional port", term.Clean(o.Host))
	}
	return u, o.checkCounts()
}

// checkCounts checks the limits of a load.
func (o *ClientOptions) checkCounts() error {
	switch {
	case o.Duration <= 0 || o.Duration > maxDuration:
		return fmt.Errorf("invalid duration %s: must be above 0 and at most %s", o.Duration, maxDuration)
	case o.Instances > maxInstances:
		return fmt.Errorf("%d clients are more than %d", o.Instances, maxInstances)
	case o.Connections < o.Instances || o.Connections > maxConnects:
		return fmt.Errorf("invalid number of connections %d: must be 1 to %d, and at least one for each of %d clients",
			o.Connections, maxConnects, o.Instances)
	case math.IsNaN(o.QPS) || o.QPS < 0 || o.QPS*o.Duration.Seconds() > maxRequests:
		return fmt.Errorf("%g requests per second for %s: must be 0 or more, and at most %g in total", o.QPS, o.Duration, float64(maxRequests))
	case o.QPS > 0 && o.QPS*o.Duration.Seconds() < float64(o.Instances):
		return fmt.Errorf("%g requests per second for %s: too few for one request from each of %d clients", o.QPS, o.Duration, o.Instances)
	case o.Timeout < time.Millisecond || o.Timeout > time.Hour:
		return fmt.Errorf("invalid timeout %s: must be 1ms to 1h", o.Timeout)
	case len(o.Groups) > o.Instances:
		return fmt.Errorf("cgroups of %d clients, and %d clients", len(o.Groups), o.Instances)
	}
	return nil
}

// validHost reports whether a text is a host with an optional port and nothing else.
func validHost(host string) bool {
	u, err := url.Parse("http://" + host + "/")
	return err == nil && u.Host == host && u.Hostname() != "" && len(host) <= maxHost && u.User == nil
}

const maxHost = 255 + len(":65535") // RFC 1035

// Find returns the address that a load on a URL uses: the first IPv4 address of its host, or
// else its first address, and the port.
func Find(ctx context.Context, text string) (netip.AddrPort, error) {
	u, err := url.Parse(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("the load's URL: %w", err)
	}
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if u.Port() != "" {
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil || port == 0 {
			return netip.AddrPort{}, fmt.Errorf("the load's URL: %.20q is not a port", u.Port())
		}
	}
	addr, err := lookUp(ctx, u)
	return netip.AddrPortFrom(addr, uint16(port)), err
}

func lookUp(ctx context.Context, u *url.URL) (netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the load's host: %w", err)
	}
	first4 := slices.IndexFunc(found, func(a netip.Addr) bool { return a.Unmap().Is4() })
	return found[max(first4, 0)].Unmap(), nil
}

// lead is how far ahead of the current time Run sets the common start of all clients.
const lead = 10 * time.Millisecond

// Run runs the load once. This takes the duration and at most one more timeout, or two in an
// open loop. Run returns the result even with an error such as ErrNoAnswer. The clients end
// with ctx.
func (c *Clients) Run(ctx context.Context) (Result, error) {
	defer context.AfterFunc(ctx, c.kill)()
	begin := machine.Now() + int64(lead)
	until := time.Now().Add(lead + c.options.Duration + waits(c.options.QPS)*c.options.Timeout + grace + patience)
	results := make([]Result, len(c.all))
	var silent, broken error
	var lock sync.Mutex
	var all sync.WaitGroup
	for i, one := range c.all {
		all.Go(func() {
			err := c.hear(one, begin, &results[i], until)
			if err == nil {
				return
			}
			lock.Lock()
			defer lock.Unlock()
			if errors.Is(err, ErrNoAnswer) {
				silent = err
				return
			}
			results[i] = Result{}
			if broken == nil {
				broken = err
				c.kill() // the load would lack a part
			}
		})
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if broken != nil {
		return Merge(results), broken
	}
	return Merge(results), silent
}

// hear starts one client and waits for its result.
func (c *Clients) hear(one *child, begin int64, to *Result, until time.Time) error {
	if err := write(one.in, begin); err != nil {
		<-one.ended
		return one.why()
	}
	if err := one.hear(to, until); err != nil {
		return err
	}
	return to.answered(one.name, c.options.named())
}

// named returns the URL with the host of the requests.
func (o *ClientOptions) named() string {
	u, err := url.Parse(o.URL)
	if err != nil || o.Host == "" {
		return o.URL
	}
	u.Host = o.Host
	return u.String()
}

// answered returns [ErrNoAnswer] if no request of a client was answered.
func (r *Result) answered(name, url string) error {
	if r.Requests > r.Errors {
		return nil
	}
	why := "nothing was sent"
	for _, kind := range slices.Sorted(maps.Keys(r.Failures)) {
		if r.Failures[kind] >= r.Failures[why] {
			why = kind
		}
	}
	return fmt.Errorf("%w of %d that %s sent to %s: %s; try it with: curl -v %s",
		ErrNoAnswer, r.Requests, name, term.Clean(url), term.Clean(why), term.Clean(url))
}

func (c *Clients) kill() {
	for _, one := range c.all {
		one.kill()
	}
}

// Close ends the clients.
func (c *Clients) Close() error {
	c.kill()
	var err error
	for _, one := range c.all {
		err = errors.Join(err, one.close())
	}
	return err
}
