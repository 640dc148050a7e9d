package bpfstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/procs"
)

// The four attributes of IFLA_XDP with a program id: one for the only program of an
// interface, and one each for driver, generic and hardware mode (linux/if_link.h).
const (
	firstXDP = nl.IFLA_XDP_PROG_ID
	lastXDP  = nl.IFLA_XDP_PROG_ID + 3
)

// walkInterfaces finds the programs at the interfaces of this network namespace: XDP
// and tc filters, with or without a link.
func (at *attachments) walkInterfaces() (problems []string) {
	at.interfaces = map[int]string{}
	problems, err := at.walkNamespace(netns.None(), "", time.Now().Add(longestWalk))
	if err != nil {
		problems = append(problems, fmt.Sprintf("ask which programs are at interfaces: %v", err))
	}
	return problems
}

// maxNamespaces limits the walk over other network namespaces.
const maxNamespaces = 1000

// walkNamespaces finds the programs at interfaces of other network namespaces: those of
// processes and those kept by a mount. It skips links, which [Meter.links] finds.
func (at *attachments) walkNamespaces() (problems []string) {
	var mine unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &mine); err != nil {
		return []string{fmt.Sprintf("ask which programs are at interfaces elsewhere: %v", err)}
	}
	seen, until := map[uint64]bool{mine.Ino: true}, time.Now().Add(longestWalk)
	pids, _ := new(procs.Reader).Pids()
	places := make([]string, 0, len(pids))
	for _, pid := range pids {
		places = append(places, fmt.Sprintf("/proc/%d/ns/net", pid))
	}
	kept, _ := mountinfo.GetMounts(mountinfo.FSTypeFilter("nsfs"))
	for _, mount := range kept {
		if strings.HasPrefix(mount.Root, "net:") {
			places = append(places, mount.Mountpoint)
		}
	}
	for _, place := range places {
		var st unix.Stat_t
		if unix.Stat(place, &st) != nil || seen[st.Ino] {
			continue
		}
		if len(seen) > maxNamespaces || time.Now().After(until) {
			return append(problems, fmt.Sprintf("only %d network namespaces were checked for programs at their interfaces", len(seen)))
		}
		seen[st.Ino] = true
		ns, err := netns.GetFromPath(place)
		if err != nil {
			continue // the namespace was removed
		}
		more, err := at.walkNamespace(ns, fmt.Sprintf(" of network namespace %d", st.Ino), until)
		_ = ns.Close()
		if problems = append(problems, more...); err != nil {
			problems = append(problems, fmt.Sprintf("ask which programs are at interfaces of network namespace %d: %v", st.Ino, err))
		}
	}
	return problems
}

// walkNamespace lists the interfaces of a network namespace; [netns.None] is this
// thread's. where is appended to the interface names.
func (at *attachments) walkNamespace(ns netns.NsHandle, where string, until time.Time) (problems []string, err error) {
	handle := &netlink.Handle{}
	r := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	if ns.IsOpen() {
		if handle, err = netlink.NewHandleAt(ns, unix.NETLINK_ROUTE); err != nil {
			return nil, err
		}
		defer handle.Close()
		socket, err := nl.GetNetlinkSocketAt(ns, netns.None(), unix.NETLINK_ROUTE)
		if err != nil {
			return nil, err
		}
		defer socket.Close()
		r.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: socket}}
	}
	r.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	all, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return nil, err
	}
	for i, message := range all {
		if time.Now().After(until) {
			return []string{fmt.Sprintf("only %d of %d interfaces%s were checked for programs", i, len(all), where)}, nil
		}
		index, name := int(nl.DeserializeIfInfomsg(message).Index), ""
		attributes, err := nl.ParseRouteAttr(message[unix.SizeofIfInfomsg:])
		if err != nil {
			return nil, err
		}
		for _, a := range attributes {
			switch a.Attr.Type & nl.NLA_TYPE_MASK {
			case unix.IFLA_IFNAME: // precedes IFLA_XDP
				if name = unix.ByteSliceToString(a.Value); where == "" {
					at.interfaces[index] = name
				}
			case unix.IFLA_XDP:
				at.xdpAt(index, name, where, a.Value)
			}
		}
		if err := at.filters(handle, index, name+where); err != nil {
			return nil, fmt.Errorf("the filters of %s: %w", name, err)
		}
	}
	return nil, nil
}

// xdpAt records the XDP programs of an interface.
func (at *attachments) xdpAt(index int, name, where string, nested []byte) {
	attributes, err := nl.ParseRouteAttr(nested)
	if err != nil {
		return
	}
	for _, a := range attributes {
		if a.Attr.Type < firstXDP || a.Attr.Type > lastXDP || len(a.Value) < 4 {
			continue
		}
		if id := binary.NativeEndian.Uint32(a.Value); id != 0 {
			if at.add(id, "xdp "+name+where); where != "" {
				at.elsewhere[id] = name + where
			} else if !slices.Contains(at.xdp[index], id) {
				at.xdp[index] = append(at.xdp[index], id)
			}
		}
	}
}

// filters records the programs of tc filters of an interface.
func (at *attachments) filters(handle *netlink.Handle, index int, name string) error {
	for hook, parent := range map[string]uint32{"ingress": netlink.HANDLE_MIN_INGRESS, "egress": netlink.HANDLE_MIN_EGRESS} {
		filters, err := handle.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, parent)
		// No filters: the interface has no clsact qdisc or was removed.
		if err != nil && !slices.Contains([]error{unix.EINVAL, unix.ENOENT, unix.ENODEV, unix.EOPNOTSUPP, netlink.ErrDumpInterrupted}, err) {
			return err
		}
		for _, f := range filters {
			if f, ok := f.(*netlink.BpfFilter); ok && f.Id != 0 {
				at.add(uint32(f.Id), "tc "+hook+" "+name)
			}
		}
	}
	return nil
}
