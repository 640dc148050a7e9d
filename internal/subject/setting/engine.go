package setting

import (
	"os"
	"reflect"
)

// Engine is how to reach an engine and make its containers. Empty values are the defaults of
// the engine's own command line: its environment variable, else its default.
type Engine struct {
	Address   string            `json:"address,omitempty"`   // "unix:///run/docker.sock"; a socket's path is sufficient. For kubernetes: this node's CRI endpoint
	Namespace string            `json:"namespace,omitempty"` // containerd's, or a cluster's
	Command   string            `json:"command,omitempty"`   // program of the command line, a name or path
	Args      []string          `json:"args,omitempty"`      // before the verb
	Env       map[string]string `json:"env,omitempty"`       // in addition to tare's environment
	Root      string            `json:"root,omitempty"`      // podman's --root
	RunRoot   string            `json:"runroot,omitempty"`   // podman's --runroot
	Network   string            `json:"network,omitempty"`   // NetworkNone (the default), NetworkBridge, NetworkHost

	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"` // of the kubeconfig
	Node       string `json:"node,omitempty"`    // for all pods
	Image      string `json:"image,omitempty"`   // of the workload, on the nodes
}

// The networks of containers. Pods have the host's, or, with bridge, CNI's.
const (
	NetworkNone   = "none"
	NetworkBridge = "bridge"
	NetworkHost   = "host"
)

// Over returns e with every zero value replaced by the one of below.
func (e Engine) Over(below Engine) Engine {
	mine, theirs := reflect.ValueOf(&e).Elem(), reflect.ValueOf(below)
	for i := range mine.NumField() {
		if mine.Field(i).IsZero() {
			mine.Field(i).Set(theirs.Field(i))
		}
	}
	return e
}

// Variable returns an environment variable as the engine's command line would see it.
func (e Engine) Variable(name string) string {
	if v, ok := e.Env[name]; ok {
		return v
	}
	return os.Getenv(name)
}

// EngineNames are the engines in ENGINE/RUNTIME. Package find has their constructors.
var EngineNames = []string{"docker", "podman", "containerd", "isula", "cri+containerd", "cri+cri-o", "cri+isulad", "cri+cri-dockerd", "kubernetes"}
