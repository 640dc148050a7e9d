package kube

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// API is the part of the Kubernetes API that tare uses, with the signatures of client-go's
// clientset. The clientset itself has all kinds of all groups and made tare half as large
// again.
type API interface {
	Pods(namespace string) Pods
	ConfigMaps(namespace string) Objects[*corev1.ConfigMap, *corev1.ConfigMapList]
	Events(namespace string) Objects[*corev1.Event, *corev1.EventList]
	Nodes() Objects[*corev1.Node, *corev1.NodeList]
	Jobs(namespace string) Objects[*batchv1.Job, *batchv1.JobList]
	Leases(namespace string) Objects[*coordinationv1.Lease, *coordinationv1.LeaseList]
	RuntimeClasses() Objects[*nodev1.RuntimeClass, *nodev1.RuntimeClassList]
	AccessReviews() Creator[*authorizationv1.SelfSubjectAccessReview]
	REST() rest.Interface // for paths without a typed client here
}

// Objects is a client for the objects of a kind, with the list type L. It covers one
// namespace, all for "", or cluster-scoped kinds.
type Objects[T, L runtime.Object] interface {
	Creator[T]
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// Creator creates objects of a kind.
type Creator[T runtime.Object] interface {
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
}

// Pods is a client for pods and their logs.
type Pods interface {
	Objects[*corev1.Pod, *corev1.PodList]
	GetLogs(name string, o *corev1.PodLogOptions) *rest.Request
}

// The known kinds and their codecs.
var (
	kinds  = Kinds()
	codecs = rest.CodecFactoryForGeneratedClient(kinds, serializer.NewCodecFactory(kinds)).WithoutConversion()
	params = runtime.NewParameterCodec(kinds)
)

// Kinds returns a scheme of the kinds that tare uses.
func Kinds() *runtime.Scheme {
	s := runtime.NewScheme()
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	for _, add := range []func(*runtime.Scheme) error{
		authorizationv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, nodev1.AddToScheme,
	} {
		utilruntime.Must(add(s))
	}
	return s
}

// api implements API over HTTP, with one client per API group.
type api map[schema.GroupVersion]rest.Interface

// NewAPI returns the API of the configured cluster. It makes no request.
func NewAPI(config *rest.Config) (API, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	a := api{}
	for _, group := range kinds.PrioritizedVersionsAllGroups() {
		own := *config
		own.GroupVersion, own.NegotiatedSerializer, own.APIPath = &group, codecs, "/apis"
		if group.Group == "" {
			own.APIPath = "/api"
		}
		if a[group], err = rest.RESTClientForConfigAndClient(&own, client); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a api) REST() rest.Interface { return a[corev1.SchemeGroupVersion] }

func (a api) Pods(namespace string) Pods {
	return pods{Of[corev1.Pod, corev1.PodList](a.REST(), "pods", namespace), a.REST(), namespace}
}

func (a api) ConfigMaps(namespace string) Objects[*corev1.ConfigMap, *corev1.ConfigMapList] {
	return Of[corev1.ConfigMap, corev1.ConfigMapList](a.REST(), "configmaps", namespace)
}

func (a api) Events(namespace string) Objects[*corev1.Event, *corev1.EventList] {
	return Of[corev1.Event, corev1.EventList](a.REST(), "events", namespace)
}

func (a api) Nodes() Objects[*corev1.Node, *corev1.NodeList] {
	return Of[corev1.Node, corev1.NodeList](a.REST(), "nodes", "")
}

func (a api) Jobs(namespace string) Objects[*batchv1.Job, *batchv1.JobList] {
	return Of[batchv1.Job, batchv1.JobList](a[batchv1.SchemeGroupVersion], "jobs", namespace)
}

func (a api) Leases(namespace string) Objects[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return Of[coordinationv1.Lease, coordinationv1.LeaseList](a[coordinationv1.SchemeGroupVersion], "leases", namespace)
}

func (a api) RuntimeClasses() Objects[*nodev1.RuntimeClass, *nodev1.RuntimeClassList] {
	return Of[nodev1.RuntimeClass, nodev1.RuntimeClassList](a[nodev1.SchemeGroupVersion], "runtimeclasses", "")
}

func (a api) AccessReviews() Creator[*authorizationv1.SelfSubjectAccessReview] {
	return Of[authorizationv1.SelfSubjectAccessReview, metav1.Status](a[authorizationv1.SchemeGroupVersion], "selfsubjectaccessreviews", "")
}

// object is a pointer to a T that can be sent and received.
type object[T any] interface {
	*T
	runtime.Object
}

// objects implements Objects.
type objects[T, L any, P object[T], Q object[L]] struct {
	client              rest.Interface
	resource, namespace string
}

// Of returns a client for the objects of a kind of [Kinds], by the REST client of its
// group.
func Of[T, L any, P object[T], Q object[L]](client rest.Interface, resource, namespace string) Objects[P, Q] {
	return objects[T, L, P, Q]{client, resource, namespace}
}

// at sets the resource of a request, and the protobuf encoding.
func (o objects[T, L, P, Q]) at(r *rest.Request) *rest.Request {
	return r.UseProtobufAsDefault().NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource)
}

func (o objects[T, L, P, Q]) Create(ctx context.Context, object P, options metav1.CreateOptions) (P, error) {
	made := P(new(T))
	return made, o.at(o.client.Post()).VersionedParams(&options, params).Body(object).Do(ctx).Into(made)
}

func (o objects[T, L, P, Q]) Get(ctx context.Context, name string, options metav1.GetOptions) (P, error) {
	found := P(new(T))
	return found, o.at(o.client.Get()).Name(name).VersionedParams(&options, params).Do(ctx).Into(found)
}

func (o objects[T, L, P, Q]) List(ctx context.Context, options metav1.ListOptions) (Q, error) {
	list := Q(new(L))
	return list, o.at(o.client.Get()).VersionedParams(&options, params).Do(ctx).Into(list)
}

func (o objects[T, L, P, Q]) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return o.at(o.client.Get()).VersionedParams(&options, params).Watch(ctx)
}

func (o objects[T, L, P, Q]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options metav1.PatchOptions, subresources ...string) (P, error) {
	patched := P(new(T))
	return patched, o.at(o.client.Patch(kind)).Name(name).SubResource(subresources...).VersionedParams(&options, params).Body(patch).Do(ctx).Into(patched)
}

func (o objects[T, L, P, Q]) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	return o.at(o.client.Delete()).Name(name).Body(&options).Do(ctx).Error()
}

type pods struct {
	Objects[*corev1.Pod, *corev1.PodList]
	client    rest.Interface
	namespace string
}

func (p pods) GetLogs(name string, options *corev1.PodLogOptions) *rest.Request {
	return p.client.Get().Namespace(p.namespace).Resource("pods").Name(name).SubResource("log").VersionedParams(options, params)
}
