package bpfstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Attributes of IFLA_XDP that are ids of programs: of the only one, the driver's, the
// generic one's and the card's (linux/if_link.h).
const (
	firstXDP = nl.IFLA_XDP_PROG_ID
	lastXDP  = nl.IFLA_XDP_PROG_ID + 3
)

// walkInterfaces finds the programs that are at the interfaces of this network
// namespace, by XDP or as filters of tc, with a link or without.
func (at *attachments) walkInterfaces() (problems []string) {
	r := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	r.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	all, err := r.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return []string{fmt.Sprintf("ask which programs are at interfaces: %v", err)}
	}
	at.interfaces = map[int]string{}
	for _, message := range all {
		index := int(nl.DeserializeIfInfomsg(message).Index)
		attributes, err := nl.ParseRouteAttr(message[unix.SizeofIfInfomsg:])
		if err != nil {
			return []string{fmt.Sprintf("ask which programs are at interfaces: %v", err)}
		}
		for _, a := range attributes {
			switch a.Attr.Type & nl.NLA_TYPE_MASK {
			case unix.IFLA_IFNAME: // before IFLA_XDP
				at.interfaces[index] = text(a.Value)
			case unix.IFLA_XDP:
				at.xdpAt(index, a.Value)
			}
		}
	}
	return at.walkFilters()
}

func (at *attachments) xdpAt(index int, nested []byte) {
	attributes, err := nl.ParseRouteAttr(nested)
	if err != nil {
		return
	}
	for _, a := range attributes {
		if a.Attr.Type < firstXDP || a.Attr.Type > lastXDP || len(a.Value) < 4 {
			continue
		}
		id := binary.NativeEndian.Uint32(a.Value)
		if id == 0 || slices.Contains(at.xdp[index], id) {
			continue
		}
		at.xdp[index] = append(at.xdp[index], id)
		at.add(id, "xdp "+at.interfaces[index])
	}
}

// walkFilters finds the programs that tc's filters run at these interfaces.
func (at *attachments) walkFilters() (problems []string) {
	until, asked := time.Now().Add(longestWalk), 0
	for index, name := range at.interfaces {
		if time.Now().After(until) {
			return append(problems, fmt.Sprintf("only %d of %d interfaces were asked for filters", asked, len(at.interfaces)))
		}
		asked++
		for hook, parent := range map[string]uint32{"ingress": netlink.HANDLE_MIN_INGRESS, "egress": netlink.HANDLE_MIN_EGRESS} {
			filters, err := netlink.FilterList(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: index}}, parent)
			// Without the qdisc clsact, or with the interface gone, there are none.
			if err != nil && !slices.Contains([]error{unix.EINVAL, unix.ENOENT, unix.ENODEV, unix.EOPNOTSUPP, netlink.ErrDumpInterrupted}, err) {
				return append(problems, fmt.Sprintf("ask which programs are filters of %s: %v", name, err))
			}
			for _, f := range filters {
				if f, ok := f.(*netlink.BpfFilter); ok && f.Id != 0 {
					at.add(uint32(f.Id), "tc "+hook+" "+name)
				}
			}
		}
	}
	return problems
}
