package snapshot_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestWhatIsWrittenBetweenTheLastReadingAndTheFlushCounts(t *testing.T) {
	meter, err := snapshot.New()
	must.OK(t, err)
	defer meter.Close()
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	must.OK(t, err)
	defer f.Close()
	end := meter.End(t.Context(), nil, nil)
	const size = 16 << 20
	if _, err := f.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil { // so that the flush itself has nothing left to do
		t.Fatal(err)
	}
	if got := meter.Flush(end, ""); got < size {
		t.Errorf("%d bytes were flushed of %d", got, size)
	}
	if got := meter.Flush(nil, ""); got != -1 {
		t.Errorf("%d bytes since nobody knows when", got)
	}
}
