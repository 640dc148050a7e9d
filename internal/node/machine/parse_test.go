package machine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

func TestParseLoad(t *testing.T) {
	golden.Cases(t, "testdata/load.txt", func(_ *testing.T, input string) string {
		got, err := ParseLoad([]byte(input))
		return orRefused(got, err)
	})
}

// orRefused returns how a value prints, or that there is none.
func orRefused(value any, err error) string {
	if err != nil {
		return "refused"
	}
	return fmt.Sprint(value)
}

func TestParseMemory(t *testing.T) {
	golden.Cases(t, "testdata/meminfo.txt", func(_ *testing.T, input string) string {
		var m Memory
		err := m.Parse([]byte(input))
		return orRefused(m.Total, err)
	})
}

func TestParseCPUList(t *testing.T) {
	golden.Cases(t, "testdata/cpulist.txt", func(_ *testing.T, input string) string {
		got, err := parseCPUList(input)
		return orRefused(len(got), err)
	})
}

func TestPrettyName(t *testing.T) {
	golden.Cases(t, "testdata/osrelease.txt", func(_ *testing.T, input string) string { return prettyName(input) })
}

func TestParseCPUInfo(t *testing.T) {
	golden.Cases(t, "testdata/cpuinfo.txt", func(_ *testing.T, input string) string {
		return fmt.Sprintf("%+v", parseCPUInfo(strings.NewReader(input)))
	})
	many := parseCPUInfo(strings.NewReader(strings.Repeat("model name: x\nmodel name: y\n", 100)))
	check.Equal(t, "more models than any machine has", many.models, []string{"x", "y"})
}

func TestCapabilities(t *testing.T) {
	c := must.Get(Root("testdata/v1").Capabilities())(t)
	if has, known := c.Has("CAP_KILL"); !has || !known {
		t.Error("CAP_KILL is in the mask and is not seen")
	}
	if has, known := c.Has("CAP_BPF"); has || known {
		t.Error("a kernel whose last capability is 37 knows no CAP_BPF")
	}
	if c.Grantable("CAP_SYS_ADMIN") {
		t.Error("CAP_SYS_ADMIN is outside the bounding set")
	}
	if _, known := c.Has("CAP_LUNCH"); known {
		t.Error("a capability that does not exist is known")
	}
	bad := tree(t, map[string]string{"proc/self/status": "Name:\tx\nCapEff:\tzz\nCapBnd:\t0\n"})
	if c, err := bad.Capabilities(); err == nil {
		t.Errorf("a mask that is no number: %+v", c)
	}
}

// FuzzParsers holds all parsers to what every input must give: an end, no
// panic, and values that a machine can have.
func FuzzParsers(f *testing.F) {
	f.Add("0.01 0.35 0.31 1/87 10696")
	f.Add("MemTotal:  16 kB\nSwapTotal: 3 kB\n")
	f.Add("0-3,8")
	f.Add("PRETTY_NAME=\"a\\\"\"\n")
	f.Add("model name\t: A\nflags\t: hypervisor\n")
	f.Add("CapEff:\t000001ffffffffff\nCapBnd:\t0\n")
	f.Add(base + "13 12 0:22 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n")
	f.Fuzz(func(t *testing.T, s string) {
		if load, err := ParseLoad([]byte(s)); err == nil && load < 0 {
			t.Errorf("ParseLoad(%q) = %v", s, load)
		}
		var m Memory
		err := m.Parse([]byte(s))
		if used, free := m.Huge(); err == nil && min(m.Total-1, m.Available, m.SwapTotal, m.SwapFree, used, free) < 0 {
			t.Errorf("Parse(%q) = %+v", s, m)
		}
		if cpus, err := parseCPUList(s); err == nil && (len(cpus) == 0 || len(cpus) > maxCPUs) {
			t.Errorf("parseCPUList(%q) has %d CPUs", s, len(cpus))
		}
		if info := parseCPUInfo(strings.NewReader(s)); len(info.models) > maxModels {
			t.Errorf("parseCPUInfo(%q) = %+v", s, info)
		}
		prettyName(s)
		statusMask(s, "CapEff")
		_, _ = readCgroups(strings.NewReader(s), "testdata/none")
	})
}
