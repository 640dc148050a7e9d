package fleet

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tare-bench/tare/internal/kube"
)

// right is what a run has to be allowed.
type right struct {
	group, resource string // a resource with its subresource
	verbs           []string
}

// rights are those of a run. Nodes are of the cluster, all others of the namespace. That
// of docs/kubernetes.md has them, too, with those of tare clean --kube.
var rights = []right{
	{"", "nodes", []string{"get"}},
	{"", "configmaps", []string{"create", "delete"}},
	{"", "pods", []string{"list"}},
	{"", "pods/log", []string{"get"}},
	{"", "events", []string{"list"}},
	{"batch", "jobs", []string{"create", "get", "delete"}},
	{"coordination.k8s.io", "leases", []string{"create", "patch", "delete"}},
}

// fetching is what bringing records here needs beyond that. The server asks for create,
// too, since a connection is made by get.
var fetching = right{"", "pods/exec", []string{"get", "create"}}

// mayAll asks before anything is made whether all of it is allowed: to find out when
// records are to be fetched would be late. It names every verb and resource that is not.
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
				return kube.Explain(err, "ask what is allowed")
			}
			if !answer.Status.Allowed {
				lacks = append(lacks, strings.Trim(fmt.Sprintf("%s %s.%s", verb, r.resource, r.group), "."))
			}
		}
	}
	if lacks != nil {
		return fmt.Errorf("in namespace %s this user may not: %s; a Role has to allow it: docs/kubernetes.md has the smallest that does", f.Namespace, strings.Join(lacks, ", "))
	}
	return nil
}
