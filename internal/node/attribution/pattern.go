package attribution

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
)

// place is what the path of a cgroup tells of the container in it.
type place struct {
	id     string // of the container or the pod's sandbox, "" for none
	pod    string // the kubelet's uid, or podman's id of the pod
	podDir string // the pod's own cgroup
	dir    string // the container's own cgroup
	engine string
	rule   string
	beside bool // it holds Kata's processes and is not the pod's
}

// scopes are the prefixes that engines give a container's cgroup, before a
// dash under systemd, and who does.
var scopes = []struct{ prefix, engine string }{
	{"docker", "docker"}, {"cri-containerd", "containerd"}, {"crio", "cri-o"}, {"libpod-payload", "podman"}, {"libpod", "podman"},
	{"nerdctl", "containerd"}, {"isulad", "isula"}, {"runc", "oci"}, {"crun", "oci"},
}

// locate reads a path from its root, so that of containers within containers
// it is the outer one that is found. The forms:
//
//	docker/<id>, system.slice/docker-<id>.scope
//	kubepods/burstable/pod<uid>/<id>, kubepods-…-pod<uid_>.slice/cri-containerd-<id>.scope
//	libpod_parent/libpod-<id>, machine.slice/libpod-<id>.scope, with the pod's above
//	<unit>.service/libpod-payload-<id>, of a container that is a unit of systemd (--cgroups=split)
//	<slice>:cri-containerd:<id>, where containerd gives cgroupfs a systemd path
//	kata_overhead/<id>, kata-overhead.slice:runtime-rs:<id>, kata_<id>
func locate(where string) (place, bool) {
	var p place
	elements := strings.Split(strings.TrimPrefix(where, "/"), "/")
	dir := ""
	for i, e := range elements {
		dir += "/" + e
		before := ""
		if i > 0 {
			before = elements[i-1]
		}
		bare := strings.TrimSuffix(strings.TrimSuffix(e, ".scope"), ".slice")
		if uid, ok := podUID(bare, strings.Contains(where, "kubepods")); ok {
			p.pod, p.podDir, p.rule = uid, dir, "in a pod's cgroup"
			if p.engine == "" {
				p.engine = "kubernetes"
			}
			continue
		}
		// Before it is the slice around: machine, a user's, or one that was asked for.
		if _, id, ok := strings.Cut(bare, "-libpod_pod_"); ok && hexadecimal(id) {
			p.pod, p.podDir, p.engine, p.rule = id, dir, "podman", "in a pod's cgroup of podman's"
			continue
		}
		if before == "libpod_parent" && hexadecimal(e) {
			p.pod, p.podDir, p.engine, p.rule = e, dir, "podman", "in a pod's cgroup of podman's"
			continue
		}
		if p.name(e, bare, before) {
			p.dir = dir
			return p, true
		}
	}
	if p.pod != "" {
		p.dir = p.podDir
		return p, true
	}
	return place{}, false
}

// name reads one element of a path, and tells whether it names a container.
func (p *place) name(e, bare, before string) bool {
	set := func(id, engine, rule string) bool {
		p.id, p.rule = id, rule
		if engine != "" {
			p.engine = engine
		}
		return id != ""
	}
	switch before {
	case "kata_overhead":
		p.beside = true
		return set(e, "kata", "in the cgroup of Kata's overhead")
	case "docker":
		if hexadecimal(e) {
			return set(e, "docker", "in a cgroup of docker's")
		}
	}
	if slice, rest, ok := strings.Cut(e, ":"); ok {
		if prefix, id, ok := strings.Cut(rest, ":"); ok && id != "" {
			p.beside = strings.HasPrefix(slice, "kata-overhead") || strings.HasPrefix(slice, "kata_overhead")
			if p.beside {
				return set(id, "kata", "in the cgroup of Kata's overhead")
			}
			return set(id, engineOf(prefix), "in a cgroup of the form slice:prefix:id")
		}
	}
	if id, ok := strings.CutPrefix(bare, "kata_"); ok && e != "kata_overhead" {
		return set(id, "kata", "in a cgroup that Kata renamed")
	}
	for _, s := range scopes {
		if id, ok := strings.CutPrefix(bare, s.prefix+"-"); ok && hexadecimal(id) {
			return set(id, s.engine, "in a cgroup of "+s.prefix+"'s form")
		}
	}
	if p.pod != "" && hexadecimal(e) {
		return set(e, "", "in a pod's cgroup")
	}
	return false
}

func engineOf(prefix string) string {
	for _, s := range scopes {
		if s.prefix == prefix {
			return s.engine
		}
	}
	if strings.HasPrefix(prefix, "kata") {
		return "kata"
	}
	return "oci"
}

// podUID reads the kubelet's "pod<uid>", and "kubepods-burstable-pod<uid>" of
// systemd, where dashes in the uid are underscores.
func podUID(bare string, kubepods bool) (string, bool) {
	if strings.HasPrefix(bare, "kubepods-") {
		i := strings.LastIndex(bare, "-pod")
		if i < 0 {
			return "", false
		}
		bare = bare[i+1:]
	}
	uid, ok := strings.CutPrefix(bare, "pod")
	if !ok || !kubepods || len(uid) < 8 {
		return "", false
	}
	uid = strings.ReplaceAll(uid, "_", "-")
	if strings.Trim(uid, "-0123456789abcdef") != "" {
		return "", false
	}
	return uid, true
}

// hexadecimal tells whether a text is an id as engines make them: 64 digits.
func hexadecimal(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == 64
}

// overhead tells whether a group is one of those that Kata puts beside the
// pod's.
func overhead(where string) bool {
	for e := range strings.SplitSeq(where, "/") {
		if strings.HasPrefix(e, "kata_overhead") || strings.HasPrefix(e, "kata-overhead") {
			return true
		}
	}
	return false
}

// Own reports whether a cgroup was made for one of the sandboxes: it names one, or it is the
// group that was asked for or below it.
func Own(where string, boxes []Sandbox) bool {
	return slices.ContainsFunc(boxes, func(b Sandbox) bool { return Names(where, b.IDs) || procs.Within(where, b.Group) })
}

// Names tells whether a cgroup's path names one of the ids, in any of the forms in
// which engines and runtimes do.
func Names(where string, ids []string) bool {
	_, _, ok := named(where, func(id string) bool { return slices.Contains(ids, id) })
	return ok
}

// named finds the outermost element of a path that names one of the ids: alone,
// or behind the last "-", "_" or ":" of a prefix, with ".scope" or without. dir
// is the path up to it.
func named(where string, known func(id string) bool) (id, dir string, ok bool) {
	for e := range strings.SplitSeq(strings.TrimPrefix(where, "/"), "/") {
		dir += "/" + e
		for _, bare := range []string{e, strings.TrimSuffix(strings.TrimSuffix(e, ".scope"), ".slice")} {
			if known(bare) {
				return bare, dir, true
			}
			// An id may hold the separators itself, so all of them are tried.
			for i := range len(bare) {
				if c := bare[i]; (c == '-' || c == '_' || c == ':') && known(bare[i+1:]) {
					return bare[i+1:], dir, true
				}
			}
		}
	}
	return "", "", false
}
