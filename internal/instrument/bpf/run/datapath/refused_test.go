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
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/thread"
)

func TestAttachRefusesWhatItCannotDo(t *testing.T) {
	backend := netip.MustParseAddrPort("127.0.0.1:8080")
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"no service", Options{Backend: backend}, "up to 0 services"},
		{"more services than addresses", Options{Most: maxServices + 1, Backend: backend}, "are possible"},
		{"no backend", Options{Most: 1}, "is not an IPv4 address"},
		{"a backend of IPv6", Options{Most: 1, Backend: netip.MustParseAddrPort("[::1]:80")}, "is not an IPv4 address"},
		{"a backend without a port", Options{Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:0")}, "is not an IPv4 address"},
		{"no cgroup", Options{Most: 1, Backend: backend}, "open the cgroup"},
		{"a folder that is no cgroup", Options{Most: 1, Backend: backend, Cgroup: t.TempDir()}, "is not a folder of cgroup v2"},
		{"a file", Options{Most: 1, Backend: backend, Cgroup: os.Args[0]}, "not a directory"},
	} {
		d, err := Attach(c.o)
		if err == nil {
			_ = d.Close()
			t.Errorf("%s: attached", c.name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.name, err, c.want)
		}
	}
}

func TestAttachRefusesAGroupThatIsNotTares(t *testing.T) {
	g := group(t)
	o := Options{Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:8080")}
	link := filepath.Join(t.TempDir(), cgroup.Prefix+"x")
	must.OK(t, os.Symlink(filepath.Dir(g), link))
	for name, path := range map[string]string{
		"the root":                            filepath.Dir(g),
		"the root by a path through ours":     g + "/..",
		"the root by a link called like ours": link,
		"the root by a path through a link":   link + "/.",
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

func TestWithoutRightsAttachSaysWhichAreNeeded(t *testing.T) {
	o := Options{Cgroup: group(t), Most: 1, Backend: netip.MustParseAddrPort("127.0.0.1:8080")}
	err := thread.Apart(func() error { // it has no rights any more afterwards
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
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "CAP_BPF") {
		t.Errorf("got %v", err)
	}
	nothingLeft(t, nil)
}
