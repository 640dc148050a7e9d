package engines

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// withCRI calls an engine over its socket.
func withCRI(socket string, f func(ctx context.Context, conn *grpc.ClientConn) error) error {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return f(ctx, conn)
}

// criVersion waits until the engine's runtime is ready, because it listens earlier.
func criVersion(socket string) (version string, err error) {
	err = withCRI(socket, func(ctx context.Context, conn *grpc.ClientConn) error {
		client := cri.NewRuntimeServiceClient(conn)
		for {
			answer, err := client.Version(ctx, &cri.VersionRequest{})
			if err == nil {
				version = answer.RuntimeVersion
				var status *cri.StatusResponse
				if status, err = client.Status(ctx, &cri.StatusRequest{}); err == nil {
					err = notReady(status)
				}
			}
			if err == nil {
				return nil
			}
			select {
			case <-ctx.Done():
				return err
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	return version, err
}

func notReady(s *cri.StatusResponse) error {
	for _, c := range s.GetStatus().GetConditions() {
		// containerd 2 also has a condition for deprecation warnings.
		if (c.Type == cri.RuntimeReady || c.Type == cri.NetworkReady) && !c.Status {
			return fmt.Errorf("%s is false: %s %s", c.Type, c.Reason, c.Message)
		}
	}
	return nil
}

func sandboxes(t TB, socket string) (ids []string) {
	t.Helper()
	err := withCRI(socket, func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := cri.NewRuntimeServiceClient(conn).ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
		for _, s := range answer.GetItems() {
			ids = append(ids, s.Id)
		}
		return err
	})
	if err != nil {
		t.Fatalf("list the pods: %v", err)
	}
	return ids
}

func criContainers(t TB, socket string) (ids []string) {
	t.Helper()
	err := withCRI(socket, func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := cri.NewRuntimeServiceClient(conn).ListContainers(ctx, &cri.ListContainersRequest{})
		for _, c := range answer.GetContainers() {
			ids = append(ids, c.Id)
		}
		return err
	})
	if err != nil {
		t.Fatalf("list the containers: %v", err)
	}
	return ids
}

func criImages(t TB, socket string) (names []string) {
	t.Helper()
	err := withCRI(socket, func(ctx context.Context, conn *grpc.ClientConn) error {
		answer, err := cri.NewImageServiceClient(conn).ListImages(ctx, &cri.ListImagesRequest{})
		for _, i := range answer.GetImages() {
			if len(i.RepoTags) == 0 {
				names = append(names, i.Id)
			}
			names = append(names, i.RepoTags...)
		}
		return err
	})
	if err != nil {
		t.Fatalf("list the images: %v", err)
	}
	return names
}
