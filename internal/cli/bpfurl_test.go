package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/bpf"
	"github.com/tare-bench/tare/internal/testing/must"
)

// Somebody else's server is reached through a service of the reference datapath, by
// its own name, and every connection is one run of the lookup that found it.
func TestSomebodyElsesServerIsBehindAServiceOfTheReferenceDatapath(t *testing.T) {
	needRoot(t)
	var asked atomic.Value
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		asked.Store(r.Host + r.URL.RequestURI())
	}))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	for _, verb := range []string{"load", "memory"} {
		t.Run(verb, func(t *testing.T) {
			place(t)
			requests.Store(0)
			args := append([]string{"bpf", verb, "--url", "http://localhost:" + port + "/a?b=c"}, quick...)
			ends(t, ExitDone, "", args...)
			if got := asked.Load(); got != "localhost:"+port+"/a?b=c" {
				t.Errorf("the server was asked for %v", got)
			}
			sent := int64(0)
			for _, p := range loaded(t).Points {
				if p.Sent == nil {
					continue
				}
				sent += p.Sent.Requests
				for _, r := range p.Runs {
					// Without statistics of its own it counts those of the time that others had them on.
					if r.Name == "tare_connect4" && p.Asked.Statistics && r.Count != p.Sent.Sockets {
						t.Errorf("%d runs of the lookup, %d connections", r.Count, p.Sent.Sockets)
					}
				}
			}
			if sent == 0 || sent != requests.Load() {
				t.Errorf("%d requests were sent, the server had %d", sent, requests.Load())
			}
		})
	}
}

// What a server on this machine needs is asked for where there is one.
func TestThePlansServerIsOnThisMachineWhereItsAddressIs(t *testing.T) {
	for text, want := range map[string]bool{"127.0.0.1": true, "127.9.9.9": true, "::1": true, "0.0.0.0": true, "192.0.2.1": false, "2001:db8::1": false} {
		if got, err := here(netip.MustParseAddr(text)); err != nil || got != want {
			t.Errorf("%s is here: %v, %v", text, got, err)
		}
	}
	own, err := net.InterfaceAddrs()
	if err != nil || len(own) == 0 {
		t.Fatalf("%v: %v", own, err)
	}
	for _, a := range own {
		if got, err := here(netip.MustParsePrefix(a.String()).Addr()); err != nil || !got {
			t.Errorf("%s is here: %v, %v", a, got, err)
		}
	}
	// 192.0.2.1 is nobody's (RFC 5737), and needs no queue as long as its connections.
	p := bpf.DefaultsOfLoad()
	text := must.Read(t, "/proc/sys/net/core/somaxconn")
	queue, err := strconv.Atoi(strings.TrimSpace(text))
	must.OK(t, err)
	p.Connections, p.KeepAlive = []int{queue + 1}, true
	for _, url := range []string{"", "http://localhost:8080/"} {
		p.URL = url
		if err := enoughFor(context.Background(), &p); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("--connections: %d connections", queue+1)) {
			t.Errorf("a server here (%s): %v", url, err)
		}
	}
	p.URL = "http://192.0.2.1/"
	if err := enoughFor(context.Background(), &p); err != nil && strings.Contains(err.Error(), "somaxconn") {
		t.Errorf("a server elsewhere: %v", err)
	}
}

func TestMeasuringProgramsHasNoRolesToExplain(t *testing.T) {
	for _, verb := range []string{"load", "quota", "memory"} {
		if _, out, _ := tare(t, "bpf", verb, "--help"); strings.Contains(out, "--explain") || !strings.Contains(out, "--verbose") || !strings.Contains(out, "for one request") {
			t.Errorf("%s offers it:\n%s", verb, out)
		}
	}
}

func TestARunOfProgramsThatAreNotThereIsAnError(t *testing.T) {
	needRoot(t)
	place(t)
	code, out, _ := tare(t, append([]string{"bpf", "load", "--name", "tare_no_such", "--url", "http://127.0.0.1:1/"}, quick...)...)
	if code != ExitUsage || !strings.Contains(strings.Join(strings.Fields(out), " "), "no program is loaded that was chosen") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if f := loaded(t).Findings; codeOf(0, f) == ExitDone {
		t.Errorf("findings %+v", f)
	}
}
