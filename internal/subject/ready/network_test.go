package ready

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
)

// An endless response must fail, although each part arrives in time.
func TestEndlessResponseTimesOut(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Transfer-Encoding", "identity") // the response ends with the connection
		for r.Context().Err() == nil {
			_, _ = w.Write([]byte(": still here\n"))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	}))
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().(*net.TCPAddr).String())
	r := &request{dial: dial{to: at}, is: setting.Readiness{Path: "/", Status: http.StatusOK}, answering: 100 * time.Millisecond}
	done := make(chan error, 1)
	go func() {
		_, err := r.poll(context.Background(), 1)
		done <- err
	}()
	select {
	case err := <-done:
		check.That(t, err != nil, "an endless response counts as ready")
	case <-time.After(time.Minute):
		t.Error("the poll is still waiting")
	}
}
