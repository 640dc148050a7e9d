package engine

import (
	"reflect"
	"testing"
)

func TestLogsAreReadAsFarAsTheyAreWritten(t *testing.T) {
	const stamp = "2026-11-21T03:35:23.457524923+00:00 "
	for text, want := range map[string]string{
		stamp + "stdout F tare-probe/1 x 5\n":                                       "tare-probe/1 x 5\n",
		stamp + "stdout P tare-pro\n" + stamp + "stdout F be/1 x 5\n":               "tare-probe/1 x 5\n",
		stamp + "stdout F tare-probe/1 x 5":                                         "",
		"rubbish\n" + stamp + "stderr F a\n" + stamp + "other F b\n" + stamp:        "a\n",
		stamp + "stdout F:x tag\n":                                                  "tag\n",
		`{"log":"a\n","stream":"stdout"}` + "\n" + `{"log":` + "\n" + `{"log":"b"}`: "a\n",
		stamp + "stdout F \n":                                                       "\n",
		"":                                                                          "",
	} {
		if got := ParseLog([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestAServiceThatMayNotRaiseLimitsIsGivenItsOwn(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tpodman\nCapEff:\t000001ffffffffff\n": true,
		"CapEff:\t000001fffeffffff\n":                false,
		"Name:\tpodman\n":                            true,
		"CapEff:\tx\n":                               true,
	} {
		if got := mayRaise(status); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
	got := hardLimits("Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max processes             96000                unlimited            processes \nMax open files            1024                 16384                files     \n")
	if want := []Rlimit{{"nproc", 1048576}, {"nofile", 16384}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}
