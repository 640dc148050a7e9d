package kube

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestThrottledRequestsAreCounted(t *testing.T) {
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
	must.OK(t, os.WriteFile(file, []byte(text), 0o600))
	c := must.Get(Connect(Options{Kubeconfig: file}))(t)
	v, err := c.ServerVersion(t.Context())
	must.That(t, err == nil && v.GitVersion == "v1.34.4", "%v, %v", v, err)
	if n := c.Throttled.Load(); n != 2 || c.Context != "lab" || c.Namespace != "own" || c.Config.QPS >= 0 {
		t.Errorf("throttled %d times, context %q, namespace %q, limit %v", n, c.Context, c.Namespace, c.Config.QPS)
	}
}

func TestRefusalNamesItsSource(t *testing.T) {
	t.Parallel()
	forbidden := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New(why))
	}
	for want, err := range map[string]error{
		"a Role must allow it":            forbidden(`User "tare" cannot create resource "pods" in API group "" in the namespace "own"`),
		"ResourceQuota":                   forbidden("exceeded quota: small, requested: pods=1"),
		"admission controller":            forbidden(`violates PodSecurity "restricted:latest"`),
		"does not accept the credentials": apierrors.NewUnauthorized("token expired"),
	} {
		got := Explain(err, "create the pod")
		check.That(t, errors.Is(got, err) && strings.HasPrefix(got.Error(), "create the pod: ") && strings.Contains(got.Error(), want), "%v, want %q", got, want)
	}
	check.That(t, Explain(nil, "nothing") == nil, "Explain(nil) returned an error")
}

func TestCallsMatchTheKubernetesAPI(t *testing.T) {
	t.Parallel()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	t.Cleanup(server.Close)
	a := must.Get(NewAPI(&rest.Config{Host: server.URL}))(t)
	labelled := metav1.ListOptions{LabelSelector: "a=b"}
	for want, call := range map[string]func(ctx context.Context) error{
		"GET /api/v1/pods?labelSelector=a%3Db": func(ctx context.Context) error { _, err := a.Pods("").List(ctx, labelled); return err },
		"GET /api/v1/namespaces/n/events?labelSelector=a%3Db&watch=true": func(ctx context.Context) error {
			w, err := a.Events("n").Watch(ctx, labelled)
			if err == nil {
				w.Stop()
			}
			return err
		},
		"GET /api/v1/namespaces/n/pods/p/log?container=c": func(ctx context.Context) error {
			return a.Pods("n").GetLogs("p", &corev1.PodLogOptions{Container: "c"}).Do(ctx).Error()
		},
		"POST /apis/batch/v1/namespaces/n/jobs?dryRun=All": func(ctx context.Context) error {
			_, err := a.Jobs("n").Create(ctx, new(batchv1.Job), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		},
		"DELETE /api/v1/namespaces/n/configmaps/p": func(ctx context.Context) error {
			return a.ConfigMaps("n").Delete(ctx, "p", metav1.DeleteOptions{})
		},
		"GET /api/v1/nodes/p": func(ctx context.Context) error { _, err := a.Nodes().Get(ctx, "p", metav1.GetOptions{}); return err },
		"GET /apis/node.k8s.io/v1/runtimeclasses/p": func(ctx context.Context) error {
			_, err := a.RuntimeClasses().Get(ctx, "p", metav1.GetOptions{})
			return err
		},
		"PATCH /apis/coordination.k8s.io/v1/namespaces/n/leases/p": func(ctx context.Context) error {
			_, err := a.Leases("n").Patch(ctx, "p", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
			return err
		},
		"POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews": func(ctx context.Context) error {
			_, err := a.AccessReviews().Create(ctx, new(authorizationv1.SelfSubjectAccessReview), metav1.CreateOptions{})
			return err
		},
	} {
		err := call(t.Context())
		check.That(t, err == nil && asked == want, "got request %s (%v), want %s", asked, err, want)
	}
}
