package docker

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moby/moby/api/types/container"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/enginetest"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestWhatIsOfThisMachineIsRefusedOnADaemonElsewhere(t *testing.T) {
	e, _ := serve(t, map[string]string{"GET /containers/json": "[]"})
	path := filepath.Join(t.TempDir(), "x")
	for what, w := range map[string]subject.Workload{"a volume": {Volume: path}, "a device": {Device: path}} {
		env := enginetest.Environment(t, 1)
		env.Workload = w
		_, err := weigh(t, e, "", viaAPI).Open(t.Context(), env)
		if !errors.Is(err, subject.ErrUnsupported) || !strings.Contains(err.Error(), what+" on a daemon elsewhere") {
			t.Error(err)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("the folder was made: %v", err)
		}
	}
}

func TestMemoryIsShownAsByDockerStats(t *testing.T) {
	for name, c := range map[string]struct {
		stats string
		want  int64
	}{
		"cgroup v1":                  {`{"usage":1000,"stats":{"total_inactive_file":300,"inactive_file":200}}`, 700},
		"cgroup v2":                  {`{"usage":1000,"stats":{"inactive_file":200}}`, 800},
		"more cache than usage":      {`{"usage":1000,"stats":{"total_inactive_file":3000,"inactive_file":2000}}`, 1000},
		"nothing but usage":          {`{"usage":1000}`, 1000},
		"none":                       {`{}`, -1},
		"a number that is no amount": {`{"usage":18446744073709551615}`, -1},
	} {
		var m container.MemoryStats
		must.OK(t, json.Unmarshal([]byte(c.stats), &m))
		if got := shownMemory(m); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}
