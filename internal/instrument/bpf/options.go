// Package bpf measures the cost of eBPF programs and determines which CPU limit it
// counts against.
package bpf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/record"
)

// Limits of the options.
const (
	maxConnections = 100_000
	maxQPS         = 10_000_000
	maxInstances   = 256
	maxServices    = 131_070 // addresses of 198.18.0.0/15; see package datapath
	maxHeavy       = 10_000_000
	maxPoints      = 100
	minLoad        = 100 * time.Millisecond
	maxLoad        = 24 * time.Hour
	maxRequest     = time.Hour

	// shortest is the minimum duration of a scaled load. On a busy machine, connecting may
	// take longer than a shorter load.
	shortest = 500 * time.Millisecond

	maxChosen = 100
	maxPath   = 4095 // PATH_MAX without its NUL
)

// DatapathReference selects tare's own programs.
const DatapathReference = "reference"

// Options are the options of a BPF measurement.
type Options struct {
	Title string
	// Case is record.CaseLoad, CaseQuota or CaseMemory.
	Case string
	// Datapath is "reference" for tare's own programs, or "" for loaded programs
	// selected by Choice.
	Datapath string
	Choice
	// URL is the server to load; "" for tare's own server on loopback.
	URL         string
	Connections []int
	QPS         float64 // 0: unlimited
	KeepAlive   bool
	ResolveEach bool          // resolve the host of the URL for each connection
	Duration    time.Duration // of the load at each point
	Idle        time.Duration // before and after each load
	Rounds      int
	// CPUs is the CPU limit shared by all clients. Instances is the number of clients;
	// each gets an equal part.
	CPUs      float64
	Instances int
	Heavy     []int64 // loop rounds of the reference datapath's programs
	Services  []int   // number in the reference datapath's map
	Budget    time.Duration
	Timeout   time.Duration // per request
	Seed      uint64

	loaded func() string
}

// ShowLoaded sets the function that lists the loaded programs. The list is shown in the
// error if a command line selects none.
func (o *Options) ShowLoaded(loaded func() string) { o.loaded = loaded }

// Choice selects loaded programs.
type Choice struct {
	Kmesh   bool
	Names   []string // globs
	Pins    []string
	Cgroups []string
	Owners  []Owner
	IDs     []int
}

// empty reports whether nothing is selected.
func (c *Choice) empty() bool {
	return !c.Kmesh && len(c.Names)+len(c.Pins)+len(c.Cgroups)+len(c.Owners)+len(c.IDs) == 0
}

// Owner is the pid or name of a process that holds programs, or a recognized owner.
type Owner string

// UnmarshalJSON also accepts pids as numbers, as in older records.
func (o *Owner) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, (*string)(o)) != nil {
		*o = Owner(text)
	}
	return nil
}

func owner(o Owner) error {
	if pid, err := strconv.ParseUint(string(o), 10, 64); err == nil && (pid < 1 || pid > 1<<22) {
		return fmt.Errorf("%s is not a pid: from 1 to %d are allowed", o, 1<<22)
	}
	return named(string(o))
}

// DefaultsOfLoad returns the default options, with tare's own programs and enough
// rounds for an interval.
func DefaultsOfLoad() Options {
	return Options{
		Case: record.CaseLoad, Datapath: DatapathReference,
		Connections: []int{100, 1000}, Duration: 5 * time.Second, Idle: time.Second, Rounds: stat.RoundsFor(1, stat.Raw),
		Instances: 1, Heavy: []int64{0}, Services: []int{1}, Budget: 2 * time.Hour, Timeout: 5 * time.Second,
	}
}

// DefaultsOfQuota returns the defaults of bpf quota.
func DefaultsOfQuota() Options {
	o := DefaultsOfLoad()
	o.Case, o.CPUs, o.Connections, o.Duration, o.Rounds = record.CaseQuota, 1, []int{64}, 3*time.Second, 3
	o.Heavy = []int64{0, 10_000, 65_535, 400_000}
	return o
}

// DefaultsOfMemory returns the defaults of bpf memory.
func DefaultsOfMemory() Options {
	o := DefaultsOfLoad()
	o.Case, o.Services, o.Connections, o.Duration, o.Rounds = record.CaseMemory, []int{1, 100, 1000}, []int{100}, 3*time.Second, 1
	return o
}

// Declare declares the options of load, quota and memory.
func (o *Options) Declare(s *option.Set) {
	terms.Title(s, &o.Title)
	option.Text(s, &o.Case, "case", "a load on programs, the question whose limit pays for them, or what services cost in memory",
		option.NoFlag, option.Choices(record.CaseLoad, record.CaseQuota, record.CaseMemory))
	option.Text(s, &o.Datapath, "datapath", "reference: tare's own programs (default of quota if none are selected)", option.Must(datapath), option.NoDefault)
	o.Choice.Declare(s)
	o.settleChoice(s)
	option.Text(s, &o.URL, "url", "server to load (default: tare's own server on loopback)", option.OmitEmpty, option.Must(address))
	option.Var(s, &o.Connections, "connections", "at once; a list sweeps: 100,500,1000", option.OneOrMore(option.Integer), option.OmitEmpty,
		option.Flag("connections", "c"), option.Some("write at least one number from 1 to 100000"),
		option.Bounds(1, maxConnections, "a number of connections"), option.Once("each number of connections is measured once"))
	option.Var(s, &o.QPS, "qps", "requests per second, due at fixed times (open loop); 0: unlimited", option.Number,
		option.OmitEmpty, option.Bounds(0, maxQPS, "a rate", ", 0 for as many as it can"))
	option.Bool(s, &o.KeepAlive, "keep_alive", "send many requests per connection instead of one", option.OmitEmpty, option.Flag("keepalive"))
	option.Bool(s, &o.ResolveEach, "resolve_each", "resolve the URL's host for each connection instead of once per load", option.OmitEmpty)
	option.Time(s, &o.Duration, "duration", "of the load at each point", option.Flag("time", "t"), option.Bounds(minLoad, maxLoad, "a load"))
	option.Time(s, &o.Idle, "idle", "how long the idle node is measured before and after each load", option.Bounds(minLoad, maxLoad, "a time to look at"))
	terms.Rounds(s, &o.Rounds, "measurements of every point")
	o.declareLimit(s)
	option.Var(s, &o.Heavy, "heavy", "rounds of a loop in the reference datapath's programs; a list makes them heavier step by step", option.ListOf(option.Integer64), option.OmitEmpty,
		option.Some("write at least one, such as 0,10000,65535"), option.AtMost(maxPoints), option.Bounds(0, maxHeavy, "a number of rounds"), option.Once("each weight is measured once"))
	option.Var(s, &o.Services, "services", "in the reference datapath's map; a list sweeps: 1,100,1000", option.OneOrMore(option.Integer), option.OmitEmpty,
		option.Some("write at least one number from 1 to 131070"), option.Bounds(1, maxServices, "a number of services"), option.Once("each number of services is measured once"))
	terms.Budget(s, &o.Budget, "round")
	terms.Timeout(s, &o.Timeout, "for one request")
	terms.Seed(s, &o.Seed, "points")
	terms.ScaleFlag(s, func(scale float64) error {
		o.Duration = max(time.Duration(float64(o.Duration)*scale), min(o.Duration, shortest))
		o.Idle = max(time.Duration(float64(o.Idle)*scale), minLoad)
		return nil
	})
}

// Declare declares the options that select programs.
func (c *Choice) Declare(s *option.Set) {
	texts := option.ListOf(option.TextOf[string]())
	option.Bool(s, &c.Kmesh, "kmesh", "the programs of Kmesh, recognized by their pins and maps", option.OmitEmpty)
	option.Var(s, &c.Names, "names", "programs whose short or full name matches a glob: cgroup_*", texts,
		option.OmitEmpty, option.Flag("name"), option.AtMost(maxChosen), option.Must(pattern))
	option.Var(s, &c.Pins, "pins", "the program pinned at this path, or all in this directory", option.Repeated(texts),
		option.OmitEmpty, option.Flag("pin"), option.AtMost(maxChosen), option.Must(rooted))
	option.Var(s, &c.Cgroups, "cgroups", "programs attached to this cgroup v2 directory", option.Repeated(texts),
		option.OmitEmpty, option.Flag("cgroup"), option.AtMost(maxChosen), option.Must(rooted))
	option.Var(s, &c.Owners, "owners", "programs of an owner that bpf list names (kmesh, cilium, systemd), or held by a process, by its name or pid",
		option.ListOf(option.Written(func(s string) (Owner, error) { return Owner(s), nil }, nil, option.Schema{"type": []string{"string", "integer"}})),
		option.OmitEmpty, option.Flag("owner"), option.AtMost(maxChosen), option.Must(owner))
	option.Var(s, &c.IDs, "ids", "the program with this id", option.ListOf(option.Integer),
		option.OmitEmpty, option.Flag("id"), option.AtMost(maxChosen), option.Bounds(1, 1<<32-1, "an id"))
}

// settleChoice lets flags replace the plan's choice of programs. An empty name selects
// nothing; a missing name does not filter.
func (o *Options) settleChoice(s *option.Set) {
	s.Before(func(context.Context) error {
		if s.Given("kmesh") && o.Kmesh || s.Given("name", "pin", "cgroup", "owner", "id") {
			for flag, clear := range map[string]func(){
				"kmesh": func() { o.Kmesh = false }, "name": func() { o.Names = nil }, "pin": func() { o.Pins = nil },
				"cgroup": func() { o.Cgroups = nil }, "owner": func() { o.Owners = nil },
				"id":       func() { o.IDs = nil },
				"datapath": func() { o.Datapath = "" },
			} {
				if !s.Given(flag) {
					clear()
				}
			}
		}
		if o.Datapath == "" && !s.Given("heavy") {
			o.Heavy = []int64{0} // only tare's own programs can be made heavier
		}
		if o.Datapath == "" && !s.Given("services") {
			o.Services = []int{1} // only their map has services
		}
		return nil
	})
}

// declareLimit declares the clients' CPU limit. The flag sets both the limit and the
// number of clients.
func (o *Options) declareLimit(s *option.Set) {
	cpus := option.Number
	cpus.Parse, cpus.Type = func(text string) (float64, error) {
		if text == "0" {
			o.Instances = 1
			return 0, nil
		}
		n, instances, err := parseCPUs(text)
		if err == nil {
			o.Instances = instances
		}
		return n, err
	}, "string"
	option.Var(s, &o.CPUs, "cpus", "limit of the load's clients: 1, 0.5, 250m, or 4x250m for four clients with a quarter each; 0: none", cpus,
		option.OmitEmpty, option.OrZero, option.Bounds(terms.MinCPU, terms.MaxCPU, "a limit"))
	option.Int(s, &o.Instances, "instances", "clients that share connections and limit", option.OmitEmpty, option.Flag("cpus"), option.NoFlag,
		option.Some("write 1 or more"), option.Bounds(1, maxInstances, "a number of clients"))
}

// parseCPUs parses a limit in CPUs ("1", "0.5") or milli-CPUs ("250m"). A limit per
// client has a count in front ("4x250m").
func parseCPUs(s string) (cpus float64, instances int, err error) {
	instances = 1
	each := strings.TrimSpace(s)
	if count, rest, several := strings.Cut(each, "x"); several {
		if instances, err = strconv.Atoi(strings.TrimSpace(count)); err != nil || instances < 1 || instances > maxInstances {
			return 0, 0, fmt.Errorf("%s: %s is not a number of clients from 1 to %d", option.Quote(s), option.Quote(count), maxInstances)
		}
		each = rest
	}
	milli, err := terms.ParseMilliCPU(strings.TrimSpace(each))
	if err != nil {
		return 0, 0, err
	}
	return float64(milli) / 1000 * float64(instances), instances, nil
}

func datapath(name string) error {
	if name != "" && name != DatapathReference {
		return fmt.Errorf("unknown datapath %s: write reference, or leave it empty and select programs", option.Quote(name))
	}
	return nil
}

func pattern(name string) error {
	if _, err := path.Match(name, ""); err != nil {
		return fmt.Errorf("%s is not a pattern: write a name with * and ?, such as cgroup_*", option.Quote(name))
	}
	return named(name)
}

func rooted(name string) error {
	if err := named(name); err != nil || strings.HasPrefix(name, "/") {
		return err
	}
	return fmt.Errorf("%s is not a path: write it from the root", option.Quote(name))
}

func named(s string) error {
	if s == "" || len(s) > maxPath || strings.ContainsRune(s, 0) {
		return fmt.Errorf("%s is not a name: write one, or leave it out", option.Quote(s))
	}
	return nil
}

func address(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || len(s) > maxPath {
		return errors.New(option.Quote(s) + " is not an address: write one such as http://10.0.0.1:8080/")
	}
	return nil
}

// Wrong returns the conflicts between options.
func (o *Options) Wrong() option.FieldErrors {
	var all option.FieldErrors
	wrong := func(is bool, field, message string) {
		if is {
			all = append(all, option.Wrongf(field, "%s", message))
		}
	}
	others, own := o.Datapath == "", o.Datapath == DatapathReference
	if others && o.empty() && o.loaded != nil {
		return append(all, option.Wrongf("datapath", "no programs are chosen: use --kmesh, --pin, --id, --owner, --name or --cgroup, or --datapath reference for tare's own programs; loaded here: %s; tare bpf list shows all", o.loaded()))
	}
	wrong(others && o.empty(), "datapath", "no programs are chosen: write reference, or kmesh, names, pins, cgroups, owners or ids")
	wrong(own && !o.empty(), "datapath", "tare's own programs are measured alone: leave out kmesh, names, pins, cgroups, owners and ids")
	wrong(others && !slices.Equal(o.Heavy, []int64{0}), "heavy", "only tare's own programs can be made heavier: write datapath: reference")
	wrong(others && !slices.Equal(o.Services, []int{1}), "services",
		"only tare's own programs have a map of services: leave them out, or write datapath: reference")
	wrong(own && strings.HasPrefix(strings.ToLower(o.URL), "https:"), "url",
		"tare's own programs lead services to it, whose addresses no certificate has: write an http address, or choose programs")
	wrong(others && o.URL == "", "url", "programs that are loaded already see the load to a server of theirs only: write its address")
	wrong(own && o.ResolveEach, "resolve_each", "tare's own programs lead services to one address: leave it out, or choose programs")
	wrong(o.Timeout > maxRequest, "timeout", fmt.Sprintf("%v is not a time for one request: up to %v is allowed", o.Timeout, maxRequest))
	wrong(o.Case == record.CaseQuota && o.CPUs == 0, "cpus", "quota needs a CPU limit: write one, such as 1")
	for i, n := range o.Connections {
		if n < o.Instances {
			all = append(all, option.Wrongf("connections", "%d are fewer than the %d clients that share them", n, o.Instances).At(i))
		}
	}
	return all
}

// Ahead returns the expected duration. Each point is measured with and without
// statistics.
func (o *Options) Ahead(int) terms.Ahead {
	a := terms.Ahead{Budget: o.Budget}
	a.Takes(float64(o.Rounds)*float64(len(o.Services)*len(o.Heavy)*len(o.Connections)), 2*o.Duration+2*o.Idle)
	return a
}

// MarshalJSON encodes the options as in a record.
func (o Options) MarshalJSON() ([]byte, error) { return option.Marshal(&o) }

// UnmarshalJSON decodes the output of MarshalJSON.
func (o *Options) UnmarshalJSON(text []byte) error { return option.Unmarshal(text, o) }
