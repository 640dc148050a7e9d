package load

import (
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// kinds is how many reasons of failure are told apart; the rest are "other".
const kinds = 32

// longestReason is how much of one is kept, bytes.
const longestReason = 200

// failures counts errors by reason. It is also what fortio's log writes to, since
// its client says nowhere else why there was no answer.
type failures struct {
	lock    sync.Mutex
	counts  map[string]int64
	connect atomic.Int64 // connections that were tried and not made
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

// reasons are what fortio's client logs where it gives no answer, and what that is
// called here. Whatever else it logs is not in place of an answer.
var reasons = map[string]string{
	"Unable to connect":          "no connection",
	"Unable to TLS connect":      "no connection",
	"Unable to resolve hostname": "no address",
	"Unable to write":            "request not taken",
	"Short write":                "request not taken",
	"Read error":                 "no answer",
	"Timeout error (incomplete/invalid response)": late,
}

// late is the reason of requests that had no answer within the time-out.
const late = "no answer in time"

// Write takes one line of fortio's log at level error, which is JSON.
func (f *failures) Write(line []byte) (int, error) {
	var said struct {
		Message string `json:"msg"`
		Reason  string `json:"err"`
	}
	if json.Unmarshal(line, &said) != nil {
		return len(line), nil
	}
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

// withoutAddresses takes off what differs from one connection to the next: the
// first part of "read tcp 127.0.0.1:4711->127.0.0.1:80: connection reset by peer".
func withoutAddresses(reason string) string {
	for _, verb := range []string{"dial ", "read ", "write "} {
		if strings.HasPrefix(reason, verb) {
			if _, rest, ok := strings.Cut(reason, ": "); ok {
				return rest
			}
		}
	}
	return reason
}

func (f *failures) snapshot() map[string]int64 {
	f.lock.Lock()
	defer f.lock.Unlock()
	return maps.Clone(f.counts)
}
