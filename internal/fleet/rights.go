package fleet

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
)

// right is a permission that a run needs.
type right struct {
	group, resource string // a resource with its subresource
	verbs           []string
}

// rights are the permissions of a run: on nodes in the cluster, on all others in the namespace.
// docs/kubernetes.md has the same list, with those of tare clean --kube.
var rights = []right{
	{"", "nodes", []string{"get"}},
	{"", "configmaps", []string{"create", "delete"}},
	{"", "pods", []string{"list"}},
	{"", "pods/log", []string{"get"}},
	{"", "events", []string{"list"}},
	{"batch", "jobs", []string{"create", "get", "delete"}},
	{"coordination.k8s.io", "leases", []string{"create", "patch", "delete"}},
}

// fetching is the additional permission for fetching records. Connections are made with get,
// and the API server requires create for them too.
var fetching = right{"", "pods/exec", []string{"get", "create"}}

// mayAll checks all permissions before the run creates any object. Its error lists the
// missing ones.
func (f *Fleet) mayAll(ctx context.Context) error {
	all := rights
	if f.Results.Here() {
		all = append(all[:len(all):len(all)], fetching)
	}
	var lacks []string
	for _, r := range all {
		resource, sub, _ := strings.Cut(r.resource, "/")
		namespace := f.Namespace
		if resource == "nodes" {
			namespace = ""
		}
		for _, verb := range r.verbs {
			answer, err := f.Client.AccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: verb, Group: r.group, Resource: resource, Subresource: sub}},
			}, metav1.CreateOptions{})
			if err != nil {
				return kube.Explain(err, "check permissions")
			}
			if !answer.Status.Allowed {
				lacks = append(lacks, strings.Trim(fmt.Sprintf("%s %s.%s", verb, r.resource, r.group), "."))
			}
		}
	}
	if lacks != nil {
		return fmt.Errorf("missing permissions in namespace %s: %s; add them to a Role: docs/kubernetes.md has the minimal one", f.Namespace, strings.Join(lacks, ", "))
	}
	return nil
}
