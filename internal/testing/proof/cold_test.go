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
	"github.com/tare-bench/tare/internal/testing/engines"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// A workload asks the kernel how much of a file of its image is in the page cache, and then
// reads all of it. Nothing else reads that file: a cold start finds nothing of it, so that
// it comes from the disk each time, and a warm one what the start before has read.
func TestAColdStartFindsNothingOfItsImageInMemoryAndAWarmOneAllOfIt(t *testing.T) {
	docker := engines.Docker(t)
	p, out := folders(t), t.TempDir()
	own := filepath.Join(p.dir, "big")
	must.OK(t, os.WriteFile(own, bytes.Repeat([]byte("tare"), big/4), 0o600))
	archive := shell(t)
	// It is ready once the file was read and what it found is written.
	does := func(file, out string) string {
		return fmt.Sprintf(`bash -c 'found=$(fincore -bnro RES %s); cat %[1]s >/dev/null; echo $found >>%s/said; echo finished; trap "exit 0" TERM; while :; do sleep 0.05; done'`, file, out)
	}
	const rounds = 3
	for _, cache := range []string{"cold", "warm"} {
		recs, judged, _ := tare(p, lifecycle.Judge, "lifecycle", "host", "runc", "docker/runc", "--cache", cache, "--ops", "run", "--rounds", strconv.Itoa(rounds), "--warmup", "1",
			"--docker-host", docker.Host, "--image", archive, "--user", "0:0", "--mount", out+":/out", "--ready", "log:^finished$",
			"--command", does("/srv/big", "/out"), "--host-command", does(own, out))
		if judged[0].Failed > 0 || len(recs[0].Batches) != 3*(rounds+1) {
			t.Fatalf("%s: %d failed, %d batches", cache, judged[0].Failed, len(recs[0].Batches))
		}
		text := must.Read(t, filepath.Join(out, "said"))
		must.OK(t, os.Remove(filepath.Join(out, "said")))
		said := strings.Fields(text)
		if len(said) != len(recs[0].Batches) {
			t.Fatalf("%s: %d workloads said %q", cache, len(recs[0].Batches), said)
		}
		found := map[string][]string{}
		for i, b := range recs[0].Batches { // one at a time
			found[b.Target] = append(found[b.Target], said[i])
			if (b.Dropped == record.DroppedNode) != (cache == "cold") {
				t.Errorf("%s: %q was dropped before %s", cache, b.Dropped, b.Target)
			}
		}
		t.Logf("%s: bytes in memory at each start: %v", cache, found)
		warm := false
		for target, bytes := range found {
			warm = warm || slices.Contains(bytes[1:], strconv.Itoa(big))
			if cache == "cold" && slices.ContainsFunc(bytes, func(n string) bool { return n != "0" }) {
				t.Errorf("cold starts of %s found %q bytes of %d in memory", target, bytes, big)
			}
		}
		if cache == "warm" && !warm { // others on the machine may drop it meanwhile, but not each time
			t.Errorf("no warm start found its %d bytes in memory", big)
		}
	}
}
