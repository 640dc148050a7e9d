package kube

import (
	"context"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/remotecommand"
)

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
