// Package datapath is a small BPF data path for machines without one. It looks up
// services at connect and observes connection events. It is only ever attached to a
// cgroup created by tare.
// It stands in for the kernel part of a service mesh. The programs of src/datapath.c
// are embedded in compiled form, so no compiler or file is needed. The kernel removes
// their links when the process ends, for whatever reason.
// It needs Linux 5.7 (links to cgroups), CAP_BPF and CAP_NET_ADMIN. From Linux 5.17 the
// loop that makes programs heavy uses bpf_loop. Before that it is a shorter loop that
// the verifier can check.
package datapath

import (
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

//go:generate go tool bpf2go -cc clang-14 -strip llvm-strip-14 -target bpfel -output-dir=$BPF_OUT -no-global-types datapath src/datapath.c -- -Wall -Werror -I../../../../node/tracer/src
//go:generate sh -c "rm ${DOLLAR}{BPF_OUT:-.}/datapath_bpfel.go"

// object is the compiled src/datapath.c. The Go code of bpf2go is not needed; the
// names below are sufficient.
//
//go:embed datapath_bpfel.o
var object []byte

// Names of maps and programs in src/datapath.c.
const (
	mapRounds    = "tare_rounds"
	mapServices  = "tare_services"
	progConnect4 = "tare_connect4"
	progSockops  = "tare_sockops"
	progTwin     = "tare_twin"
)

// Options configure Attach.
type Options struct {
	Cgroup  string         // path of a cgroup v2 directory
	Most    int            // capacity of the service map, at least 1
	Grow    bool           // allocate memory per entry instead of for Most entries at once
	Backend netip.AddrPort // target of all services
}

// errUnsupported is wrapped by errors of Attach and Place if the kernel lacks a
// feature.
var errUnsupported = errors.New("not supported by this kernel")

// Datapath is the set of attached programs, initially with one service. It is not safe
// for concurrent use.
type Datapath struct {
	backend  netip.AddrPort
	count    int // services in the map
	most     int
	loop     loop
	loaded   *ebpf.Collection
	services *ebpf.Map
	rounds   *ebpf.Map
	links    []*link.RawLink
	ids      []uint32
}

// Attach loads the programs and attaches them to the cgroup. From then on they run for
// sockets created in that cgroup or below it.
func Attach(o Options) (*Datapath, error) {
	if o.Most < 1 || o.Most > maxServices {
		return nil, fmt.Errorf("reference datapath: up to %d services: from 1 to %d are possible", o.Most, maxServices)
	}
	if !o.Backend.Addr().Is4() || o.Backend.Addr().IsUnspecified() || o.Backend.Port() == 0 {
		return nil, fmt.Errorf("reference datapath: the backend %q is not an IPv4 address with a port", o.Backend)
	}
	group, err := openOwn(o.Cgroup)
	if err != nil {
		return nil, fmt.Errorf("reference datapath: %w", err)
	}
	defer group.Close()
	l, err := theLoop()
	if err != nil {
		return nil, fmt.Errorf("reference datapath: %w", err)
	}
	return attach(o, group, l)
}

func attach(o Options, group *os.File, l loop) (_ *Datapath, err error) {
	d := &Datapath{backend: o.Backend, most: o.Most, loop: l}
	defer func() {
		if err != nil {
			_ = d.Close()
			err = fmt.Errorf("reference datapath: %w", err)
		}
	}()
	if err := d.load(o.Grow); err != nil {
		return nil, err
	}
	if err := d.SetServices(1); err != nil {
		return nil, err
	}
	// Attach the events first, so that no connection is missed.
	if err := d.attach(group, progSockops, ebpf.AttachCGroupSockOps); err != nil {
		return nil, err
	}
	return d, d.attach(group, progConnect4, ebpf.AttachCGroupInet4Connect)
}

// openOwn opens a cgroup v2 directory created by tare, or one below it.
func openOwn(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the cgroup: %w", err)
	}
	if err := own(f); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// own checks that the open directory belongs to tare. It uses the descriptor, because a
// path may lead elsewhere.
func own(f *os.File) error {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return fmt.Errorf("the file system of %q: %w", f.Name(), err)
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		return fmt.Errorf("%q is not a folder of cgroup v2: only there can programs be attached", f.Name())
	}
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return fmt.Errorf("where %q leads: %w", f.Name(), err)
	}
	for part := range strings.SplitSeq(real, "/") {
		if strings.HasPrefix(part, cgroup.Prefix) && part != cgroup.Prefix {
			return nil
		}
	}
	return fmt.Errorf("the cgroup %q is not one of tare's (%s…): refused", real, cgroup.Prefix)
}

// load loads the maps and programs into the kernel.
func (d *Datapath) load(grow bool) error {
	spec, err := d.loop.spec(progConnect4, progSockops)
	if err != nil {
		return err
	}
	services := spec.Maps[mapServices]
	services.MaxEntries = uint32(d.most)
	if grow {
		services.Flags = unix.BPF_F_NO_PREALLOC
	}
	if d.loaded, err = ebpf.NewCollection(spec); err != nil {
		return explained("load maps and programs", err)
	}
	d.services, d.rounds = d.loaded.Maps[mapServices], d.loaded.Maps[mapRounds]
	return nil
}

// attach attaches a program with its own link. It never falls back to an attachment
// without a link, which would outlive the process.
func (d *Datapath) attach(group *os.File, name string, where ebpf.AttachType) error {
	p := d.loaded.Programs[name]
	info, err := p.Info()
	if err != nil {
		return explained("ask for the id of "+name, err)
	}
	id, ok := info.ID()
	if !ok {
		return fmt.Errorf("the kernel gives programs no ids: %w (Linux 4.13)", errUnsupported)
	}
	d.ids = append(d.ids, uint32(id))
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(group.Fd()), Program: p, Attach: where})
	if err != nil {
		return explained("attach "+name+" to the cgroup", err)
	}
	d.links = append(d.links, l)
	return nil
}

// explained adds the attempted operation and the likely reason to an error.
func explained(tried string, err error) error {
	switch {
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%s: %w: %w", tried, errUnsupported, err)
	case errors.Is(err, unix.EPERM): // not EACCES, which the verifier returns
		return fmt.Errorf("%s: %w; it needs CAP_BPF and CAP_NET_ADMIN, which root has (before Linux 5.11 also locked memory, ulimit -l)", tried, unix.EPERM)
	}
	return fmt.Errorf("%s: %w", tried, err)
}

// IDs returns the kernel's ids of the programs: sock_ops, then connect4.
func (d *Datapath) IDs() []uint32 { return slices.Clone(d.ids) }

// Close detaches the programs and frees all resources. Existing connections are not
// affected. Close may be called more than once.
func (d *Datapath) Close() error {
	var errs []error
	for _, l := range d.links {
		errs = append(errs, l.Close())
	}
	d.links = nil
	if d.loaded != nil {
		d.loaded.Close()
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("reference datapath: detach: %w", err)
	}
	return nil
}
