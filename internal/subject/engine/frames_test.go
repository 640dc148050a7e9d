package engine

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/node/procs"
)

func TestOutputIsTakenOutOfItsFrames(t *testing.T) {
	for name, c := range map[string]struct{ in, out, err, fails string }{
		"both streams":           {"\x01\x00\x00\x00\x00\x00\x00\x02ab\x02\x00\x00\x00\x00\x00\x00\x01c\x01\x00\x00\x00\x00\x00\x00\x01d", "abd", "c", ""},
		"nothing":                {"", "", "", ""},
		"an empty frame":         {"\x01\x00\x00\x00\x00\x00\x00\x00", "", "", ""},
		"the daemon's own error": {"\x03\x00\x00\x00\x00\x00\x00\x02no", "", "no", ""},
		"a cut header":           {"\x01\x00\x00", "", "", "within a frame's header"},
		"a cut frame":            {"\x01\x00\x00\x00\xff\xff\xff\xffabc", "abc", "", "within a frame"},
		"no frames at all":       {"hello, world", "", "", "not in frames"},
		"more than is kept":      {"\x01\x00\x00\x00\x00\x00\x00\x0a0123456789\x01\x00\x00\x00\x00\x00\x00\x01x", "01234567", "", ""},
	} {
		out, said := Kept{Most: 8}, Kept{Most: 8}
		err := Unframe(strings.NewReader(c.in), &out, &said)
		if out.String() != c.out || said.String() != c.err || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %q, %q, %v", name, out.String(), said.String(), err)
		}
	}
}

func TestAGroupIsBelievedOnlyWhereTheMemoryIsCharged(t *testing.T) {
	const v1 = "5:memory:/pods/libpod-a\n4:cpu,cpuacct:/pods/libpod-a\n0::/user\n"
	for _, c := range []struct{ text, path, want string }{
		{v1, "/pods/libpod-a", "/pods/libpod-a"},
		{v1, "/pods", "/pods"},
		{v1, "/user", ""},
		{v1, "/pods/libpod", ""},
		{"0::/x/container\n", "/x", "/x"},
		{"nonsense", "/x", ""},
	} {
		if got := charged(procs.ParseGroups(c.text), c.path); got != c.want {
			t.Errorf("%q in %q: %q", c.path, c.text, got)
		}
	}
	for _, path := range []string{"", "/", "relative"} {
		if got := Charged(1, path); got != "" {
			t.Errorf("%q: %q", path, got)
		}
	}
}

func TestOnlyARunsOwnNamesOfImagesAreTheRuns(t *testing.T) {
	for name, want := range map[string]int{
		"localhost/tare-probe:0123456789ab-abcdefgh": 1, "localhost/tare-probe:0123456789ab-abcdefgi": 0, "localhost/tare-probe:0123456789ab": 0,
		"localhost/tare-probe:0123456789ab-": 0, "localhost/tare-probe:0123456789abc-abcdefgh": 0, "localhost/tare-probe:latest": 0,
		"localhost/tare-probe": 0, "docker.io/tare-probe:0123456789ab-abcdefgh": 0,
	} {
		if got := OwnImages([]string{name}, "abcdefgh"); len(got) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}
