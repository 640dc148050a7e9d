package attribution

import (
	"cmp"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
)

// place is the container or pod that a cgroup path identifies.
type place struct {
	id       string // of the container or the pod's sandbox, or ""
	pod      string // the kubelet's uid, or podman's id of the pod
	podDir   string // cgroup of the pod
	dir      string // cgroup of the container
	engine   string
	rule     string
	overhead bool // Kata's overhead group, not the pod's group
}

// scopes are the prefixes of container cgroups by engine. Under systemd a dash follows.
var scopes = []struct{ prefix, engine string }{
	{"docker", "docker"}, {"cri-containerd", "containerd"}, {"crio", "cri-o"}, {"libpod-payload", "podman"}, {"libpod", "podman"},
	{"nerdctl", "containerd"}, {"isulad", "isula"}, {"runc", "oci"}, {"crun", "oci"},
}

// locate parses a cgroup path from the root. For nested containers it returns the outer
// one. The forms:
//
//	docker/<id>, system.slice/docker-<id>.scope
//	kubepods/burstable/pod<uid>/<id>, kubepods-…-pod<uid_>.slice/cri-containerd-<id>.scope
//	libpod_parent/libpod-<id>, machine.slice/libpod-<id>.scope, with the pod's above
//	<unit>.service/libpod-payload-<id>, with podman --cgroups=split
//	<slice>:cri-containerd:<id>, if containerd passes a systemd path to cgroupfs
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
			p.pod, p.podDir, p.rule, p.engine = uid, dir, "in a pod's cgroup", cmp.Or(p.engine, "kubernetes")
			continue
		}
		// The prefix is the slice: machine, a user's, or a requested one.
		_, id, ok := strings.Cut(bare, "-libpod_pod_")
		if before == "libpod_parent" {
			id, ok = e, true
		}
		if ok && hexadecimal(id) {
			p.pod, p.podDir, p.engine, p.rule = id, dir, "podman", "in a pod's cgroup of podman's"
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

// name parses one element of a path and reports whether it names a container.
func (p *place) name(e, bare, before string) bool {
	set := func(id, engine, rule string) bool {
		p.id, p.rule, p.engine = id, rule, cmp.Or(engine, p.engine)
		return id != ""
	}
	slice, rest, _ := strings.Cut(e, ":")
	prefix, last, _ := strings.Cut(rest, ":")
	switch id, renamed := strings.CutPrefix(bare, "kata_"); {
	case before == "kata_overhead":
		p.overhead = true
		return set(e, "kata", "in the cgroup of Kata's overhead")
	case before == "docker" && hexadecimal(e):
		return set(e, "docker", "in a cgroup of docker's")
	case last != "" && isOverhead(slice):
		p.overhead = true
		return set(last, "kata", "in the cgroup of Kata's overhead")
	case last != "":
		return set(last, engineOf(prefix), "in a cgroup of the form slice:prefix:id")
	case renamed && e != "kata_overhead":
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

// podUID parses the kubelet's "pod<uid>" and systemd's "kubepods-burstable-pod<uid>", in
// which the uid has underscores for dashes.
func podUID(bare string, kubepods bool) (string, bool) {
	if strings.HasPrefix(bare, "kubepods-") {
		bare = bare[strings.LastIndex(bare, "-pod")+1:]
	}
	uid, ok := strings.CutPrefix(bare, "pod")
	uid = strings.ReplaceAll(uid, "_", "-")
	return uid, ok && kubepods && len(uid) >= 8 && strings.Trim(uid, "-0123456789abcdef") == ""
}

// hexadecimal reports whether s is an id as engines make them: 64 lower-case hex digits.
func hexadecimal(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// isOverhead reports whether a group is one of Kata's overhead groups.
func isOverhead(where string) bool {
	return strings.Contains("/"+where, "/kata_overhead") || strings.Contains("/"+where, "/kata-overhead")
}

// Own reports whether a cgroup was created for one of the sandboxes. Its path contains
// an id of the sandbox, or it is the requested group or below it.
func Own(where string, boxes []Sandbox) bool {
	return slices.ContainsFunc(boxes, func(b Sandbox) bool { return Names(where, b.IDs) || procs.InSubtree(where, b.Group) })
}

// Names reports whether a cgroup path contains one of the ids, in any form used by
// engines and runtimes.
func Names(where string, ids []string) bool {
	_, _, ok := named(where, func(id string) bool { return id != "" && slices.Contains(ids, id) })
	return ok
}

// named returns the outermost element of a path that is a known id. The id may follow a
// prefix ending in "-", "_" or ":", and precede ".scope" or ".slice". dir is the path
// up to that element.
func named(where string, known func(id string) bool) (id, dir string, ok bool) {
	for e := range strings.SplitSeq(strings.TrimPrefix(where, "/"), "/") {
		dir += "/" + e
		for _, bare := range []string{e, strings.TrimSuffix(strings.TrimSuffix(e, ".scope"), ".slice")} {
			if known(bare) {
				return bare, dir, true
			}
			// An id may contain separators, so try each of them.
			for i := range len(bare) {
				if c := bare[i]; (c == '-' || c == '_' || c == ':') && known(bare[i+1:]) {
					return bare[i+1:], dir, true
				}
			}
		}
	}
	return "", "", false
}

// upwards iterates over a path and its ancestors without the root.
func upwards(where string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for where != "/" && where != "." && where != "" && yield(where) {
			where = path.Dir(where)
		}
	}
}
