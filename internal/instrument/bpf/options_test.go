package bpf

import (
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
)

func TestWhatIsOfTheReferenceDatapathOnlyIsRefusedOfOtherPrograms(t *testing.T) {
	t.Parallel()
	chosen := func(b *Options) { b.Datapath, b.Kmesh, b.URL = "", true, "http://10.0.0.1/" }
	for name, c := range map[string]struct {
		change func(*Options)
		want   string // "": it is right
	}{
		"chosen programs":                       {chosen, ""},
		"chosen programs, by https":             {func(b *Options) { chosen(b); b.URL = "https://10.0.0.1/" }, ""},
		"chosen programs with services":         {func(b *Options) { chosen(b); b.Services = []int{1, 100} }, "services: they are in the map of tare's own programs"},
		"chosen programs with one other number": {func(b *Options) { chosen(b); b.Services = []int{9} }, "services: they are in the map of tare's own programs"},
		"the reference datapath with services":  {func(b *Options) { b.Services = []int{1, 100} }, ""},
		"the reference datapath and a server":   {func(b *Options) { b.URL = "http://10.0.0.1:8080/" }, ""},
		"the reference datapath, by https":      {func(b *Options) { b.URL = "https://10.0.0.1/" }, "url: tare's own programs lead services to it"},
		"the same in capitals":                  {func(b *Options) { b.URL = "HTTPS://10.0.0.1/" }, "url: "},
		"a request that may take a day":         {func(b *Options) { b.Timeout = 24 * time.Hour }, "timeout: 24h"},
	} {
		b := DefaultsOfLoad()
		c.change(&b)
		err := option.Check(&b)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestALimitIsACountOfCPUsOrOfClientsWithTheirPart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text      string
		cpus      float64
		instances int
		wrong     bool
	}{
		{"1", 1, 1, false}, {"0.5", 0.5, 1, false}, {"250m", 0.25, 1, false}, {"4x250m", 1, 4, false}, {" 4 x 250m ", 1, 4, false},
		{"", 0, 0, true}, {"x", 0, 0, true}, {"0x1", 0, 0, true}, {"4x", 0, 0, true}, {"1000x1", 0, 0, true}, {"-1", 0, 0, true}, {"NaN", 0, 0, true},
	} {
		cpus, instances, err := parseCPUs(test.text)
		if (err != nil) != test.wrong || !test.wrong && (cpus != test.cpus || instances != test.instances) {
			t.Errorf("%q: %v, %d, %v", test.text, cpus, instances, err)
		}
	}
}
