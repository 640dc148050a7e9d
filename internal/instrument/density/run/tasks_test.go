package run

import "testing"

func TestTaskReserveIsATwentiethOfTheLimit(t *testing.T) {
	for limit, floor := range map[int64]int64{100: 64, 20000: 1000} {
		if l := ownTasks(90, limit); l.Left != 90 || l.Total != limit || l.Floor != floor {
			t.Errorf("%+v, want a floor of %d", l, floor)
		}
	}
}
