package proof

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
	"github.com/tare-bench/tare/record"
)

// The source of a cell's data, cache or disk, is known in advance on these targets. Bare
// runtimes use the file systems of the host, as the floor does. gVisor accepts O_DIRECT
// but does not pass it on.
func TestCacheIsDistinguishedFromDiskInRuntimes(t *testing.T) {
	tellCaches(t, append([]string{"host", "runc"}, runsc()...))
}

// tellCaches runs a job per direction on every volume, with and without the page cache.
// Each job processes its file four times and, unlike fio by default, lets the cache keep
// it. Three quarters of cached reads therefore hit the cache, on any machine and with any
// other disk load.
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
			check.Equal(t, fmt.Sprintf("%s, %s on %s, %s", c.Target, table.Job, table.Volume, table.Cache), int64(c.Of("transferred").Value), 4*16*mib)
		}
	}
	check.Equal(t, "cells", cells, len(targets)*3*2)
	for _, target := range targets {
		name, _, _ := strings.Cut(target, "=")
		check.That(t, slices.ContainsFunc(rec.Places, func(p record.Place) bool { return p.Target == name && len(p.Mounts) > 1 }),
			"%s: unknown file systems", name)
	}
}

// verdicts returns the acceptable verdicts. Other disk writes, and reads by an engine
// outside tare's control, are indistinguishable from the job's, so a short job may prove
// nothing. Cached results must never be attributed to the device.
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

// A workload queries how much of a file in its image is in the page cache, and then reads
// the file. Nothing else reads it. A cold start finds nothing cached. A warm start finds
// the bytes read by the previous start.
func TestOnlyWarmStartsFindTheirImageInTheCache(t *testing.T) {
	docker := engines.Docker(t)
	p, out := folders(t), t.TempDir()
	own := filepath.Join(p.dir, "big")
	must.OK(t, os.WriteFile(own, bytes.Repeat([]byte("tare"), big/4), 0o600))
	archive := shell(t)
	// The workload is ready once it has read the file and written the result.
	does := func(file, out string) string {
		return fmt.Sprintf(`bash -c 'found=$(fincore -bnro RES %s); cat %[1]s >/dev/null; echo $found >>%s/said; echo finished; trap "exit 0" TERM; while :; do sleep 0.05; done'`, file, out)
	}
	const rounds = 3
	for _, cache := range []string{"cold", "warm"} {
		recs, judged, _ := tare(p, lifecycle.Judge, "lifecycle", "host", "runc", "docker/runc", "--cache", cache, "--ops", "run", "--rounds", strconv.Itoa(rounds), "--warmup", "1",
			"--docker-host", docker.Host, "--image", archive, "--user", "0:0", "--mount", out+":/out", "--ready", "log:^finished$",
			"--command", does("/srv/big", "/out"), "--host-command", does(own, out))
		must.That(t, judged[0].Failed == 0 && len(recs[0].Batches) == 3*(rounds+1),
			"%s: %d failed, %d batches", cache, judged[0].Failed, len(recs[0].Batches))
		text := must.Read(t, filepath.Join(out, "said"))
		must.OK(t, os.Remove(filepath.Join(out, "said")))
		said := strings.Fields(text)
		must.That(t, len(said) == len(recs[0].Batches), "%s: %d workloads, results %q", cache, len(recs[0].Batches), said)
		found := map[string][]string{}
		for i, b := range recs[0].Batches { // one at a time
			found[b.Target] = append(found[b.Target], said[i])
			check.That(t, (b.Dropped == record.DroppedNode) == (cache == "cold"), "%s: %q was dropped before %s", cache, b.Dropped, b.Target)
		}
		t.Logf("%s: bytes in memory at each start: %v", cache, found)
		warm := false
		for target, bytes := range found {
			warm = warm || slices.Contains(bytes[1:], strconv.Itoa(big))
			check.That(t, cache != "cold" || !slices.ContainsFunc(bytes, func(n string) bool { return n != "0" }),
				"cold starts of %s found %q bytes of %d in memory", target, bytes, big)
		}
		if cache == "warm" && !warm { // other processes may evict it, but not each time
			t.Errorf("no warm start found all %d bytes in memory", big)
		}
	}
}
