package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestEachCallIsTheRequestThatKubernetesDocuments(t *testing.T) {
	t.Parallel()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.String()
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
	}))
	t.Cleanup(server.Close)
	a, err := NewAPI(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
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
		if err := call(t.Context()); err != nil || asked != want {
			t.Errorf("%s, %v, not %s", asked, err, want)
		}
	}
}
