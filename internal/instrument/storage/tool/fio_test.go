package tool

import (
	"fmt"
	"strings"
	"testing"
	"time"

	options "github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

const reporting = " --group_reporting=1 --lat_percentiles=1 --clat_percentiles=0 --percentile_list=50:95:99:99.9"

// A case is a job and a place: its program, its folder and what else there is of it. The results
// are the command line and the files that have to be there.
func TestToolsAreCalledAsPeopleCallThem(t *testing.T) {
	golden.Cases(t, "testdata/cases/called.txt", func(t *testing.T, input string) string {
		text, place, _ := strings.Cut(input, "\n")
		var j storage.Job
		must.OK(t, options.Unmarshal([]byte(text), &j))
		words := strings.Fields(place)
		at := Place{Program: strings.TrimSuffix(words[0], "none"), Dir: words[1], In: probe.InArgs}
		for _, word := range words[2:] {
			name, value, _ := strings.Cut(word, "=")
			switch name {
			case "direct":
				at.Direct = true
			case "device":
				at.Device = value
			case "limit":
				limit, err := time.ParseDuration(value)
				must.OK(t, err)
				at.Limit = limit
			}
		}
		args, err := Command(j, at)
		if err != nil {
			return err.Error()
		}
		files, err := Files(j, at)
		must.OK(t, err)
		if len(files) > 4 {
			return fmt.Sprintf("%s\n%d files, %v to %v", strings.Join(args, " "), len(files), files[0], files[len(files)-1])
		}
		return fmt.Sprintf("%s\nfiles %v", strings.Join(args, " "), files)
	})
}

func TestJobNamesBecomeNamesOfFiles(t *testing.T) {
	for name, want := range map[string]string{
		"randread 512k": "randread-512k", "../../etc/passwd": "etc-passwd", "global": "job-global", "Globally": "job-Globally",
		"随机读": "job-", "a:b$c/d": "a-b-c-d", "": "job-", strings.Repeat("x", 99): strings.Repeat("x", 60),
	} {
		if got := jobName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}
