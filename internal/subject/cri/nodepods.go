package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// Complete adds to sandboxes what the engine's states of them lack: the processes that
// hold the pods, and the cgroups that the kubelet has made for them.
func (n *Node) Complete(ctx context.Context, boxes []subject.Sandbox) error {
	uids, err := n.holders(ctx, boxes)
	if err != nil {
		return err
	}
	hs, err := cgroup.Hierarchies()
	if err != nil {
		return err
	}
	for i := range boxes {
		if boxes[i].Group, err = podGroup(hs, uids[i]); err != nil {
			return err
		}
	}
	return nil
}

// podGroup is the cgroup that a kubelet has made for the pod of a uid, as a path from the
// root of the hierarchies. It is looked for by what kubelets call it, with either driver:
// the processes of a pod need not be below it, Kata's may be elsewhere.
func podGroup(hs []cgroup.Hierarchy, uid string) (string, error) {
	if uid == "" {
		return "", errors.New("the engine does not tell the uid of a pod")
	}
	for _, h := range cgroup.Using(hs, "memory") {
		found, err := groupBelow(h.Mount, uid)
		if err != nil || found != "" {
			return found, err
		}
	}
	return "", fmt.Errorf("there is no cgroup of the pod %s here: is /sys/fs/cgroup this machine's own?", uid)
}

// maxGroups bounds how many groups are looked at.
const maxGroups = 1 << 16

// groupBelow looks below a mount for the group whose name ends in "podUID", or
// "podUID.slice" with underscores for dashes (GetPodContainerName of the kubelet).
func groupBelow(mount, uid string) (found string, err error) {
	seen := 0
	err = filepath.WalkDir(mount, func(where string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() { // it went away meanwhile
			return nil
		}
		if seen++; seen > maxGroups {
			return fmt.Errorf("there are more than %d cgroups, and that of the pod %s is not among the first", maxGroups, uid)
		}
		name := d.Name()
		if strings.HasSuffix(name, "pod"+uid) || strings.HasSuffix(name, "pod"+strings.ReplaceAll(uid, "-", "_")+".slice") {
			found = path.Clean("/" + strings.TrimPrefix(where, mount))
			return fs.SkipAll
		}
		return nil
	})
	return found, err
}

// Exec runs a command in a pod's container, as tare's own sessions do; guest: its
// processes are not this kernel's.
func (n *Node) Exec(ctx context.Context, in engine.State, guest bool, args []string) (subject.Executed, error) {
	return n.conn.exec(ctx, in, guest, args)
}

// Daemons are the engine's own process, and its kubelet's.
func (n *Node) Daemons() []int { return append(engine.Listeners(n.socket), kubelets(n.socket)...) }
