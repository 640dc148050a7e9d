package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// maxServices is how many services there can be: the addresses of 198.18.0.0/15,
// which RFC 2544 sets apart for benchmarks, without the first and the last.
const maxServices = 1<<17 - 2

// servicePort is the port of every service.
const servicePort = 80

// Service is the virtual address of a service, counted from 0: 198.18.0.1:80 for
// the first. It leads to the backend for who connects from within the cgroup,
// while there are more than i services, and to nothing of tare's for all others.
// Of a number that no service can have it is the zero AddrPort.
func (d *Datapath) Service(i int) netip.AddrPort { return service(i) }

func service(i int) netip.AddrPort {
	if i < 0 || i >= maxServices {
		return netip.AddrPort{}
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 198<<24|18<<16+uint32(i)+1)
	return netip.AddrPortFrom(netip.AddrFrom4(a), servicePort)
}

// serviceSize is the bytes of an address in the map, as struct bpf_sock_addr has
// them: user_ip4, then user_port, each a u32 that holds the network's order.
const serviceSize = 8

func packed(a netip.AddrPort) (out [serviceSize]byte) {
	ip := a.Addr().As4()
	copy(out[:4], ip[:])
	port := binary.NativeEndian.Uint16([]byte{byte(a.Port() >> 8), byte(a.Port())})
	binary.NativeEndian.PutUint32(out[4:], uint32(port))
	return out
}

// SetServices fills the map up to n services, or empties it down to n, one entry
// at a time; n may be 0, and up to Options.Most.
func (d *Datapath) SetServices(n int) error {
	if n < 0 || n > d.most {
		return fmt.Errorf("reference datapath: %d services: the map is made for 0 to %d", n, d.most)
	}
	backend := packed(d.backend)
	for ; d.count < n; d.count++ {
		if err := d.services.Update(packed(service(d.count)), backend, ebpf.UpdateAny); err != nil {
			return fmt.Errorf("reference datapath: add service %d of %d: %w", d.count, n, err)
		}
	}
	for ; d.count > n; d.count-- {
		err := d.services.Delete(packed(service(d.count - 1)))
		if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
			return fmt.Errorf("reference datapath: remove service %d: %w", d.count-1, err)
		}
	}
	return nil
}
