package proof

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// Whose figures a cell's are is known beforehand: on the host, in a bare runtime,
// which sees the host's file systems as the floor does, and in gVisor, which takes
// O_DIRECT and keeps it to itself.
func TestACacheIsToldFromADiskInRuntimes(t *testing.T) {
	tellCaches(t, append([]string{"host", "runc"}, runsc()...))
}

// tellCaches runs a job of each direction on every volume, past the page cache and
// through it, which goes through its file four times and, unlike fio by itself, lets
// the cache keep it: so three quarters of what is read through one have been read
// already, however slow the machine and whatever others do to its disk.
func tellCaches(t *testing.T, targets []string, flags ...string) {
	need.Tool(t, "fio")
	for _, rw := range []string{"read", "write"} {
		t.Run(rw, func(t *testing.T) { tellCachesOf(t, rw, targets, flags) })
	}
}

func tellCachesOf(t *testing.T, rw string, targets, flags []string) {
	file := filepath.Join(t.TempDir(), rw+".fio")
	must.Write(t, file, "["+rw+"]\nrw="+rw+"\nbs=512k\nsize=16M\nloops=4\ninvalidate=0\nfilename=f\n")
	rec, j := weighStorage(t, append(slices.Clone(flags), "--volume", "rootfs,bind,tmpfs", "--cache", "direct,buffered", "--jobfile", file, "--rounds", "1", "--ceiling", "0", "--settle", "0", "--drop", "files"), targets)
	cells := 0
	for _, table := range j.Tables {
		for _, c := range table.Cells {
			cells++
			if c.Rounds != 1 {
				t.Errorf("%s, %s on %s, %s: no figures: %+v", c.Target, table.Job, table.Volume, table.Cache, c.Failure)
				continue
			}
			if want := verdicts(rw, c.Target, table.Volume, table.Cache); !slices.Contains(want, c.Verdict) {
				t.Errorf("%s, %s on %s, %s: %q because %s; want one of %q", c.Target, table.Job, table.Volume, table.Cache, c.Verdict, strings.Join(c.Because, "; "), want)
			}
			if bytes := int64(c.Total.Bytes.Value); bytes != 4*16*mib {
				t.Errorf("%s, %s on %s, %s: %d bytes were moved", c.Target, table.Job, table.Volume, table.Cache, bytes)
			}
		}
	}
	if want := len(targets) * 3 * 2; cells != want {
		t.Errorf("%d cells, want %d", cells, want)
	}
	for _, target := range targets {
		name, _, _ := strings.Cut(target, "=")
		if !slices.ContainsFunc(rec.Places, func(p record.Place) bool { return p.Target == name && len(p.Mounts) > 1 }) {
			t.Errorf("%s: its file systems are not known", name)
		}
	}
}

// verdicts are those that can be right. What others write to a disk meanwhile, and read
// where an engine's process is not tare's to wait for, cannot be told from the job's, so
// that one this short proves nothing there; what a cache took never passes for the
// device's.
func verdicts(rw, target, volume, cache string) []storage.Verdict {
	sandboxed, counted := strings.HasSuffix(target, "runsc"), !strings.Contains(target, "/")
	direct, ram := cache == record.CacheDirect, volume == record.VolumeTmpfs
	var right []storage.Verdict
	switch {
	case direct && !ram && !sandboxed:
		return []storage.Verdict{storage.Device, storage.TooShort, storage.Noisy}
	case direct:
		right = []storage.Verdict{storage.NotDirect}
	case sandboxed:
		right = []storage.Verdict{storage.GuestCache, storage.HostCache}
	default:
		right = []storage.Verdict{storage.HostCache}
	}
	if ram || rw == storage.RWRead && (sandboxed || counted) {
		return right
	}
	return append(right, storage.TooShort, storage.Noisy)
}

func weighStorage(t *testing.T, flags, targets []string) (*record.Record, *storage.Judgement) {
	t.Helper()
	recs, judged, _ := tare(folders(t), storage.Judge, slices.Concat([]string{"storage"}, flags, targets)...)
	return recs[0], judged[0]
}
