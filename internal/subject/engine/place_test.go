package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestAPlaceIsWhatTheWorkloadAsksFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for name, c := range map[string]struct {
		w    subject.Workload
		want string
	}{
		"nothing":  {want: ""},
		"a volume": {w: subject.Workload{Volume: dir}, want: "--volume " + dir + "/1:/data:Z"},
		"a tmpfs":  {w: subject.Workload{Tmpfs: 4096}, want: "--tmpfs /data:nosuid,nodev,mode=1777,size=4096,exec"},
	} {
		p, err := OpenPlaces(subject.Env{Lanes: 2, Workload: c.w})
		must.OK(t, err)
		place := p.On(1)
		if got := strings.Join(place.Flags(place.Tmpfs...), " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if err := (*Places)(nil).Close(); err != nil {
		t.Errorf("a session that has none yet: %v", err)
	}
}

func TestADeviceIsGivenByItsOwnNode(t *testing.T) {
	dir := t.TempDir()
	link, node := filepath.Join(dir, "pci-0:1"), filepath.Join(dir, "node")
	if out, err := exec.Command("mknod", node, "b", "7", "200").CombinedOutput(); err != nil {
		t.Fatalf("mknod takes root: %v: %s", err, out)
	}
	must.OK(t, os.Symlink("node", link))
	p, err := OpenPlaces(subject.Env{Lanes: 1, Workload: subject.Workload{Device: link}})
	must.OK(t, err)
	if got := p.On(0).Flags(); !slices.Equal(got, []string{"--device", node + ":/dev/tare:rwm"}) {
		t.Errorf("%q", got)
	}
	if p, err := OpenPlaces(subject.Env{Workload: subject.Workload{Device: "/dev/null"}}); err == nil {
		t.Errorf("a character device is taken: %+v", p)
	}
}

func TestWhatASandboxCannotHaveIsUnsupported(t *testing.T) {
	device, volume := subject.Workload{Device: "/dev/x"}, subject.Workload{Volume: "/v"}
	for name, c := range map[string]struct {
		err  error
		want string // "" for no error
	}{
		"a volume here":      {err: Elsewhere(volume, "daemon", "")},
		"a volume elsewhere": {Elsewhere(volume, "daemon", "by ssh"), "a volume on a daemon elsewhere (by ssh)"},
		"a device elsewhere": {Elsewhere(device, "service", "by ssh"), "a device on a service elsewhere (by ssh)"},
		"a tmpfs elsewhere":  {err: Elsewhere(subject.Workload{Tmpfs: 1}, "daemon", "by ssh")},
	} {
		if (c.err == nil) != (c.want == "") || c.err != nil && (!errors.Is(c.err, subject.ErrUnsupported) || !strings.Contains(c.err.Error(), c.want)) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}
