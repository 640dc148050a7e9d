package proctree

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/record"
)

// classify sets the kind of every node, parents first.
func (t *tree) classify() {
	for i := range t.nodes {
		n := &t.nodes[i]
		switch {
		case n.root:
		case n.did:
			t.executed(i)
		default:
			t.forked(i)
		}
	}
}

// forked classifies a process that has not executed a program. It has the kind of its
// parent. If a runtime that creates a container forks, the child is the runtime's
// init.
func (t *tree) forked(i int) {
	n, up := &t.nodes[i], t.up(i)
	if up < 0 || i == t.client {
		n.kind, n.program = record.KindOther, clean(n.comm)
		if i == t.client {
			n.kind = record.KindClient
		}
		n.name = n.program
	} else {
		p := &t.nodes[up]
		n.kind, n.name, n.program, n.session = p.kind, p.name, p.program, p.session
		switch {
		case p.call && slices.Contains(making, p.verb):
			n.kind, n.name, n.session = record.KindInit, p.program+" init", p.verb == "exec"
		case p.kind == record.KindCall, p.kind == record.KindCNI:
			n.kind = record.KindOther
		}
	}
	// The inits of runc and youki set their names: runc:[1:CHILD], youki:[2:INIT].
	for _, r := range []string{"runc", "youki"} {
		if strings.HasPrefix(n.comm, r+":[") {
			n.kind, n.name = record.KindInit, r+" init"
		}
	}
}

// making has the verbs that create a process in a container.
var making = []string{"create", "run", "restore", "exec"}

// executed classifies a process that has executed a program.
func (t *tree) executed(i int) {
	n := &t.nodes[i]
	was, up := t.rep(n.before), t.executor(i)
	n.program = n.base
	if n.program == "" && up >= 0 { // /proc/self/exe
		n.program = t.nodes[up].program
	}
	t.kindOf(i, was, up)
	if was >= 0 && t.joins(was, i) {
		t.join(was, i)
	}
}

// kindOf sets the kind of i. was is the previous program of the same process. up is
// its ancestor or previous program.
func (t *tree) kindOf(i, was, up int) {
	n := &t.nodes[i]
	n.kind, n.name = record.KindOther, n.program
	parent := record.KindOther
	if up >= 0 {
		parent = t.nodes[up].kind
	}
	switch {
	case parent == record.KindWorkload:
		n.kind, n.session = parent, t.nodes[up].session
	case t.isInit(n, i):
		n.kind, n.name = record.KindInit, n.program+" init"
		n.session = up >= 0 && t.nodes[up].verb == "exec"
	case was >= 0 && t.turns(was, i):
		n.kind, n.workload, n.session = record.KindWorkload, true, t.nodes[was].session
	case t.plugin(n), beside(n), t.ociCall(i, up), t.mute(i, up):
	case helper(n.program):
		n.kind = record.KindHelper
	case was >= 0 && was == t.rep(t.client), i == t.client, parent == record.KindClient:
		n.kind = record.KindClient
	}
	if n.kind == record.KindOther && n.ended == 0 && slices.Contains(t.asked.Guests, n.pid) {
		n.kind = record.KindVMM // a wrapper of a VMM, or a renamed VMM: it has the guest's threads
	}
}

// isInit reports whether the runtime executes itself inside the container: "runc
// init", below a runtime call.
func (t *tree) isInit(n *node, i int) bool {
	return n.initial() && (isRuntime(n.program) && !n.gone || t.hasAbove(i, func(up *node) bool { return up.call }))
}

// turns reports whether the exec of i replaced the runtime's init (was) by the
// container's program.
//
// This holds for descendants of "runc init", except runc's helpers. The inits of crun
// and youki are plain forks of the call, and so are their hooks before they execute a
// program. Only their timing tells them apart. For create, the init is the process that
// executes after the call has ended. For run, it is the process that took longest from
// fork to exec.
func (t *tree) turns(was, i int) bool {
	w, n := &t.nodes[was], &t.nodes[i]
	if w.kind != record.KindInit || helper(n.program) {
		return false
	}
	call, copied := -1, w.did
	for call = range t.climb(was, t.up) {
		if t.nodes[call].kind != record.KindInit {
			break
		}
		copied = copied || t.nodes[call].did
	}
	if call >= 0 && t.nodes[call].kind == record.KindInit {
		call = -1 // no event of a call above them
	}
	// The sentry and its file server may run below a wrapper with another name.
	if procs.GVisorRole(n.program, n.rest) != "" || call >= 0 && guarded(t.nodes[call].program) {
		return false
	}
	if copied || call < 0 {
		return true
	}
	c := &t.nodes[call]
	if c.verb == "create" || c.verb == "restore" {
		return c.ended > 0 && n.exec >= c.ended
	}
	return t.slowest(i)
}

// guarded reports whether a runtime hides the workload from the host's kernel, in
// gVisor's sentry or in a VM. Such a runtime never executes the workload on the host.
func guarded(program string) bool {
	return strings.HasPrefix(program, "kata-runtime") || slices.Contains(strings.FieldsFunc(program, separates), "runsc")
}

// slowest reports whether i took longest from fork to exec among the forks of a call.
// The forks of a wrapper script do not count.
func (t *tree) slowest(i int) bool {
	p := &t.nodes[t.nodes[i].parent] // the call or its child
	return !p.script && !p.inits && p.slow == i
}

// cniVerbs are the operations of the CNI specification, version 1.1.
var cniVerbs = []string{"ADD", "DEL", "CHECK", "VERSION", "GC", "STATUS"}

// plugin reports whether a process is a network plugin. Plugins are executed by path
// and without arguments. Their children inherit the environment but are executed in
// another way. podman's netavark counts as a plugin.
func (t *tree) plugin(n *node) bool {
	switch {
	case slices.Contains(cniVerbs, n.cni.Command) && len(n.rest) == 0 && strings.Contains(n.path, "/") && !helper(n.program):
		n.kind, n.verb, n.id = record.KindCNI, n.cni.Command, container(n.cni.Container)
		return true
	case n.program == "netavark":
		n.kind = record.KindCNI
		for _, verb := range []string{"setup", "teardown", "update"} {
			if slices.Contains(n.rest, verb) {
				n.verb = verb
			}
		}
		return true
	}
	return false
}

// beside reports whether a process is a long-running helper of a container, or gVisor's
// kernel or file server. It sets the kind and the container id.
func beside(n *node) bool {
	role := cmp.Or(procs.HelperRole(n.program, n.rest), procs.GVisorRole(n.program, n.rest))
	if role == "" {
		return false
	}
	switch n.kind = Kind(role); role {
	case record.RoleSentry:
		n.name = "runsc-sandbox"
		return true
	case record.RoleGofer:
		n.name = "runsc-gofer"
		return true
	}
	n.id = container(procs.ContainerOf(n.program, role, n.rest))
	if role != record.RoleShim || n.program == "isulad-shim" || len(n.rest) == 0 {
		return true
	}
	switch verb := n.rest[len(n.rest)-1]; {
	case verb == "start", verb == "delete":
		n.kind, n.verb, n.name = record.KindHelper, verb, "shim "+verb
	case slices.Contains(n.rest, "-info"), slices.Contains(n.rest, "-v"):
		n.kind, n.name = record.KindHelper, "shim info"
	}
	return true
}

// Kind returns the kind of a process with the given role. gVisor's sentry counts as a
// VMM, its gofer as virtiofsd.
func Kind(role record.Role) string { return cmp.Or(kinds[role], record.KindDaemon) }

var kinds = map[record.Role]string{
	record.RoleShim: record.KindShim, record.RoleMonitor: record.KindMonitor, record.RoleVMM: record.KindVMM, record.RoleSentry: record.KindVMM,
	record.RoleVirtiofs: record.KindVirtiofsd, record.RoleGofer: record.KindVirtiofsd,
}

// ociCall reports whether a process is a call of an OCI runtime. It must be a known
// runtime, have a runtime's flags, or be executed by an engine.
func (t *tree) ociCall(i, up int) bool {
	n := &t.nodes[i]
	if slices.Contains(engines, n.program) || helper(n.program) || slices.Contains(strangers, n.program) {
		return false
	}
	c, ok := parseCall(n.rest, n.cut)
	flags := c.typed && (c.id != "" || n.cut)
	if known := isRuntime(n.program) || flags || c.plain && t.engine(up); !ok || !known {
		return false
	}
	n.kind, n.verb, n.id, n.call = record.KindCall, c.verb, c.id, true
	n.name = n.program + " " + c.verb
	// A wrapper may keep running and execute the runtime in a child. Both then count as
	// one call, that of the wrapper.
	for a := range t.climb(i, t.up) {
		if x := &t.nodes[a]; x.kind == record.KindCall && x.verb == n.verb && x.id == n.id {
			n.kind, n.id = record.KindHelper, ""
			break
		}
	}
	return true
}

// mute reports whether a process is a runtime call that ended before its arguments
// could be read. Its verb and container are unknown. Programs executed by a call or an
// init do not count.
func (t *tree) mute(i, up int) bool {
	n := &t.nodes[i]
	if !n.gone || n.base == "" || !isRuntime(n.base) {
		return false
	}
	if up >= 0 && t.nodes[up].kind == record.KindCall && t.nodes[up].pid == n.pid { // exec by a wrapper
		w := &t.nodes[up]
		n.kind, n.name, n.verb, n.id, n.call = w.kind, n.program, w.verb, w.id, true
		return true
	}
	if t.hasAbove(i, func(up *node) bool { return up.kind == record.KindCall || up.kind == record.KindInit }) {
		return false
	}
	n.kind, n.name, n.call = record.KindCall, n.program, true
	return true
}

// strangers are other programs with a runtime's verbs, as in systemctl start X.
var strangers = []string{"systemctl", "service", "ip", "tc", "git", "virsh", "machinectl", "sudo", "timeout", "nice", "strace", "time", "nsenter", "unshare"}

// engine reports whether a process can call runtimes.
func (t *tree) engine(up int) bool {
	if up < 0 {
		return false
	}
	p := &t.nodes[up]
	return p.kind == record.KindDaemon || t.beside(up) || p.kind == record.KindClient && slices.Contains(engines, p.program)
}

// helpers are programs that engines and runtimes execute for a single task, or for as long
// as a container runs.
var helpers = []string{
	"newuidmap", "newgidmap", "nft", "ipset", "ebtables", "arptables", "conntrack", "pinns", "slirp4netns", "pasta", "pasta.avx2", "passt",
	"fuse-overlayfs", "mount", "umount", "fusermount", "fusermount3", "docker-proxy", "docker-init", "modprobe", "aardvark-dns", "dnsmasq",
	"rootlessport", "rootlesskit", "apparmor_parser", "unpigz", "pigz", "criu", "losetup", "blkid", "dmsetup", "kata-proxy", "kata-shim",
	"vhost-device-vsock", "libnetwork-setkey", "set-ipv6", "set-default-vlan", "setup-resolver", "netns-create", "docker-untar", "docker-applyLayer", "docker-mountfrom", "storage-untar", "storage-applyLayer",
}

func helper(name string) bool {
	return slices.Contains(helpers, name) || strings.HasPrefix(name, "iptables") || strings.HasPrefix(name, "ip6tables") ||
		strings.HasPrefix(name, "xtables") || strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "mount.")
}

// joins reports whether i and its previous program was count as one process. Examples
// are a fork and its exec, a sandbox that executes itself, and a wrapper that executes
// its command.
func (t *tree) joins(was, i int) bool {
	w, n := &t.nodes[was], &t.nodes[i]
	switch {
	case !w.did && !w.root:
		return !n.workload
	case w.kind != n.kind:
		return false
	case n.kind == record.KindCall:
		return w.verb == n.verb && (w.id == n.id || w.id == "" || n.id == "")
	case n.kind == record.KindCNI:
		return w.verb == n.verb && w.id == n.id
	case n.kind == record.KindInit:
		return true
	}
	// Long-running helpers execute themselves to change their privileges. For other
	// processes, each exec counts separately.
	return procsThatStay[n.kind] && w.name == n.name && w.program == n.program && w.id == n.id
}

var procsThatStay = map[string]bool{record.KindVMM: true, record.KindVirtiofsd: true, record.KindShim: true, record.KindMonitor: true}

// join merges two nodes. A fork takes the kind and name of the program that it
// executes. A node that has already executed a program keeps its kind and name.
func (t *tree) join(was, i int) {
	w, n := &t.nodes[was], &t.nodes[i]
	if !w.did {
		w.did, w.command, w.exec = true, n.command, n.exec
		w.kind, w.name, w.program, w.verb, w.id = n.kind, n.name, n.program, n.verb, n.id
		w.call, w.session = n.call, n.session
	}
	w.id = cmp.Or(w.id, n.id)
	w.ended, w.used, w.exit, w.comm = n.ended, n.used, n.exit, n.comm
	n.stands = was
}
