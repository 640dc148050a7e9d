package overhead

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/option"
)

func TestPhasesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Phase{
		"idle":           {"idle", PhaseIdle, 0, 0},
		"10M":            {"10M", PhaseFio, 10 << 20, 0},
		" 1G ":           {"1G", PhaseFio, 1 << 30, 0},
		"512K":           {"512K", PhaseFio, 512 << 10, 0},
		"16T":            {"16T", PhaseFio, 16 << 40, 0},
		"hold 64MiB":     {"hold 64MiB", PhaseHold, 64 << 20, 0},
		"hold  64M":      {"hold 64M", PhaseHold, 64e6, 0},
		"hold 1048576":   {"hold 1048576", PhaseHold, 1 << 20, 0},
		"spin 0.5cpu":    {"spin 0.5cpu", PhaseSpin, 0, 0.5},
		"spin 0.5":       {"spin 0.5", PhaseSpin, 0, 0.5},
		"spin 2 cpus":    {"spin 2 cpus", PhaseSpin, 0, 2},
		"spin\t.25 cpu ": {"spin .25 cpu", PhaseSpin, 0, 0.25},
	} {
		if got, err := ParsePhase(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                     "write idle, load, the size of a file",
		"busy":                 "write idle, load, the size of a file",
		"10":                   "write idle, load, the size of a file", // bytes
		"10485760":             "write idle, load, the size of a file",
		"10MiB":                "write idle, load, the size of a file", // 10^6 to fio
		"10MB":                 "write idle, load, the size of a file",
		"10m":                  "write idle, load, the size of a file",
		"1.5G":                 "write idle, load, the size of a file",
		"-1M":                  "write idle, load, the size of a file",
		"+1M":                  "write idle, load, the size of a file",
		"M":                    "write idle, load, the size of a file",
		"1GG":                  "write idle, load, the size of a file",
		"9223372036854775808K": "from 512K",
		"9223372036854775807T": "from 512K, which is one block, to 16T",
		"511K":                 "from 512K",
		"17T":                  "to 16T",
		"hold":                 "is not an amount of memory",
		"hold -1":              "is not an amount of memory",
		"hold 1B":              "1 bytes cannot be held",
		"hold 17TiB":           "cannot be held",
		"spin":                 "is not a number of CPUs",
		"spin 0":               "from 0.01 to 1024 are allowed",
		"spin -1":              "is not a number of CPUs",
		"spin NaN":             "is not a number of CPUs",
		"spin 1e2":             "is not a number of CPUs",
		"spin 0x1p4":           "is not a number of CPUs",
		"spin 1025":            "is not a number of CPUs",
		"spin 0.5 gpu":         "is not a number of CPUs",
		"spin 1.2.3":           "is not a number of CPUs",
	} {
		if got, err := ParsePhase(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
}

func TestPodFixedIsReadAsKubernetesWritesIt(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]PodFixed{
		"250m,160Mi":             {CPU: 250, Memory: 160 << 20},
		"160Mi,250m":             {CPU: 250, Memory: 160 << 20},
		" 1Gi , 0.25 ":           {CPU: 250, Memory: 1 << 30},
		"1,128M":                 {CPU: 1000, Memory: 128e6},
		"128M,1":                 {CPU: 1000, Memory: 128e6},
		"250m,167772160":         {CPU: 250, Memory: 167772160},
		"167772160,250m":         {CPU: 250, Memory: 167772160},
		"0.001,0":                {CPU: 1, Memory: 0},
		"0m,160Mi":               {CPU: 0, Memory: 160 << 20},
		"cpu=1,memory=167772160": {CPU: 1000, Memory: 167772160},
		"memory=160Mi, cpu = 2":  {CPU: 2000, Memory: 160 << 20},
	} {
		if got, err := parsePodFixed(text); err != nil || got != want {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                "it needs two parts, with one comma between them",
		"250m":            "it needs two parts, with one comma between them",
		"250m,160Mi,1":    "it needs two parts",
		"1,2":             "which of the two is memory has no sign",
		"250m,0.5":        "both parts are cpu",
		"1Gi,160Mi":       "both parts are memory",
		"250m,1.5Gi":      `"1.5Gi" is not an amount of memory`,
		"0.0001,160Mi":    "no finer than 1m",
		"0.5m,160Mi":      `"0.5m" is not an amount of CPU`,
		"2000000m,160Mi":  "is not an amount of CPU",
		"-1,160Mi":        "both parts are memory",
		"cpu=-1,160Mi":    "is not an amount of CPU",
		"cpu=1e3,160Mi":   "is not an amount of CPU",
		"0,0Mi":           "it reserves nothing",
		"250m,much":       "is not an amount of memory",
		"cpu=1,cpu=2":     "both parts are cpu",
		"disk=1Gi,160Mi":  "both parts are memory",
		"250m,memory=1.5": "is not an amount of memory",
	} {
		if got, err := parsePodFixed(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "such as 250m,160Mi") {
			t.Errorf("%q gives %+v, %v", text, got, err)
		}
	}
}

// What was read as a phase can be written and read again, and is the same.
func FuzzParsePhase(f *testing.F) {
	for _, s := range []string{"idle", "10M", "16T", "hold 64MiB", "hold  7B", "spin 0.5cpu", "spin .5", "spin 1e9", "hold -1", "10MiB", "\x1b[2J"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePhase(s)
		if err != nil {
			return
		}
		if again, err := ParsePhase(p.Name); err != nil || again != p {
			t.Fatalf("%+v is %+v, %v", p, again, err)
		}
		switch {
		case p.Kind == PhaseIdle && (p.Bytes != 0 || p.CPUs != 0),
			p.Kind == PhaseFio && (p.Bytes < minFile || p.Bytes > maxFile),
			p.Kind == PhaseHold && (p.Bytes < minHold || p.Bytes > maxHold),
			p.Kind == PhaseSpin && !(p.CPUs >= minSpin && p.CPUs <= 1024):
			t.Fatalf("%+v", p)
		}
	})
}

func TestAScaleMakesFilesSmallerInWholeBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		scale        float64
		phases, want string
	}{
		{0.1, "idle,10M,1G,10G", "idle,1M,102M,1G"},
		{0.001, "10M,hold 64MiB,spin 1,1G", "512K,hold 64MiB,spin 1,1M"},
		{0.00001, "10M,1G,10G", "512K"}, // once
		{10, "10M,1G", "100M,10G"},
		{1000, "16T", "16T"},
	} {
		if got := strings.Join(scaled(strings.Split(c.phases, ","), c.scale), ","); got != c.want {
			t.Errorf("%g of %s is %s, want %s", c.scale, c.phases, got, c.want)
		}
	}
}

func TestListsOfPhasesAreCheckedTogether(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"idle,idle": "idle is there twice", "1G,1024M": "1024M is 1G once more", "spin 1,spin 1.0cpu": "spin 1.0cpu is spin 1 once more", "": "is not a phase",
		strings.Repeat("1G,", 99) + "1G": "101 are too many: at most 100",
	} {
		o := Defaults()
		o.Phases = strings.Split(text, ",")
		if err := option.Check(&o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	o := Defaults()
	o.Phases = []string{"spin 1"}
	phases, err := o.Resolved()
	if want := []Phase{{Name: "idle", Kind: PhaseIdle}, {Name: "spin 1", Kind: PhaseSpin, CPUs: 1}}; err != nil || !slices.Equal(phases, want) {
		t.Errorf("idle is not first: %+v, %v", phases, err)
	}
}
