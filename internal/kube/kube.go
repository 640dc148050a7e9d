// Package kube reaches a Kubernetes cluster as kubectl does, and says what its
// refusals mean. What is asked of a cluster is the business of those who ask.
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

// Options say which cluster. What is empty is as kubectl has it: $KUBECONFIG, else
// ~/.kube/config, else the service account of the pod that this runs in.
type Options struct {
	Kubeconfig string
	Context    string
	Namespace  string
}

// Client is a cluster that can be asked.
type Client struct {
	API
	Config    *rest.Config
	Context   string        // of the kubeconfig, "" where there is none
	Namespace string        // in which everything of tare is made
	Throttled *atomic.Int64 // how often the server answered 429: client-go then waits as long as it is told to
}

// Connect makes a client, without a request. It holds no request back: what
// client-go holds back by itself, five a second, would be measured as the cluster's.
func Connect(o Options) (*Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	over := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	over.Context.Namespace = o.Namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, over)
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("which cluster: %w; name a file by --kubeconfig or $KUBECONFIG, and one of its contexts by --context", err)
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

// ServerVersion asks which Kubernetes it is.
func (c *Client) ServerVersion(ctx context.Context) (*version.Info, error) {
	text, err := c.REST().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	v := new(version.Info)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, fmt.Errorf("its answer is no version: %w", err)
	}
	return v, nil
}

// counting counts answers of 429, which client-go itself only waits out.
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

// Explain says what was tried when a request failed, and what would change it. It
// keeps err. nil stays nil.
func Explain(err error, tried string) error {
	if err == nil {
		return nil
	}
	advice := ""
	var status apierrors.APIStatus
	var unreachable *url.Error
	switch {
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota"):
		advice = "take fewer at once, or a namespace whose ResourceQuota allows as many"
	case apierrors.IsForbidden(err) && !strings.Contains(err.Error(), " cannot "):
		advice = "an admission controller of the cluster refused it, whatever the Role allows" // which words it so: User "u" cannot create resource "pods"
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		advice = "a Role has to allow it; docs/kubernetes.md has the smallest that does"
		if d := status.Status().Details; d != nil && status.Status().Reason == metav1.StatusReasonForbidden {
			advice = fmt.Sprintf("this is about %s; %s", schema.GroupResource{Group: d.Group, Resource: d.Kind}, advice)
		}
	case apierrors.IsUnauthorized(err):
		advice = "the cluster does not know the user of this kubeconfig, or no longer"
	case errors.As(err, &unreachable) && !errors.Is(err, context.Canceled):
		advice = "is the API server up, and reachable from here? `kubectl version` asks the same"
		if _, unknown := errors.AsType[*net.DNSError](err); unknown {
			advice = "the server's name of the kubeconfig is not known here"
		}
	}
	if advice == "" {
		return fmt.Errorf("%s: %w", tried, err)
	}
	return fmt.Errorf("%s: %w; %s", tried, err, advice)
}

// Exec runs a command in a container, as kubectl exec does (WebSocket, Kubernetes 1.30),
// until it ends, the connection breaks, or ctx is done.
func (c *Client) Exec(ctx context.Context, pod, container string, command []string, stdout, stderr io.Writer) error {
	request := c.REST().Get().Resource("pods").Namespace(c.Namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, params)
	e, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return err
	}
	return e.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: stdout, Stderr: stderr})
}

// client-go logs and passes on warnings of servers as they come, to the standard error
// stream: what matters of that is in errors, and whatever is printed is cleaned first.
func init() {
	klog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}
