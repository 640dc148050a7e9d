package cri

import (
	"errors"
	"path"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// podGroup is the cgroup of a pod, as a path from the root of the hierarchies:
// like a kubelet, tare makes one for each (cgroup_parent=/kubepods/…/podUID), in
// which the engine makes those of the containers, and so everything in it is one
// pod'd. "" where the engine goes by systemd's units, or does not tell.
//
// A kubelet writes the sum of the containers' limits to it. tare does not: the
// containers' own groups have them, and what a pod needs beside its containers
// is what is to be weighed, not to be limited.
func (d *driver) podGroup(pod string) string {
	if d.facts.cgroups != "cgroupfs" {
		return ""
	}
	return path.Join("/", d.group, pod)
}

// delegate makes a group, and hands its controllers down.
func delegate(hs []cgroup.Hierarchy, group string) error {
	if err := cgroup.Delegate(hs, group, "memory", "pids", "cpu"); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	return nil
}
