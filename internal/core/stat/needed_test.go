package stat

import "testing"

func TestPointsNeededAreTheFewestInWhichAnyChangeIsFound(t *testing.T) {
	t.Parallel()
	for _, series := range []int{1, 2, 36, 100} {
		need := PointsNeeded(series)
		t.Logf("%d series: %d points", series, need)
		for n, want := range map[int]int{need - 1: 0, need: 1} {
			all := make([][]float64, series)
			for i := range all {
				for k := range n {
					v := 1 + 0.001*float64(k*7%5)
					if i == 0 && k >= n/2 {
						v *= 100
					}
					all[i] = append(all[i], v)
				}
			}
			if got := len(Changes(all)[0].Changes); got != want {
				t.Errorf("%d points of %d series: %d changes, want %d", n, series, got, want)
			}
		}
	}
}
