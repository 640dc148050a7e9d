package podman

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
)

// pretend serves on a unix socket what a broken service might.
func pretend(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	socket, _ := pretender(t, serve)
	return socket
}

func pretender(t *testing.T, serve http.HandlerFunc) (string, *httptest.Server) {
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
	return socket, server
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
		_, err := New(t.Context(), "podman+api/crun", "crun", ViaAPI, subject.Engine{Address: pretend(t, c.serve)})
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

func TestConnectionsAreWarmedAtTheReleaseNotWhenArmed(t *testing.T) {
	i, err := image.Probe()
	if err != nil {
		t.Fatal(err)
	}
	var asked struct {
		sync.Mutex
		paths []string
	}
	socket, server := pretender(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Lock()
		asked.paths = append(asked.paths, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		asked.Unlock()
		w.Header().Set("Libpod-Api-Version", "4.3.1")
		switch {
		case strings.Contains(r.URL.Path, "/images/"):
			fmt.Fprintf(w, `{"Id":%q}`, i.ID)
		case strings.HasSuffix(r.URL.Path, "/create"):
			w.WriteHeader(http.StatusCreated)
		case strings.HasSuffix(r.URL.Path, "/json"):
			w.WriteHeader(http.StatusNotFound)
		}
	})
	c, err := connect(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	s, err := (&Service{name: "podman+api", client: c, image: i, network: subject.NetworkNone}).Open(t.Context(), environment(t, "warm", 3))
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Prepare(t.Context(), subject.Create, []int{0, 1, 2})
	if err != nil {
		t.Fatal(err)
	}
	server.CloseClientConnections() // a service that was idle for too long
	asked.Lock()
	asked.paths = nil
	asked.Unlock()
	if _, _, err := b.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked.Lock()
	defer asked.Unlock()
	if want := []string{"_ping", "_ping", "_ping", "create", "create", "create"}; len(asked.paths) < 6 || !slices.Equal(asked.paths[:6], want) {
		t.Errorf("%q", asked.paths)
	}
}
