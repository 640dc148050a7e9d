package machine

import (
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

func TestParseLoad(t *testing.T) {
	for _, c := range []struct {
		claim, in string
		want      float64
		ok        bool
	}{
		{"a kernel's line", "0.01 0.35 0.31 1/87 10696", 0.01, true},
		{"a load of thousands", "4711.50 1.00 1.00 1/87 10696", 4711.5, true},
		{"one decimal", "0.1 0.35 0.31 1/87 1", 0, false},
		{"no number", "NaN 0.35 0.31 1/87 1", 0, false},
		{"a negative number", "-1.00 0.35 0.31 1/87 1", 0, false},
		{"an exponent", "1e9 0.35 0.31 1/87 1", 0, false},
		{"nothing", "", 0, false},
	} {
		got, err := ParseLoad([]byte(c.in))
		if float64(got)/1000 != c.want || (err == nil) != c.ok {
			t.Errorf("%s: ParseLoad(%q) = %v, %v", c.claim, c.in, got, err)
		}
	}
}

func TestParseMemory(t *testing.T) {
	for _, c := range []struct {
		claim, in string
		ok        bool
	}{
		{"a short file with the total", "MemTotal: 16 kB\n", true},
		{"no total", "MemFree: 16 kB\n", false},
		{"another unit", "MemTotal: 16 MB\n", false},
		{"a negative number", "MemTotal: -16 kB\n", false},
		{"a number beyond all machines", "MemTotal: 9223372036854775807 kB\n", false},
	} {
		var m Memory
		if err := m.Parse([]byte(c.in)); (err == nil) != c.ok {
			t.Errorf("%s: Parse(%q) = %+v, %v", c.claim, c.in, m, err)
		}
	}
}

func TestParseCPUList(t *testing.T) {
	for _, c := range []struct {
		claim, in string
		want      int
		ok        bool
	}{
		{"one CPU", "0", 1, true},
		{"ranges and single ones", "0-3,8,10-11", 7, true},
		{"a CPU named twice counts once", "0-3,2", 4, true},
		{"nothing", "", 0, false},
		{"a range backwards", "3-0", 0, false},
		{"a range beyond all machines", "0-4294967295", 0, false},
		{"a stray comma", "0,", 0, false},
	} {
		got, err := parseCPUList(c.in)
		if len(got) != c.want || (err == nil) != c.ok {
			t.Errorf("%s: parseCPUList(%q) has %d, %v", c.claim, c.in, len(got), err)
		}
	}
}

func TestPrettyName(t *testing.T) {
	for _, c := range []struct{ claim, in, want string }{
		{"double quotes", `PRETTY_NAME="Debian GNU/Linux 12"`, "Debian GNU/Linux 12"},
		{"single quotes keep backslashes", `PRETTY_NAME='a\b'`, `a\b`},
		{"no quotes", "PRETTY_NAME=Alpine", "Alpine"},
		{"escapes in double quotes", `PRETTY_NAME="a \"b\" \$c \n"`, `a "b" $c \n`},
		{"the last one counts", "PRETTY_NAME=a\nPRETTY_NAME=b\n", "b"},
		{"a comment is none", "#PRETTY_NAME=a\n", ""},
		{"a lone quote", `PRETTY_NAME="`, `"`},
	} {
		if got := prettyName(c.in); got != c.want {
			t.Errorf("%s: prettyName(%q) = %q, want %q", c.claim, c.in, got, c.want)
		}
	}
}

func TestParseCPUInfo(t *testing.T) {
	for _, c := range []struct {
		claim, in  string
		models     string
		hypervisor bool
	}{
		{"x86", "model name\t: A\nflags\t: fpu hypervisor\n\nmodel name\t: A\nflags\t: fpu hypervisor\n", "A", true},
		{"a flag that only begins alike", "model name\t: A\nflags\t: hypervisor_x\n", "A", false},
		{"POWER", "processor\t: 0\ncpu\t\t: POWER9\n", "POWER9", false},
		{"RISC-V", "hart\t: 0\nisa\t: rv64\nuarch\t: sifive,u74-mc\n", "sifive,u74-mc", false},
		{"more models than any machine has", strings.Repeat("model name: x\nmodel name: y\n", 100), "x y", false},
		{"nothing", "", "", false},
	} {
		got := parseCPUInfo(strings.NewReader(c.in))
		if strings.Join(got.models, " ") != c.models || got.hypervisor != c.hypervisor {
			t.Errorf("%s: got %+v", c.claim, got)
		}
	}
}

func TestCapabilities(t *testing.T) {
	c, err := Root("testdata/v1").Capabilities()
	must.OK(t, err)
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
