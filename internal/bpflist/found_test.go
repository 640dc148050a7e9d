package bpflist

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/node/bpfstat"
	"github.com/tare-bench/tare/record"
)

func TestNothingThatIsThereAndNothingThatWasChosenAreToldApart(t *testing.T) {
	chosen := bpfstat.Filter{Names: []string{"a*", "\x1b[2J"}, Owners: []int{7}, Kmesh: true}
	for name, c := range map[string]struct {
		filter bpfstat.Filter
		view   View
		wants  string // of the error; "": none
		text   string
	}{
		"nothing is loaded":                    {bpfstat.Filter{}, View{}, "", "no program is loaded\n"},
		"nothing is loaded of what was chosen": {chosen, View{}, "none is loaded at all", "no program is loaded\n"},
		"none was chosen": {chosen, View{loaded: 12}, `of the 12 programs that are loaded none is chosen by --kmesh, --name "a*", --name "\x1b[2J", --owner 7`,
			"12 programs are loaded, and none of the kind that was asked for\n"},
		"the only one was not chosen": {chosen, View{loaded: 1}, "of the 1 program that is loaded", "1 program is loaded, and none"},
		"one was chosen":              {chosen, View{Programs: []Program{{Program: record.Program{ID: 1, Kind: "xdp"}}}}, "", "xdp"},
	} {
		t.Run(name, func(t *testing.T) {
			s := shown{options: Options{Filter: c.filter}, view: &c.view}
			err := s.found()
			if (err == nil) != (c.wants == "") || err != nil && (!errors.Is(err, errNotFound) || !strings.Contains(err.Error(), c.wants)) {
				t.Errorf("%v", err)
			}
			var b strings.Builder
			if err := c.view.writeText(&b, 0, false); err != nil || !strings.Contains(b.String(), c.text) {
				t.Errorf("%v: %s", err, b.String())
			}
		})
	}
}

func TestProgramsThatCameAreDescribedAtTheEndOfAnInterval(t *testing.T) {
	soon := collector{listing: &bpfstat.Listing{}, described: time.Now(), took: time.Hour}
	if !soon.due(true) || soon.due(false) {
		t.Error("what came is not described, or what was there is again")
	}
	if soon.watch = true; soon.due(true) {
		t.Error("a watch takes an hour for each of its looks")
	}
}

// A program that is not chosen is counted, and what is chosen is listed as ever.
func TestAListSaysHowManyThereAreBesideWhatWasNotChosen(t *testing.T) {
	busy(t)
	var b strings.Builder
	err := Run(t.Context(), &b, Options{Filter: bpfstat.Filter{Names: []string{"tare_t_nosuch"}}})
	if !errors.Is(err, errNotFound) || !strings.Contains(err.Error(), `loaded none is chosen by --name "tare_t_nosuch"`) || !strings.Contains(b.String(), "loaded, and none of the kind") {
		t.Errorf("%v\n%s", err, b.String())
	}
}
