package kube

import (
	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// client-go logs and passes on warnings of servers as they come, to the standard error
// stream: what matters of that is in errors, and whatever is printed is cleaned first.
func init() {
	klog.SetLogger(logr.Discard())
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
}
