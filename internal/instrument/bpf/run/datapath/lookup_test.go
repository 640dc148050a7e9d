package datapath

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/thread"
)

func TestServiceReachesBackendOnlyFromTheCgroup(t *testing.T) {
	g := group(t)
	b := newBackend(t)
	d := attached(t, Options{Cgroup: g, Most: 1000, Backend: b.at})
	must.OK(t, d.SetServices(1000))
	in, out := clientIn(t, g), clientIn(t, "")
	for _, c := range []struct {
		name string
		from func(string, netip.AddrPort, int) int
		to   netip.AddrPort
		want int
	}{
		{"first service, inside", in, d.Service(0), 3},
		{"service above 256, inside", in, d.Service(700), 3},
		{"last service, inside", in, d.Service(999), 3},
		{"unknown service, inside", in, d.Service(1000), 0},
		{"other port of a service, inside", in, netip.AddrPortFrom(d.Service(0).Addr(), 81), 0},
		{"other address, inside", in, b.at, 3},
		{"first service, outside", out, d.Service(0), 0},
		{"other address, outside", out, b.at, 3},
	} {
		before := b.got.Load()
		if got := c.from("tcp", c.to, 3); got != c.want || b.got.Load()-before != int64(c.want) {
			t.Errorf("%s: %d of 3 connected, the backend accepted %d; want %d", c.name, got, b.got.Load()-before, c.want)
		}
	}
}

func TestServicesChangeWhileAttached(t *testing.T) {
	g := group(t)
	b := newBackend(t)
	d := attached(t, Options{Cgroup: g, Most: 100, Backend: b.at})
	connect := clientIn(t, g)
	for _, n := range []int{100, 1, 0, 50} {
		must.OK(t, d.SetServices(n))
		for _, i := range []int{0, 1, 49, 50, 99} {
			want := 0
			if i < n {
				want = 1
			}
			got := connect("tcp", d.Service(i), 1)
			check.That(t, got == want, "%d services, number %d: %d connected, want %d", n, i, got, want)
		}
	}
	for _, n := range []int{-1, 101} {
		err := d.SetServices(n)
		check.That(t, err != nil, "%d services of at most 100 were accepted", n)
	}
}

func TestDatapathsAreIndependent(t *testing.T) {
	g1, g2 := group(t), group(t)
	b1, b2 := newBackend(t), newBackend(t)
	d1 := attached(t, Options{Cgroup: g1, Backend: b1.at})
	d2 := attached(t, Options{Cgroup: g2, Backend: b2.at})
	counting(t)
	got := clientIn(t, g1)("tcp", d1.Service(0), 5)
	check.That(t, got == 5 && b1.got.Load() == 5 && b2.got.Load() == 0, "client of the first: %d of 5, backends %d and %d", got, b1.got.Load(), b2.got.Load())
	got = clientIn(t, g2)("tcp", d2.Service(0), 7)
	check.That(t, got == 7 && b1.got.Load() == 5 && b2.got.Load() == 7, "client of the second: %d of 7, backends %d and %d", got, b1.got.Load(), b2.got.Load())
	for d, want := range map[*Datapath]int64{d1: 5, d2: 7} {
		n, _ := runs(t, d.IDs()[1])
		active, _, err := d.connections()
		check.That(t, err == nil && n == want && active == want, "%d runs, %d connections (%v); want %d", n, active, err, want)
	}
	must.OK(t, d1.Close())
	check.Equal(t, "connections after the other datapath was closed", clientIn(t, g2)("tcp", d2.Service(0), 1), 1)
}

func TestServiceAddressesAreDistinctBenchmarkAddresses(t *testing.T) {
	within := netip.MustParsePrefix("198.18.0.0/15")
	seen := map[netip.AddrPort]bool{}
	for i := range maxServices {
		a := service(i)
		must.That(t, within.Contains(a.Addr()) && !seen[a] && a.Port() != 0, "service %d is at %v", i, a)
		seen[a] = true
	}
	first, last := service(0), service(maxServices-1)
	check.That(t, first.String() == "198.18.0.1:80" && last.String() == "198.19.255.254:80", "from %v to %v", first, last)
	for _, i := range []int{-1, maxServices} {
		check.That(t, !service(i).IsValid(), "service %d is at %v, want nowhere", i, service(i))
	}
}

func TestAttachRefusesInvalidOptions(t *testing.T) {
	backend := netip.MustParseAddrPort("127.0.0.1:8080")
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"no services", Options{Backend: backend}, "up to 0 services"},
		{"more services than addresses", Options{Most: maxServices + 1, Backend: backend}, "are possible"},
		{"no backend", Options{Most: 1}, "is not an IPv4 address"},
		{"IPv6 backend", Options{Most: 1, Backend: netip.MustParseAddrPort("[::1]:80")}, "is not an IPv4 address"},
		{"backend without a port", Options{Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:0")}, "is not an IPv4 address"},
		{"no cgroup", Options{Most: 1, Backend: backend}, "open the cgroup"},
		{"folder that is not a cgroup", Options{Most: 1, Backend: backend, Cgroup: t.TempDir()}, "is not a folder of cgroup v2"},
		{"file", Options{Most: 1, Backend: backend, Cgroup: os.Args[0]}, "not a directory"},
	} {
		d, err := Attach(c.o)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s: attached", c.name)
			continue
		}
		check.That(t, strings.Contains(err.Error(), c.want), "%s: %v; want %q", c.name, err, c.want)
	}
}

func TestAttachRefusesForeignCgroup(t *testing.T) {
	g := group(t)
	o := Options{Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:8080")}
	link := filepath.Join(t.TempDir(), cgroup.Prefix+"x")
	must.OK(t, os.Symlink(filepath.Dir(g), link))
	for name, path := range map[string]string{
		"root":                                 filepath.Dir(g),
		"root by a path through tare's cgroup": g + "/..",
		"root by a link with tare's prefix":    link,
		"root by a path through a link":        link + "/.",
	} {
		o.Cgroup = path
		if d, err := Attach(o); err == nil {
			_ = d.Close()
			t.Errorf("%s: attached to %s", name, path)
		}
	}
	below := filepath.Join(g, "below")
	must.OK(t, os.Mkdir(below, 0o755))
	o.Cgroup = below
	attached(t, o)
}

func TestAttachReportsMissingCapabilities(t *testing.T) {
	o := Options{Cgroup: group(t), Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:8080")}
	err := thread.Apart(func() error { // it has no capabilities afterwards
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		if err := unix.Capset(&header, &none[0]); err != nil {
			return err
		}
		d, err := Attach(o)
		if err == nil {
			_ = d.Close()
		}
		return err
	})
	check.That(t, errors.Is(err, unix.EPERM) && strings.Contains(err.Error(), "CAP_BPF"), "got %v", err)
	nothingLeft(t, nil)
}
