package host

import (
	"slices"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

func TestAContainersPathsAreTheHostsOwn(t *testing.T) {
	with := &session{env: subject.Env{Dir: "/run/x"}, device: engine.Device{Node: "/dev/loop7"}}
	without := &session{env: subject.Env{Dir: "/run/x"}}
	for _, c := range []struct {
		s         *session
		arg, want string
	}{
		{with, "/data", "/run/x/volume/1"},
		{with, "/data/a b", "/run/x/volume/1/a b"},
		{with, "--directory=/data", "--directory=/run/x/volume/1"},
		{with, "of=/data/file", "of=/run/x/volume/1/file"},
		{with, "--filename=/data/a:/data/b", "--filename=/run/x/volume/1/a:/run/x/volume/1/b"},
		{with, "of=/data/a:b", "of=/run/x/volume/1/a:b"},
		{with, "/dev/tare", "/dev/loop7"},
		{with, "--filename=/dev/tare", "--filename=/dev/loop7"},
		{with, "if=/dev/tare", "if=/dev/loop7"},
		{with, "/dev/tare/x", "/dev/tare/x"},
		{with, "/dev/tare2", "/dev/tare2"},
		{with, "/database", "/database"},
		{with, "server:/data", "server:/data"},
		{with, "--name=a=/data", "--name=a=/data"},
		{with, "echo /data", "echo /data"},
		{without, "of=/dev/tare", "of=/dev/tare"},
	} {
		if got := c.s.onHost(1, []string{"/probe", c.arg}); !slices.Equal(got, []string{"/run/x/probe", c.want}) {
			t.Errorf("%s: %q, want %q", c.arg, got, c.want)
		}
	}
}
