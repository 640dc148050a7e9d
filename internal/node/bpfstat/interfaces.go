package bpfstat

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Attributes of an interface, see linux/if_link.h; nested ones have a flag in the
// type.
const (
	attributeName = 3
	attributeXDP  = 43
	attributeMask = 0x3fff
)

// walkInterfaces finds the programs that are at the interfaces of this network
// namespace, by XDP or as filters of tc, with a link or without.
func (at *attachments) walkInterfaces() (problems []string) {
	r, err := openRoute()
	if err != nil {
		return []string{fmt.Sprintf("ask which programs are at interfaces: %v", err)}
	}
	defer r.close()
	names := map[int]string{}
	err = r.ask(unix.RTM_GETLINK, unix.NLM_F_DUMP, make([]byte, unix.SizeofIfInfomsg), func(kind uint16, body []byte) {
		if kind != unix.RTM_NEWLINK || len(body) < unix.SizeofIfInfomsg {
			return
		}
		index := int(int32(nativeUint32(body[4:])))
		name, xdp := "", []byte(nil)
		for kind, value := range attributesOf(body[unix.SizeofIfInfomsg:]) {
			switch kind {
			case attributeName:
				name = text(value)
			case attributeXDP:
				xdp = value
			}
		}
		names[index] = name
		at.xdpAt(index, name, xdp)
	})
	if err != nil {
		return []string{fmt.Sprintf("ask which programs are at interfaces: %v", err)}
	}
	at.interfaces = names
	return at.walkFilters(r, names)
}

// xdpAt reads the attributes that are nested in IFLA_XDP: the ids of programs are
// the whole one, the driver's, the generic one's and the card's.
func (at *attachments) xdpAt(index int, name string, nested []byte) {
	for kind, value := range attributesOf(nested) {
		if kind < 4 || kind > 7 || len(value) < 4 {
			continue
		}
		id := nativeUint32(value)
		if id == 0 || slices.Contains(at.xdp[index], id) {
			continue
		}
		at.xdp[index] = append(at.xdp[index], id)
		at.add(id, "xdp "+name)
	}
}
