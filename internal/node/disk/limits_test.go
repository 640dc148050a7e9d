package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func TestLimitsOfAGroupAndOfThoseAboveAreRead(t *testing.T) {
	devices, err := os.ReadDir("/sys/dev/block")
	if err != nil || len(devices) == 0 {
		t.Skip("this machine has no block device to be limited")
	}
	number := devices[0].Name()
	var major, minor int
	if _, err := fmt.Sscanf(number, "%d:%d", &major, &minor); err != nil {
		t.Fatal(err)
	}
	name := Name(major, minor)
	for version, files := range map[string]map[string]string{
		"1 0 0:1 / /cg/blkio rw - cgroup cgroup rw,blkio\n": {
			"/cg/blkio/a/b/blkio.throttle.read_bps_device":   number + " 1000\n9999:1 7\n",
			"/cg/blkio/a/b/blkio.throttle.write_iops_device": "\n",
			"/cg/blkio/a/blkio.throttle.write_iops_device":   number + " 20\nrubbish\n",
		},
		"1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n": {
			"/cg/cgroup.controllers": "io memory\n",
			"/cg/a/b/io.max":         number + " rbps=1000 wbps=max riops=max wiops=max\n9999:1 rbps=7\n",
			"/cg/a/io.max":           number + " wiops=20 rbps=max\n",
		},
	} {
		root := t.TempDir()
		files["/proc/self/mountinfo"] = version
		for path, text := range files {
			path = filepath.Join(root, path)
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		}
		want := []record.IOLimit{{Group: "/a/b", Device: name, Value: 1000}, {Group: "/a", Device: name, Write: true, IOs: true, Value: 20}}
		if got := Limits(machine.Root(root), []string{"/a/b", "/a/b", "/a"}); !slices.Equal(got, want) {
			t.Errorf("%s: %+v, want %+v", strings.Fields(version)[4], got, want)
		}
	}
}
