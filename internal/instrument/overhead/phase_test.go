package overhead

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/testing/golden"
)

func TestPhasesAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/phases.txt", func(_ *testing.T, text string) (any, error) { return ParsePhase(text) })
}

func TestPodFixedIsReadAsKubernetesWritesIt(t *testing.T) {
	t.Parallel()
	golden.Lines(t, "testdata/overheads.txt", func(t *testing.T, text string) (any, error) {
		o, err := parsePodFixed(text)
		if err != nil && !strings.Contains(err.Error(), "such as 250m,160Mi") {
			t.Errorf("%q: no example: %v", text, err)
		}
		return fmt.Sprintf("%dm and %d bytes", o.CPU, o.Memory), err
	})
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
