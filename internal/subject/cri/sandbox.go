package cri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Sandboxes implements subject.Sandboxed. The pause processes come from verbose
// PodSandboxStatus calls: containerd always has one, CRI-O not always.
func (s *session) Sandboxes(ctx context.Context) ([]subject.Sandbox, error) {
	out, err := s.Session.Sandboxes(ctx)
	_, failed := s.addPauses(ctx, out)
	return out, errors.Join(err, engine.Failed(s.name, "query the sandboxes", failed))
}

// addPauses adds the pause processes to sandboxes, and returns the pods' uids.
func (d *driver) addPauses(ctx context.Context, boxes []subject.Sandbox) (uids []string, err error) {
	uids = make([]string, len(boxes))
	return uids, engine.Each(len(boxes), func(i int) error {
		pod := boxes[i].IDs[len(boxes[i].IDs)-1]
		reply, err := ask(ctx, "PodSandboxStatus", d.conn.runtime.PodSandboxStatus, &api.PodSandboxStatusRequest{PodSandboxId: pod, Verbose: true})
		if err != nil {
			return fmt.Errorf("pod %s: %w", pod, err)
		}
		uids[i] = reply.GetStatus().GetMetadata().GetUid()
		if reply.GetStatus().GetState() == api.PodSandboxState_SANDBOX_READY {
			boxes[i].Pause = pidIn(reply.Info)
		}
		return nil
	})
}

// pidIn returns the "pid" in the object "info" of a verbose reply, 0 for none.
func pidIn(info map[string]string) int {
	var said struct {
		Pid int `json:"pid"`
	}
	if json.Unmarshal([]byte(info["info"]), &said) != nil || said.Pid <= 1 || said.Pid > procs.MaxPid {
		return 0
	}
	return said.Pid
}
