// Package kube connects to a Kubernetes cluster like kubectl, and explains its errors. Its
// callers define the requests.
package kube

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/klog/v2"

	own "github.com/tare-bench/tare/internal/version"
)

// Options select the cluster. Empty fields have kubectl's defaults: $KUBECONFIG, else
// ~/.kube/config, else the service account of the pod.
type Options struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// Client is a client of a cluster.
type Client struct {
	API
	Config    *rest.Config
	Context   string        // of the kubeconfig, or ""
	Namespace string        // of all objects that tare creates
	Throttled *atomic.Int64 // number of 429 responses, after which client-go waits as requested
}

// Connect returns a client without a rate limit. It makes no request. client-go's default
// limit of five requests per second would be measured as latency of the cluster.
func Connect(o Options) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	over := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	over.Context.Namespace = o.Namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, over)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("which cluster: %w; set --kubeconfig or $KUBECONFIG, and select a context with --context", err)
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, fmt.Errorf("which namespace: %w", err)
	}
	raw, err := loaded.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("which context: %w", err)
	}
	c := &Client{Config: config, Context: cmp.Or(o.Context, raw.CurrentContext), Namespace: namespace, Throttled: new(atomic.Int64)}
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "tare/" + own.String()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counting{next, c.Throttled} })
	if c.API, err = NewAPI(config); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return c, nil
}

// ServerVersion returns the version of the API server.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	text, err := c.REST().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	v := new(version.Info)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("invalid version in its response: %w", err)
	}
	return v, nil
}

// counting counts 429 responses, which client-go handles by waiting.
type counting struct {
	http.RoundTripper
	throttled *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := c.RoundTripper.RoundTrip(r)
	if err == nil && reply.StatusCode == http.StatusTooManyRequests {
		c.throttled.Add(1)
	}
	return reply, err
}

// Explain adds the failed operation and advice to an error, which it wraps. It returns nil
// for nil.
func Explain(err error, tried string) error {
	if err == nil {
		return nil
	}
	advice := ""
	var status apierrors.APIStatus
	var unreachable *url.Error
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		advice = "use fewer at once, or a namespace with a larger ResourceQuota"
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), " cannot "):
		advice = "an admission controller of the cluster rejected it, independent of the Role" // RBAC errors read: User "u" cannot create resource "pods"
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		advice = "a Role must allow it; docs/kubernetes.md has the minimal one"
		if d := status.Status().Details; d != nil && status.Status().Reason == metav1.StatusReasonForbidden {
			advice = fmt.Sprintf("the resource is %s; %s", schema.GroupResource{Group: d.Group, Resource: d.Kind}, advice)
		}
	case apierrors.IsUnauthorized(err):
		advice = "the cluster does not accept the credentials of this kubeconfig"
	case errors.As(err, &unreachable) && !errors.Is(err, context.Canceled):
		advice = "is the API server running and reachable? check with `kubectl version`"
		if _, unknown := errors.AsType[*net.DNSError](err); unknown {
			advice = "the server name in the kubeconfig cannot be resolved here"
		}
	}
	if advice == "" {
		return fmt.Errorf("%s: %w", tried, err)
	}
	return fmt.Errorf("%s: %w; %s", tried, err, advice)
}

// Exec runs a command in a container, like kubectl exec (WebSocket, Kubernetes 1.30), until
// it ends, the connection breaks, or ctx is done.
func (c *Client) Exec(ctx context.Context, pod, container string, command []string, stdout, stderr io.Writer) error {
	request := c.REST().Get().Resource("pods").Namespace(c.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, params)
	e, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
}

// client-go logs and server warnings would go to stderr. Relevant ones are in errors, and
// output must be cleaned before it is printed.
func init() {
	klog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}
