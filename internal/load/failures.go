package load

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	kinds         = 32  // distinct reasons of failure; the rest are "other"
	longestReason = 200 // bytes
)

// failures counts errors by reason. fortio's log writes to it, because only the log has the
// reason for a missing answer.
type failures struct {
	lock    sync.Mutex
	counts  map[string]int64
	connect atomic.Int64 // failed connections
}

func (f *failures) add(why string, n int64) {
	f.lock.Lock()
	defer f.lock.Unlock()
	if f.counts == nil {
		f.counts = map[string]int64{}
	}
	if _, known := f.counts[why]; !known && len(f.counts) >= kinds {
		why = "other"
	}
	f.counts[why] += n
}

// reasons maps the log messages of fortio's client for missing answers to our reasons. Other
// messages do not concern answers.
var reasons = map[string]string{
	"Unable to connect":          "no connection",
	"Unable to TLS connect":      "no connection",
	"Unable to resolve hostname": "no address",
	"Unable to write":            "request not taken",
	"Short write":                "request not taken",
	"Read error":                 "no answer",
	"Timeout error (incomplete/invalid response)": late,
}

const late = "no answer in time" // reason of requests that timed out

// Write counts one line, in JSON, of fortio's log at level error.
func (f *failures) Write(line []byte) (int, error) {
	var said struct {
		Message string `json:"msg"`
		Reason  string `json:"err"`
	}
	_ = json.Unmarshal(line, &said) // other lines have no message
	why, ok := reasons[said.Message]
	if !ok {
		return len(line), nil
	}
	if said.Reason != "" && why != late {
		why += ": " + withoutAddresses(said.Reason)
	}
	if strings.HasPrefix(why, "no connection") {
		f.connect.Add(1)
	}
	f.add(why[:min(len(why), longestReason)], 1)
	return len(line), nil
}

// withoutAddresses removes the part of a reason that differs between connections: the first
// part of "read tcp 127.0.0.1:4711->127.0.0.1:80: connection reset by peer".
func withoutAddresses(reason string) string {
	verb, _, _ := strings.Cut(reason, " ")
	if _, rest, ok := strings.Cut(reason, ": "); ok && slices.Contains([]string{"dial", "read", "write"}, verb) {
		return rest
	}
	return reason
}

func (f *failures) snapshot() map[string]int64 {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.counts)
}
