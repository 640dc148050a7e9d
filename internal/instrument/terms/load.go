package terms

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Bounds of a load.
const (
	MaxConnections = 10_000
	MaxRate        = 1_000_000
	MinLoad        = 100 * time.Millisecond
	MaxLoad        = 24 * time.Hour
	MaxAnswer      = time.Hour

	maxAddress = 2048
	loadExec   = "exec:" // prefix of a load that is a command in the sandbox
)

// Load is the load on a workload during a measurement.
type Load struct {
	URL         string  // http://:PORT/PATH of the workload, or exec:/PROGRAM ARG… in its sandbox
	Connections int     // concurrent connections
	Rate        float64 // requests per second at fixed times (open loop); 0: closed loop
	Anew        bool    // a new connection for each request
	Duration    time.Duration
	Answer      time.Duration // timeout of a request
}

// Filled returns the load with defaults for unset fields.
func (l Load) Filled() Load {
	l.Connections, l.Duration, l.Answer = cmp.Or(l.Connections, 10), cmp.Or(l.Duration, 10*time.Second), cmp.Or(l.Answer, 3*time.Second)
	return l
}

// DeclareLoad declares the load. check validates its address.
func (l *Load) DeclareLoad(s *option.Set, help string, check func(string) error) {
	option.Text(s, &l.URL, "load", help, option.OmitEmpty, option.Must(check))
	option.Int(s, &l.Connections, "connections", "concurrent connections of the load (default: 10)", option.Flag("connections", "c"), option.OmitEmpty, option.NoDefault, option.Bounds(1, MaxConnections, "a number of connections"))
	option.Var(s, &l.Rate, "rate", "requests per second at fixed times, with latency counted from the due time (open loop); 0: each connection waits for a response before its next request (closed loop)", option.Number,
		option.OmitEmpty, option.Bounds(0, MaxRate, "a rate", ", 0 for a closed loop"))
	option.Bool(s, &l.Anew, "new_connections", "open a new connection for each request", option.OmitEmpty)
	option.Time(s, &l.Duration, "duration", "duration of the load (default: 10s)", option.Flag("time", "t"), option.OmitEmpty, option.NoDefault, option.Bounds(MinLoad, MaxLoad, "a load"))
	option.Time(s, &l.Answer, "answer_timeout", "timeout of a request (default: 3s)", option.OmitEmpty, option.NoDefault, option.Bounds(time.Millisecond, MaxAnswer, "a time to wait"))
}

// CheckHTTPLoad accepts http://:PORT/PATH and https.
func CheckHTTPLoad(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() != "" || u.Port() == "" || len(s) > maxAddress {
		return fmt.Errorf("%s is not an address of the workload: write one such as http://:8080/", option.Quote(s))
	}
	return nil
}

// CheckLoad also accepts exec:/PROGRAM ARG….
func CheckLoad(s string) error {
	words, is := LoadCommand(s)
	switch {
	case !is:
		return CheckHTTPLoad(s)
	case len(words) == 0 || !path.IsAbs(words[0]) || len(s) > maxAddress || strings.ContainsRune(s, 0):
		return fmt.Errorf("%s names no program: write its absolute path in the sandbox and its arguments, quoted as for a shell, such as exec:/usr/bin/ab -n 1000 http://127.0.0.1:8080/", option.Quote(s))
	}
	return nil
}

// LoadCommand splits the command of exec:/PROGRAM ARG… into words. Words may be quoted as for a
// shell, but no shell runs. is reports whether the load is a command. words is nil if a quote is
// not closed.
func LoadCommand(s string) (words []string, is bool) {
	rest, is := strings.CutPrefix(s, loadExec)
	if !is {
		return nil, false
	}
	words, _ = setting.Words(rest)
	return words, true
}

// Serve sets the workload to tare's probe if the load is HTTP and no workload is set.
func (l *Load) Serve(w *setting.Workload) {
	if u, err := url.Parse(l.URL); err == nil && u.Scheme == "http" && u.Port() != "" && !w.Is() {
		w.Command = []string{setting.Probe, "serve", u.Port()}
	}
}

// WhenReady returns the readiness check: the user's, or else a request of the load.
func (l *Load) WhenReady(asked setting.Ready) setting.Ready {
	u, err := url.Parse(l.URL)
	switch {
	case asked != "" || err != nil || u.Port() == "": // an invalid load is reported elsewhere
		return asked
	case u.Scheme == "https":
		return setting.Ready("tcp:" + u.Port())
	}
	u.Fragment = ""
	return setting.Ready("http:" + u.Port() + u.RequestURI() + "=200")
}
