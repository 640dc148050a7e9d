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

// What a load may be.
const (
	MaxConnections = 10_000
	MaxRate        = 1_000_000
	MinLoad        = 100 * time.Millisecond
	MaxLoad        = 24 * time.Hour
	MaxAnswer      = time.Hour

	maxAddress = 2048
	loadExec   = "exec:" // begins a load that is a command in the sandbox
)

// Load is what a workload is asked while it is weighed.
type Load struct {
	URL         string  // http://:PORT/PATH of the workload's own, or exec:/PROGRAM ARG… in its sandbox
	Connections int     // at once
	Rate        float64 // requests a second, due at fixed times; 0: a closed loop
	Anew        bool    // a new connection for each request
	Duration    time.Duration
	Answer      time.Duration // until a request has failed
}

// Filled is the load with what it does not say.
func (l Load) Filled() Load {
	l.Connections, l.Duration, l.Answer = cmp.Or(l.Connections, 10), cmp.Or(l.Duration, 10*time.Second), cmp.Or(l.Answer, 3*time.Second)
	return l
}

// DeclareLoad declares it; check says what is wrong with where it goes.
func (l *Load) DeclareLoad(s *option.Set, help string, check func(string) error) {
	option.Text(s, &l.URL, "load", help, option.OmitEmpty, option.Must(check))
	option.Int(s, &l.Connections, "connections", "of the load, at once (default: 10)", option.Flag("connections", "c"), option.OmitEmpty, option.NoDefault, option.Bounds(1, MaxConnections, "a number of connections"))
	option.Var(s, &l.Rate, "rate", "requests per second, due at fixed times and counted from then (open loop); 0: each connection asks again when it has its answer", option.Number,
		option.OmitEmpty, option.Bounds(0, MaxRate, "a rate", ", 0 for as many as it can"))
	option.Bool(s, &l.Anew, "new_connections", "a new connection for each request, instead of many requests on one", option.OmitEmpty)
	option.Time(s, &l.Duration, "duration", "of the load (default: 10s)", option.Flag("time", "t"), option.OmitEmpty, option.NoDefault, option.Bounds(MinLoad, MaxLoad, "a load"))
	option.Time(s, &l.Answer, "answer_timeout", "for one request; what is not answered by then has failed (default: 3s)", option.OmitEmpty, option.NoDefault, option.Bounds(time.Millisecond, MaxAnswer, "a time to wait"))
}

// CheckHTTPLoad takes http://:PORT/PATH.
func CheckHTTPLoad(s string) error {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.Hostname() != "" || u.Port() == "" || len(s) > maxAddress {
		return fmt.Errorf("%s is not an address of the workload's own: write one such as http://:8080/", option.Quote(s))
	}
	return nil
}

// CheckLoad takes exec:/PROGRAM ARG… as well.
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

// LoadCommand are the words of exec:/PROGRAM ARG…, quoted as for a shell, of which there is
// none; is says that the load is one. There are no words where a quote has no end.
func LoadCommand(s string) (words []string, is bool) {
	rest, is := strings.CutPrefix(s, loadExec)
	if !is {
		return nil, false
	}
	words, _ = setting.Words(rest)
	return words, true
}

// Serve has tare's probe answer the load, where nobody said what does.
func (l *Load) Serve(w *setting.Workload) {
	if u, err := url.Parse(l.URL); err == nil && u.Scheme == "http" && u.Port() != "" && !w.Is() {
		w.Command = []string{setting.Probe, "serve", u.Port()}
	}
}

// WhenReady is how the workload is asked whether it is ready: as the user says, else by
// the load's own request.
func (l *Load) WhenReady(asked setting.Ready) setting.Ready {
	u, err := url.Parse(l.URL)
	switch {
	case asked != "" || err != nil || u.Port() == "": // what is wrong with a load is told of it
		return asked
	case u.Scheme == "https":
		return setting.Ready("tcp:" + u.Port())
	}
	u.Fragment = ""
	return setting.Ready("http:" + u.Port() + u.RequestURI() + "=200")
}
