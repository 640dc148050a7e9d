package kube

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatAServerHoldsBackIsCounted(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"gitVersion": "v1.34.4"}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{apiVersion: v1, kind: Config, current-context: lab, contexts: [{name: lab, context: {cluster: c, namespace: own}}], clusters: [{name: c, cluster: {server: "` + server.URL + `"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Connect(Options{Kubeconfig: file})
	if err != nil {
		t.Fatal(err)
	}
	if v, err := c.ServerVersion(t.Context()); err != nil || v.GitVersion != "v1.34.4" {
		t.Fatalf("%v, %v", v, err)
	}
	if n := c.Throttled.Load(); n != 2 || c.Context != "lab" || c.Namespace != "own" || c.Config.QPS >= 0 {
		t.Errorf("held back %d times, context %q, namespace %q, limit %v", n, c.Context, c.Namespace, c.Config.QPS)
	}
}

func TestARefusalIsExplainedByWhoRefused(t *testing.T) {
	t.Parallel()
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(why))
	}
	for want, err := range map[string]error{
		"a Role has to allow it": forbidden(`User "tare" cannot create resource "pods" in API group "" in the namespace "own"`),
		"ResourceQuota":          forbidden("exceeded quota: small, requested: pods=1"),
		"admission controller":   forbidden(`violates PodSecurity "restricted:latest"`),
		"does not know the user": apierrors.NewUnauthorized("token expired"),
	} {
		if got := Explain(err, "create the pod"); !errors.Is(got, err) || !strings.HasPrefix(got.Error(), "create the pod: ") || !strings.Contains(got.Error(), want) {
			t.Errorf("%v, want %q", got, want)
		}
	}
	if Explain(nil, "nothing") != nil {
		t.Error("nothing is an error")
	}
}
