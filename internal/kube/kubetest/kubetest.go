// Package kubetest is for tests: a clientset of client-go, such as its fake one, as what
// tare asks of a cluster.
package kubetest

import (
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tare-bench/tare/internal/kube"
)

// Of returns the API of a clientset.
func Of(set kubernetes.Interface) kube.API { return api{set} }

type api struct{ set kubernetes.Interface }

func (a api) REST() rest.Interface { return a.set.CoreV1().RESTClient() }

func (a api) Pods(namespace string) kube.Pods { return a.set.CoreV1().Pods(namespace) }

func (a api) ConfigMaps(namespace string) kube.Objects[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return a.set.CoreV1().ConfigMaps(namespace)
}

func (a api) Events(namespace string) kube.Objects[*corev1.Event, *corev1.EventList] {
	return a.set.CoreV1().Events(namespace)
}

func (a api) Nodes() kube.Objects[*corev1.Node, *corev1.NodeList] { return a.set.CoreV1().Nodes() }

func (a api) Jobs(namespace string) kube.Objects[*batchv1.Job, *batchv1.JobList] {
	return a.set.BatchV1().Jobs(namespace)
}

func (a api) Leases(namespace string) kube.Objects[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return a.set.CoordinationV1().Leases(namespace)
}

func (a api) RuntimeClasses() kube.Objects[*nodev1.RuntimeClass, *nodev1.RuntimeClassList] {
	return a.set.NodeV1().RuntimeClasses()
}

func (a api) AccessReviews() kube.Creator[*authorizationv1.SelfSubjectAccessReview] {
	return a.set.AuthorizationV1().SelfSubjectAccessReviews()
}
