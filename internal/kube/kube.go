// Package kube reaches a Kubernetes cluster as kubectl does, and says what its
// refusals mean. What is asked of a cluster is the business of those who ask.
package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tare-bench/tare/internal/version"
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
	kubernetes.Interface
	Config    *rest.Config
	Namespace string // in which everything of tare is made
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
	config.QPS, config.Burst = -1, -1
	config.UserAgent = "tare/" + version.String()
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", config.Host, err)
	}
	return &Client{Interface: set, Config: config, Namespace: namespace}, nil
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
	case apierrors.IsForbidden(err) && errors.As(err, &status):
		advice = "a Role has to allow it; docs/kubernetes.md has the smallest that does"
		if d := status.Status().Details; d != nil && status.Status().Reason == metav1.StatusReasonForbidden {
			advice = fmt.Sprintf("this is about %s; %s", resourceOf(d), advice)
		}
	case apierrors.IsUnauthorized(err):
		advice = "the cluster does not know the user of this kubeconfig, or no longer"
	case errors.As(err, &unreachable) && !errors.Is(err, context.Canceled):
		advice = "is the API server up, and reachable from here? `kubectl version` asks the same"
		var dns *net.DNSError
		if errors.As(err, &dns) {
			advice = "the server's name of the kubeconfig is not known here"
		}
	}
	if advice == "" {
		return fmt.Errorf("%s: %w", tried, err)
	}
	return fmt.Errorf("%s: %w; %s", tried, err, advice)
}

func resourceOf(d *metav1.StatusDetails) string {
	if d.Group != "" {
		return d.Kind + "." + d.Group
	}
	return d.Kind
}
