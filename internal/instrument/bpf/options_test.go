package bpf

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/testing/golden"
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
	golden.Lines(t, "testdata/limits.txt", func(_ *testing.T, text string) (any, error) {
		cpus, instances, err := parseCPUs(text)
		return fmt.Sprintf("%g CPUs of %d clients", cpus, instances), err
	})
}
