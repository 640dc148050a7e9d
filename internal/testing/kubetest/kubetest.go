// Package kubetest is an in-memory cluster for tests, with the kinds that tare uses.
// client-go's own fake clientset has every kind of every group and takes a minute to
// compile.
package kubetest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
	"k8s.io/client-go/rest"
	restfake "k8s.io/client-go/rest/fake"
	"k8s.io/client-go/testing"

	"github.com/tare-bench/tare/internal/kube"
)

// Cluster stores its objects in a tracker, which handles the requests that no other
// reactor handles.
type Cluster struct {
	testing.Fake
	Tracker testing.ObjectTracker

	codecs serializer.CodecFactory
}

// New returns a cluster with the given objects.
func New(objects ...runtime.Object) (*Cluster, error) {
	kinds := kube.Kinds()
	c := &Cluster{codecs: serializer.NewCodecFactory(kinds)}
	c.Tracker = testing.NewObjectTracker(kinds, c.codecs.UniversalDecoder())
	for _, o := range objects {
		if err := c.Tracker.Add(o); err != nil {
			return nil, err
		}
	}
	c.AddReactor("*", "*", testing.ObjectReaction(c.Tracker))
	c.AddWatchReactor("*", func(a testing.Action) (bool, watch.Interface, error) {
		w, err := c.Tracker.Watch(a.GetResource(), a.GetNamespace(), a.(testing.WatchActionImpl).ListOptions)
		return err == nil, w, err
	})
	return c, nil
}

// API returns the part of the cluster's API that tare uses.
func (c *Cluster) API() kube.API { return api{c} }

type api struct{ *Cluster }

// REST returns no client.
func (api) REST() rest.Interface { return (*rest.RESTClient)(nil) }

func (a api) Pods(namespace string) kube.Pods {
	return pods{of[corev1.Pod, corev1.PodList](a, corev1.SchemeGroupVersion, "pods", "Pod", namespace), a, namespace}
}

func (a api) ConfigMaps(namespace string) kube.Objects[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return of[corev1.ConfigMap, corev1.ConfigMapList](a, corev1.SchemeGroupVersion, "configmaps", "ConfigMap", namespace)
}

func (a api) Events(namespace string) kube.Objects[*corev1.Event, *corev1.EventList] {
	return of[corev1.Event, corev1.EventList](a, corev1.SchemeGroupVersion, "events", "Event", namespace)
}

func (a api) Nodes() kube.Objects[*corev1.Node, *corev1.NodeList] {
	return of[corev1.Node, corev1.NodeList](a, corev1.SchemeGroupVersion, "nodes", "Node", "")
}

func (a api) Jobs(namespace string) kube.Objects[*batchv1.Job, *batchv1.JobList] {
	return of[batchv1.Job, batchv1.JobList](a, batchv1.SchemeGroupVersion, "jobs", "Job", namespace)
}

func (a api) Leases(namespace string) kube.Objects[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return of[coordinationv1.Lease, coordinationv1.LeaseList](a, coordinationv1.SchemeGroupVersion, "leases", "Lease", namespace)
}

func (a api) RuntimeClasses() kube.Objects[*nodev1.RuntimeClass, *nodev1.RuntimeClassList] {
	return of[nodev1.RuntimeClass, nodev1.RuntimeClassList](a, nodev1.SchemeGroupVersion, "runtimeclasses", "RuntimeClass", "")
}

func (a api) AccessReviews() kube.Creator[*authorizationv1.SelfSubjectAccessReview] {
	group := authorizationv1.SchemeGroupVersion
	return gentype.NewFakeClient(&a.Fake, "", group.WithResource("selfsubjectaccessreviews"), group.WithKind("SelfSubjectAccessReview"),
		func() *authorizationv1.SelfSubjectAccessReview { return new(authorizationv1.SelfSubjectAccessReview) })
}

// object is a pointer to a T with a name.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

type list[L any] interface {
	*L
	runtime.Object
	metav1.ListInterface
}

func of[T, L any, P object[T], Q list[L]](a api, group schema.GroupVersion, resource, kind, namespace string) kube.Objects[P, Q] {
	return gentype.NewFakeClientWithList(&a.Fake, namespace, group.WithResource(resource), group.WithKind(kind),
		func() P { return new(T) }, func() Q { return new(L) },
		func(to, from Q) { to.SetResourceVersion(from.GetResourceVersion()) },
		func(all Q) (items []P) {
			_ = meta.EachListItem(all, func(o runtime.Object) error { items = append(items, o.(P)); return nil })
			return items
		},
		func(all Q, items []P) {
			objects := make([]runtime.Object, len(items))
			for i, o := range items {
				objects[i] = o
			}
			_ = meta.SetList(all, objects)
		})
}

type pods struct {
	kube.Objects[*corev1.Pod, *corev1.PodList]
	api
	namespace string
}

// GetLogs returns the [runtime.Unknown] of a reactor for "get" and "pods/log".
func (p pods) GetLogs(name string, o *corev1.PodLogOptions) *rest.Request {
	action := testing.NewGetSubresourceAction(corev1.SchemeGroupVersion.WithResource("pods"), p.namespace, "log", name)
	client := restfake.RESTClient{NegotiatedSerializer: p.codecs.WithoutConversion(), GroupVersion: corev1.SchemeGroupVersion}
	client.Client = restfake.CreateHTTPClient(func(*http.Request) (*http.Response, error) {
		object, err := p.Invokes(action, &runtime.Unknown{})
		log, ok := object.(*runtime.Unknown)
		if err == nil && !ok {
			err = fmt.Errorf("a log is a runtime.Unknown, not a %T", object)
		}
		if err != nil {
			return nil, err
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(log.Raw))}, nil
	})
	return client.Request()
}
