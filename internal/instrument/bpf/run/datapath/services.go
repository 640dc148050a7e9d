package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// maxServices is the maximum number of services. Their addresses are those of
// 198.18.0.0/15, which RFC 2544 reserves for benchmarks, without the first and the
// last.
const maxServices = 1<<17 - 2

const servicePort = 80

// Service returns the virtual address of service i, 198.18.0.1:80 for i = 0. Clients
// inside the cgroup reach the backend there if service i exists. Clients elsewhere do
// not. It returns the zero AddrPort if i is out of range.
func (d *Datapath) Service(i int) netip.AddrPort { return service(i) }

func service(i int) netip.AddrPort {
	if i < 0 || i >= maxServices {
		return netip.AddrPort{}
	}
	var a [4]byte
	binary.BigEndian.PutUint32(a[:], 198<<24|18<<16+uint32(i)+1)
	return netip.AddrPortFrom(netip.AddrFrom4(a), servicePort)
}

// serviceSize is the size in bytes of a map key, as in struct bpf_sock_addr: user_ip4,
// then user_port, each a u32 in network byte order.
const serviceSize = 8

func packed(a netip.AddrPort) (out [serviceSize]byte) {
	ip := a.Addr().As4()
	copy(out[:4], ip[:])
	port := binary.NativeEndian.Uint16([]byte{byte(a.Port() >> 8), byte(a.Port())})
	binary.NativeEndian.PutUint32(out[4:], uint32(port))
	return out
}

// SetServices adds or removes map entries, one at a time, until there are n services.
// n is from 0 to Options.Most.
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
