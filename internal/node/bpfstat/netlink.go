package bpfstat

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func nativeUint32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }

// attributesOf walks attributes of netlink: two bytes of length, two of type, the
// value, and up to three bytes more. It ends at what is cut off.
func attributesOf(b []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(b) >= 4 {
			n := int(binary.NativeEndian.Uint16(b))
			if n < 4 || n > len(b) || !yield(binary.NativeEndian.Uint16(b[2:])&attributeMask, b[4:n]) {
				return
			}
			b = b[min((n+3)&^3, len(b)):]
		}
	}
}

// route is a connection to the kernel's routing, see rtnetlink(7).
type route struct {
	fd     int
	turn   uint32
	buffer []byte
}

// openRoute opens one, in the network namespace of the calling thread.
func openRoute() (*route, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	r := &route{fd: fd, buffer: make([]byte, 64<<10)}
	wait := unix.NsecToTimeval(int64(longestWalk))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	return r, nil
}

func (r *route) close() { unix.Close(r.fd) }

// ask sends a request and calls found with the bodies of the answer's messages.
func (r *route) ask(kind, flags uint16, body []byte, found func(kind uint16, body []byte)) error {
	r.turn++
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.SizeofNlMsghdr+len(body)))
	message = binary.NativeEndian.AppendUint16(message, kind)
	message = binary.NativeEndian.AppendUint16(message, flags|unix.NLM_F_REQUEST)
	message = binary.NativeEndian.AppendUint32(message, r.turn)
	message = binary.NativeEndian.AppendUint32(message, 0)
	if err := unix.Sendto(r.fd, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for {
		n, _, err := unix.Recvfrom(r.fd, r.buffer, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		messages, err := syscall.ParseNetlinkMessage(r.buffer[:n])
		if err != nil {
			return err
		}
		for i := range messages {
			switch m := &messages[i]; {
			case m.Header.Seq != r.turn:
			case m.Header.Type == unix.NLMSG_DONE:
				return nil
			case m.Header.Type == unix.NLMSG_ERROR:
				if len(m.Data) < 4 || int32(nativeUint32(m.Data)) == 0 {
					return nil
				}
				return unix.Errno(-int32(nativeUint32(m.Data)))
			default:
				found(m.Header.Type, m.Data)
			}
		}
	}
}

// The hooks of the qdisc clsact, and attributes of filters, see linux/pkt_sched.h,
// linux/rtnetlink.h and linux/pkt_cls.h.
const (
	parentIngress  = 0xfffffff2
	parentEgress   = 0xfffffff3
	filterMessage  = 20 // bytes of struct tcmsg
	attributeKind  = 1
	attributeMore  = 2
	attributeBPFID = 11
)

// walkFilters finds the programs that tc's filters run at these interfaces.
func (at *attachments) walkFilters(r *route, names map[int]string) (problems []string) {
	until, asked := time.Now().Add(longestWalk), 0
	for index, name := range names {
		if time.Now().After(until) {
			return append(problems, fmt.Sprintf("only %d of %d interfaces were asked for filters", asked, len(names)))
		}
		asked++
		for _, hook := range []struct {
			parent uint32
			word   string
		}{{parentIngress, "ingress"}, {parentEgress, "egress"}} {
			err := r.ask(unix.RTM_GETTFILTER, unix.NLM_F_DUMP, filterOf(index, hook.parent, 0), func(kind uint16, body []byte) {
				if id := filterProgram(kind, body); id != 0 {
					at.add(id, "tc "+hook.word+" "+name)
				}
			})
			// Without the qdisc, or with the interface gone, there are none.
			if err != nil && !slices.Contains([]error{unix.EINVAL, unix.ENOENT, unix.ENODEV, unix.EOPNOTSUPP}, err) {
				return append(problems, fmt.Sprintf("ask which programs are filters of %s: %v", name, err))
			}
		}
	}
	return problems
}

// filterOf is a struct tcmsg.
func filterOf(index int, parent, info uint32) []byte {
	body := binary.NativeEndian.AppendUint32(nil, 0) // any family
	body = binary.NativeEndian.AppendUint32(body, uint32(index))
	body = binary.NativeEndian.AppendUint32(body, 0) // any handle
	body = binary.NativeEndian.AppendUint32(body, parent)
	return binary.NativeEndian.AppendUint32(body, info)
}

// filterProgram is the id of the program that a filter runs; 0: it is another kind.
func filterProgram(kind uint16, body []byte) (id uint32) {
	if kind != unix.RTM_NEWTFILTER || len(body) < filterMessage {
		return 0
	}
	bpf := false
	for kind, value := range attributesOf(body[filterMessage:]) {
		switch kind {
		case attributeKind:
			bpf = text(value) == "bpf"
		case attributeMore:
			for kind, value := range attributesOf(value) {
				if kind == attributeBPFID && len(value) >= 4 {
					id = nativeUint32(value)
				}
			}
		}
	}
	if !bpf {
		return 0
	}
	return id
}
