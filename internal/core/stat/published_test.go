package stat

import (
	"math"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

// published is every table of the iSulad performance report, 2020: averages in
// milliseconds of Docker, of Podman (client) or CRI-O (CRI), and of iSulad, and
// the two VS columns.
//
// In one cell the report's own percentage is wrong: ARM, 100 × rm, against
// Podman. It prints -92.33%; its averages, 10943 and 926, give -91.54%, which
// stands here.
var published = []struct {
	row                   string
	docker, other, isulad float64
	vsDocker, vsOther     string
}{
	{"client on x86: create", 287, 180, 131, "-54.36%", "-27.22%"},
	{"client on x86: start", 675, 916, 315, "-53.33%", "-65.61%"},
	{"client on x86: stop", 349, 513, 274, "-21.49%", "-46.59%"},
	{"client on x86: rm", 72, 187, 60, "-16.67%", "-67.91%"},
	{"client on x86: run", 866, 454, 359, "-58.55%", "-20.93%"},
	{"client on x86: 100 × create", 4995, 3993, 1911, "-61.74%", "-52.14%"},
	{"client on x86: 100 × start", 10126, 5537, 3861, "-61.87%", "-30.27%"},
	{"client on x86: 100 × stop", 8066, 11100, 4268, "-47.09%", "-61.55%"},
	{"client on x86: 100 × rm", 3220, 4319, 1967, "-38.91%", "-54.46%"},
	{"client on x86: 100 × run", 9822, 5979, 4392, "-55.28%", "-26.54%"},
	{"client on ARM: create", 401, 361, 177, "-55.86%", "-50.97%"},
	{"client on ARM: start", 1160, 1143, 523, "-54.91%", "-54.24%"},
	{"client on ARM: stop", 634, 576, 395, "-37.70%", "-31.42%"},
	{"client on ARM: rm", 105, 398, 89, "-15.24%", "-77.64%"},
	{"client on ARM: run", 1261, 1071, 634, "-49.72%", "-40.80%"},
	{"client on ARM: 100 × create", 14563, 12081, 4172, "-71.35%", "-65.47%"},
	{"client on ARM: 100 × start", 23420, 15370, 5294, "-77.40%", "-65.56%"},
	{"client on ARM: 100 × stop", 22234, 16973, 8619, "-61.24%", "-49.22%"},
	{"client on ARM: 100 × rm", 937, 10943, 926, "-1.17%", "-91.54%"},
	{"client on ARM: 100 × run", 28091, 16280, 9015, "-67.91%", "-44.63%"},
	{"CRI on x86: runp", 681, 321, 239, "-64.90%", "-25.55%"},
	{"CRI on x86: stopp", 400, 356, 272, "-32.00%", "-23.60%"},
	{"CRI on x86: run in a pod", 1249, 525, 382, "-69.42%", "-27.24%"},
	{"CRI on x86: stop in a pod", 554, 759, 564, "+1.81%", "-25.69%"},
	{"CRI on x86: 100 × runp", 13998, 4946, 3887, "-72.23%", "-21.41%"},
	{"CRI on x86: 100 × stopp", 8402, 4834, 4631, "-44.88%", "-4.20%"},
	{"CRI on x86: 100 × rmp", 2076, 1388, 1073, "-48.31%", "-22.69%"},
	{"CRI on x86: 100 × run in a pod", 28158, 9077, 5630, "-80.01%", "-37.98%"},
	{"CRI on x86: 100 × stop in a pod", 9395, 8443, 8196, "-12.76%", "-2.93%"},
	{"CRI on x86: 100 × rm in a pod", 4415, 3739, 1524, "-65.48%", "-59.24%"},
	{"CRI on ARM: runp", 1339, 2366, 536, "-59.97%", "-77.35%"},
	{"CRI on ARM: stopp", 443, 419, 255, "-42.44%", "-39.14%"},
	{"CRI on ARM: run in a pod", 2069, 3039, 338, "-83.66%", "-88.88%"},
	{"CRI on ARM: stop in a pod", 684, 688, 214, "-68.71%", "-68.90%"},
	{"CRI on ARM: 100 × runp", 27802, 29197, 9827, "-64.65%", "-66.34%"},
	{"CRI on ARM: 100 × stopp", 14429, 11173, 6394, "-55.69%", "-42.77%"},
	{"CRI on ARM: 100 × rmp", 771, 9007, 1790, "+132.17%", "-80.13%"},
	{"CRI on ARM: 100 × run in a pod", 54087, 43521, 5284, "-90.23%", "-87.86%"},
	{"CRI on ARM: 100 × stop in a pod", 18317, 19108, 2641, "-85.58%", "-86.18%"},
	{"CRI on ARM: 100 × rm in a pod", 1592, 18390, 2162, "+35.80%", "-88.24%"},
}

func TestVersusGivesThePublishedPercentages(t *testing.T) {
	for _, p := range published {
		check.Equal(t, p.row+", VS Docker", FormatVersus(p.docker, p.isulad), p.vsDocker)
		check.Equal(t, p.row+", VS other", FormatVersus(p.other, p.isulad), p.vsOther)
	}
}

func TestFormatVersus(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name     string
		old, new float64
		want     string
	}{
		{"a gain has a minus", 287, 131, "-54.36%"},
		{"a loss has a plus", 554, 564, "+1.81%"},
		{"no change has no sign", 5, 5, "0.00%"},
		{"what rounds to nothing has no sign", 1e6, 1e6 - 1, "0.00%"},
		{"the smallest that is printed has one", 20000, 19999, "-0.01%"},
		{"more than double is more than a hundred", 771, 1790, "+132.17%"},
		{"from zero there is no percentage", 0, 5, "?"},
		{"to zero there is one", 5, 0, "-100.00%"},
		{"from what is no number there is none", nan, 5, "?"},
		{"nor to infinity", 5, math.Inf(1), "?"},
	} {
		check.Equal(t, tt.name, FormatVersus(tt.old, tt.new), tt.want)
	}
}

func TestTrimmed(t *testing.T) {
	nan := math.NaN()
	for _, tt := range []struct {
		name   string
		values []float64
		want   float64
		ok     bool
	}{
		// The report prints averages only. The middle eight of these average to
		// its 287 ms for a create on Docker.
		{"of ten rounds the middle eight count", []float64{280, 294, 900, 281, 293, 282, 292, 283, 291, 12}, 287, true},
		{"of equal largest values one is dropped", []float64{1, 2, 9, 9}, 5.5, true},
		{"of equal smallest values one is dropped", []float64{1, 1, 2, 9}, 1.5, true},
		{"three leave the middle one", []float64{9, 1, 4}, 4, true},
		{"two leave nothing", []float64{1, 2}, nan, false},
		{"none leave nothing", nil, nan, false},
		{"what is no number is not dropped as the largest", []float64{1, 2, 3, nan}, nan, false},
		{"nor is infinity", []float64{1, 2, 3, math.Inf(1)}, nan, false},
	} {
		if got, ok := Trimmed(tt.values); !same(got, tt.want) || ok != tt.ok {
			t.Errorf("%s: got %v %v, want %v %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}
