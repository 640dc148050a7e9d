package datapath

import (
	"testing"

	"github.com/cilium/ebpf/features"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAMapThatGrowsTakesMemoryWithItsServices(t *testing.T) {
	d := attached(t, Options{Most: 1000, Grow: true})
	first := occupied(t, d)
	last := first
	for _, n := range []int{100, 1000} {
		must.OK(t, d.SetServices(n))
		now := occupied(t, d)
		t.Logf("%d services: %d bytes", n, now)
		if !counted(t) {
			if now != first {
				t.Errorf("%d services take %d bytes, of which the kernel knows no more than that one takes %d", n, now, first)
			}
			continue
		}
		if most := last + int64(n)*256; now < last+int64(n-100)*serviceSize*2 || now <= last || now > most {
			t.Errorf("%d services take %d bytes, less services %d", n, now, last)
		}
		last = now
	}
	must.OK(t, d.SetServices(1))
	if now := occupied(t, d); now != first {
		t.Errorf("one service takes %d bytes, and %d after there were more", first, now)
	}
}

func TestAMapThatDoesNotGrowTakesAllItsMemoryAtOnce(t *testing.T) {
	d := attached(t, Options{Most: 1000})
	first := occupied(t, d)
	if first < 1000*2*serviceSize {
		t.Errorf("a map for 1000 services takes %d bytes", first)
	}
	must.OK(t, d.SetServices(1000))
	if now := occupied(t, d); now != first {
		t.Errorf("a map for 1000 services takes %d bytes with 1000, %d with 1", now, first)
	}
}

// counted reports whether the kernel counts what a map takes. Before Linux 6.4 it
// says what the keys and values of a full map take, whatever is in it.
func counted(t *testing.T) bool {
	t.Helper()
	version, err := features.LinuxVersionCode()
	must.OK(t, err)
	return version >= 6<<16+4<<8
}

// occupied is what the kernel says of the map of services.
func occupied(t *testing.T, d *Datapath) int64 {
	t.Helper()
	info, err := d.services.Info()
	must.OK(t, err)
	bytes, said := info.Memlock()
	if !said {
		t.Fatal("the kernel says nothing of the map's memory")
	}
	return int64(bytes)
}
