package setting

import "cmp"

// Engine says how an engine is reached and how its containers are made. What is
// empty is as the engine's own command line has it: its environment variable,
// else its default.
type Engine struct {
	Address   string            `json:"address,omitempty"`   // "unix:///run/docker.sock"; a socket's path is enough. Of kubernetes: of this node's own CRI endpoint
	Namespace string            `json:"namespace,omitempty"` // of containerd, or of a cluster
	Command   string            `json:"command,omitempty"`   // the command line's program, by name or path
	Args      []string          `json:"args,omitempty"`      // for it, before the verb
	Env       map[string]string `json:"env,omitempty"`       // for it, beside tare's own
	Root      string            `json:"root,omitempty"`      // podman's --root
	RunRoot   string            `json:"runroot,omitempty"`   // podman's --runroot
	Network   string            `json:"network,omitempty"`   // NetworkNone (the default), NetworkBridge, NetworkHost

	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"` // of the kubeconfig
	Node       string `json:"node,omitempty"`    // on which all pods are to run
	Image      string `json:"image,omitempty"`   // of the workload, where the nodes have it
}

// The networks of containers. Pods know no network none: theirs is the host's,
// or, with bridge, what CNI gives them.
const (
	NetworkNone   = "none"
	NetworkBridge = "bridge"
	NetworkHost   = "host"
)

// Over returns e with every empty value taken from below.
func (e Engine) Over(below Engine) Engine {
	e.Address = cmp.Or(e.Address, below.Address)
	e.Namespace = cmp.Or(e.Namespace, below.Namespace)
	e.Command = cmp.Or(e.Command, below.Command)
	e.Root = cmp.Or(e.Root, below.Root)
	e.RunRoot = cmp.Or(e.RunRoot, below.RunRoot)
	e.Network = cmp.Or(e.Network, below.Network)
	e.Kubeconfig = cmp.Or(e.Kubeconfig, below.Kubeconfig)
	e.Context = cmp.Or(e.Context, below.Context)
	e.Node = cmp.Or(e.Node, below.Node)
	e.Image = cmp.Or(e.Image, below.Image)
	if e.Args == nil {
		e.Args = below.Args
	}
	if e.Env == nil {
		e.Env = below.Env
	}
	return e
}

// EngineNames are what can stand before the slash of ENGINE/RUNTIME. Package find
// knows how each is reached.
var EngineNames = []string{"docker", "podman", "containerd", "isula", "cri+containerd", "cri+cri-o", "cri+isulad", "cri+cri-dockerd", "kubernetes"}
