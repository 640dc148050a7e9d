package podman

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/target"
)

// pretend serves on a unix socket what a broken service might.
func pretend(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(serve)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return socket
}

func TestWhatIsNoServiceOfPodmansIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		serve      http.HandlerFunc
	}{
		{"Docker's daemon", "is not podman's service", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Api-Version", "1.41") }},
		{"a version that would lead elsewhere", "is not podman's service", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Libpod-Api-Version", "4/../../x")
		}},
		{"an error", "is not podman's service", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Libpod-Api-Version", "4.3.1")
			w.WriteHeader(http.StatusInternalServerError)
		}},
		{"info that is none", "no JSON object", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Libpod-Api-Version", "4.3.1")
			if strings.HasSuffix(r.URL.Path, "/info") {
				_, _ = w.Write([]byte("<html>"))
			}
		}},
		{"info that is refused", "permission denied by policy", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Libpod-Api-Version", "4.3.1")
			if strings.HasSuffix(r.URL.Path, "/info") {
				w.WriteHeader(http.StatusForbidden)
				_, _ = w.Write([]byte(`{"cause":"x","message":"permission denied by policy","response":403}`))
			}
		}},
	} {
		_, err := New(t.Context(), "podman+api/crun", "crun", ViaAPI, target.Engine{Address: pretend(t, c.serve)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAnAnswerThatIsNotTheExpectedOneIsAnError(t *testing.T) {
	socket := pretend(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Libpod-Api-Version", "4.3.1")
		switch {
		case strings.HasSuffix(r.URL.Path, "/again/start"):
			w.WriteHeader(http.StatusNotModified)
		case strings.HasSuffix(r.URL.Path, "/hang/start"):
			select {
			case <-r.Context().Done():
			case <-time.After(10 * time.Second):
			}
		case strings.HasSuffix(r.URL.Path, "/long/start"):
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(strings.Repeat("x", 1<<20)))
		}
	})
	c, err := connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"again": "status 304", "hang": "deadline exceeded", "long": "status 500: xxxx"} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := c.do(ctx, request(context.Background(), http.MethodPost, c.path("/containers/"+name+"/start"), nil), http.StatusNoContent)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "POST /v4.3.1/libpod/containers/"+name+"/start") || len(err.Error()) > 2048 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
