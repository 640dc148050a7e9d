// Package datapath is a small data path in BPF, for machines that have none: a
// lookup of services at connect, and a look at connections' events, attached to a
// cgroup of tare's own and to nothing else.
//
// It stands for what a mesh does in the kernel. The programs are made of
// instructions when they are loaded; no compiler and no file takes part. Their
// links end with the process, however it ends.
//
// Needed: Linux 5.7, for links to cgroups; CAP_BPF and CAP_NET_ADMIN. With Linux
// 5.17 the loop that makes programs heavy is the kernel's own (bpf_loop), before
// it is one that the verifier can walk through, and shorter.
package datapath

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
)

// Options say what is attached where.
type Options struct {
	Cgroup   string         // path of a folder of cgroup v2
	Services int            // entries in the map of services, each with a backend; at least 1
	Most     int            // up to how many entries SetServices may bring it; 0: Services
	Grow     bool           // the map takes memory when an entry comes, not for Most of them at once
	Backend  netip.AddrPort // where all services lead
	Heavy    int64          // rounds of a loop in every run of every program
	Sockops  bool           // attach the look at connections' events, too
	Name     string         // what maps and programs are called begins with it, up to 6 bytes: "tare"
}

// ErrUnsupported is what Attach and Place return, wrapped with the reason, where
// the kernel cannot.
var ErrUnsupported = errors.New("not supported by this kernel")

// Datapath is programs that are attached. Its methods may be called from several
// goroutines.
type Datapath struct {
	mu       sync.Mutex
	name     string
	backend  netip.AddrPort
	count    int // services in the map
	most     int
	loop     loop
	closed   bool
	services *ebpf.Map // hash: serviceSize bytes of address → as many of the backend's
	rounds   *ebpf.Map // array of one u64
	events   *ebpf.Map // array for each CPU: times of each operation of a sock_ops, u64
	programs []*ebpf.Program
	links    []*link.RawLink
	ids      []uint32
}

// Attach loads the programs and attaches them to the cgroup. It counts from then
// on for sockets that are made in it or below it.
func Attach(o Options) (_ *Datapath, err error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("reference datapath: %w", err)
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
	d := &Datapath{name: o.Name, backend: o.Backend, most: o.most(), loop: l}
	defer func() {
		if err != nil {
			_ = d.Close()
			err = fmt.Errorf("reference datapath: %w", err)
		}
	}()
	if err := d.makeMaps(o); err != nil {
		return nil, err
	}
	if err := d.setHeavy(o.Heavy); err != nil {
		return nil, err
	}
	if err := d.setServices(o.Services); err != nil {
		return nil, err
	}
	// Events first, so that a connection's are seen from its beginning.
	if o.Sockops {
		if err := d.attach(group, suffixSockops, ebpf.SockOps, ebpf.AttachCGroupSockOps, d.sockops()); err != nil {
			return nil, err
		}
	}
	if err := d.attach(group, suffixConnect4, ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, d.connect4()); err != nil {
		return nil, err
	}
	return d, nil
}

// maxName leaves room for "_connect4" in the 15 bytes that the kernel keeps.
const maxName = 6

func (o *Options) check() error {
	if o.Name == "" {
		o.Name = "tare"
	}
	for _, c := range []byte(o.Name) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !letter || len(o.Name) > maxName {
			return fmt.Errorf("the name %q is not one to %d letters, digits or _", o.Name, maxName)
		}
	}
	if o.Services < 1 || o.most() < o.Services || o.most() > MaxServices {
		return fmt.Errorf("%d services, later up to %d: from 1 to %d are possible", o.Services, o.most(), MaxServices)
	}
	if !o.Backend.Addr().Is4() || o.Backend.Addr().IsUnspecified() || o.Backend.Port() == 0 {
		return fmt.Errorf("the backend %q is not an IPv4 address with a port", o.Backend)
	}
	return nil
}

func (o *Options) most() int {
	if o.Most == 0 {
		return o.Services
	}
	return o.Most
}

// openOwn opens a folder of cgroup v2 that is one of tare's own, or below one.
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

// own goes by where the descriptor really leads.
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

// theLoop is the loop that the kernel can do.
func theLoop() (loop, error) {
	err := features.HaveProgramHelper(ebpf.SocketFilter, asm.FnLoop)
	switch {
	case err == nil:
		return helperLoop{}, nil
	case errors.Is(err, ebpf.ErrNotSupported):
		return walkedLoop{}, nil
	}
	return nil, explained("ask the kernel for bpf_loop", err)
}

// makeMaps makes what programs look things up in.
func (d *Datapath) makeMaps(o Options) error {
	var flags uint32
	if o.Grow {
		flags = unix.BPF_F_NO_PREALLOC
	}
	for _, one := range []struct {
		to   **ebpf.Map
		spec ebpf.MapSpec
	}{
		{&d.services, ebpf.MapSpec{Name: d.name + "_services", Type: ebpf.Hash, KeySize: serviceSize, ValueSize: serviceSize, MaxEntries: uint32(d.most), Flags: flags}},
		{&d.rounds, ebpf.MapSpec{Name: d.name + "_rounds", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1}},
		{&d.events, ebpf.MapSpec{Name: d.name + "_events", Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: operations}},
	} {
		if one.to == &d.events && !o.Sockops {
			continue
		}
		m, err := ebpf.NewMap(&one.spec)
		if err != nil {
			return explained("make the map "+one.spec.Name, err)
		}
		*one.to = m
	}
	return nil
}

// attach loads a program and attaches it by a link of its own. There is no
// falling back on an attachment without a link: that would outlive the process.
func (d *Datapath) attach(group *os.File, suffix string, kind ebpf.ProgramType, where ebpf.AttachType, ins asm.Instructions) error {
	p, err := load(d.name+suffix, kind, where, ins)
	if err != nil {
		return err
	}
	d.programs = append(d.programs, p)
	info, err := p.Info()
	if err != nil {
		return explained("ask for the id of "+d.name+suffix, err)
	}
	id, ok := info.ID()
	if !ok {
		return fmt.Errorf("the kernel gives programs no ids: %w (Linux 4.13)", ErrUnsupported)
	}
	d.ids = append(d.ids, uint32(id))
	l, err := link.AttachRawLink(link.RawLinkOptions{Target: int(group.Fd()), Program: p, Attach: where})
	if err != nil {
		return explained("attach "+d.name+suffix+" to the cgroup", err)
	}
	d.links = append(d.links, l)
	return nil
}

func load(name string, kind ebpf.ProgramType, where ebpf.AttachType, ins asm.Instructions) (*ebpf.Program, error) {
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Name: name, Type: kind, AttachType: where, License: license, Instructions: ins})
	if err != nil {
		return nil, explained("load the program "+name, err)
	}
	return p, nil
}

// explained says what was tried, and why the kernel may have refused.
func explained(tried string, err error) error {
	switch {
	case errors.Is(err, ebpf.ErrNotSupported), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("%s: %w: %w", tried, ErrUnsupported, err)
	case errors.Is(err, unix.EPERM): // not EACCES: so the verifier refuses
		return fmt.Errorf("%s: %w; it needs CAP_BPF and CAP_NET_ADMIN, which root has (before Linux 5.11 also locked memory, ulimit -l)", tried, unix.EPERM)
	}
	return fmt.Errorf("%s: %w", tried, err)
}

// IDs are those of its programs, as the kernel has them: of the sock_ops where
// there is one, then of connect4.
func (d *Datapath) IDs() []uint32 { return append([]uint32(nil), d.ids...) }

// Close detaches the programs and gives back everything. Connections that were
// made stay as they are. A second time it does nothing.
func (d *Datapath) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	var errs []error
	for _, l := range d.links {
		errs = append(errs, l.Close())
	}
	for _, p := range d.programs {
		errs = append(errs, p.Close())
	}
	for _, m := range []*ebpf.Map{d.services, d.rounds, d.events} {
		errs = append(errs, m.Close()) // of nil, too
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("reference datapath: detach: %w", err)
	}
	return nil
}

// errClosed is returned by what is asked after Close.
var errClosed = errors.New("reference datapath: it is closed")
