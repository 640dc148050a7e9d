package cri

import (
	"errors"
	"os"
	"path"
	"path/filepath"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// delegated are the controllers that pods have.
var delegated = []string{"memory", "pids", "cpu"}

// podGroup is the cgroup of a pod, as a path from the root of the hierarchies:
// like a kubelet, tare makes one for each (cgroup_parent=/kubepods/…/podUID), in
// which the engine makes those of the containers, and so everything in it is one
// pod's. "" where the engine goes by systemd's units, or does not tell.
//
// A kubelet writes the sum of the containers' limits to it. tare does not: the
// containers' own groups have them, and what a pod needs beside its containers
// is what is to be weighed, not to be limited.
func (s *session) podGroup(pod string) string {
	if s.facts.cgroups != "cgroupfs" {
		return ""
	}
	return path.Join("/", s.group, pod)
}

// makeGroup makes that of a new pod.
func (s *session) makeGroup(pod string) error {
	group := s.podGroup(pod)
	if group == "" {
		return nil
	}
	if err := cgroup.Delegate(s.hs, group, delegated...); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
		return err
	}
	return nil
}

// removeGroups removes those of pods that no lane holds.
func (s *session) removeGroups() error {
	if s.facts.cgroups != "cgroupfs" {
		return nil
	}
	done := map[string]bool{}
	for _, h := range s.held {
		done[h.name] = true
	}
	var errs []error
	for _, h := range s.hs {
		entries, _ := os.ReadDir(filepath.Join(h.Mount, s.group))
		for _, e := range entries {
			if e.IsDir() && !done[e.Name()] {
				done[e.Name()] = true
				errs = append(errs, cgroup.Remove(s.hs, s.podGroup(e.Name())))
			}
		}
	}
	return errors.Join(errs...)
}
