package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheWaitForLateEffectsGrowsWithTheCallsThatWereGivenUp(t *testing.T) {
	for n, want := range map[int]time.Duration{1: 1050 * time.Millisecond, 100: 6 * time.Second, 1000: 15 * time.Second} {
		if got := Late(n); got != want {
			t.Errorf("%d: %v, not %v", n, got, want)
		}
	}
}

func TestWhatIsOwedIsNamed(t *testing.T) {
	broken := errors.New("no answer")
	if err := Owed(nil, broken); !errors.Is(err, broken) || err.Error() != broken.Error() {
		t.Errorf("%v", err)
	}
	if err := Owed([]string{"a"}, nil); err != nil {
		t.Errorf("%v", err)
	}
	err := Owed(slices.Repeat([]string{"tare-x-0-1"}, 12), broken)
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), "12 calls") || !strings.Contains(err.Error(), "tare-x-0-1 and 2 more") {
		t.Errorf("%v", err)
	}
}
