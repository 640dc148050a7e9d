package record

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// changed is a line of fullReading or fullSeries with parts of its text
// replaced.
func changed(t *testing.T, line any, kind Type, replace ...string) string {
	t.Helper()
	text, err := encodeLine(line, kind)
	if err != nil {
		t.Fatal(err)
	}
	out := string(text)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(out, replace[i]) {
			t.Fatalf("%s has no %s", out, replace[i])
		}
		out = strings.Replace(out, replace[i], replace[i+1], 1)
	}
	return out
}

func TestAnImpossibleReadingIsAProblem(t *testing.T) {
	tests := map[string]struct {
		replace []string
		want    string
	}{
		"of no target":                      {[]string{`"target":"containerd/runsc"`, `"target":""`}, "without a target"},
		"of an unknown moment":              {[]string{`"moment":"end"`, `"moment":"noon"`}, `moment "noon"`},
		"of a phase without a name":         {[]string{`"phase":"hold 64MiB"`, `"phase":""`}, "the end of a phase without a name"},
		"of a phase of a long name":         {[]string{`"hold 64MiB"`, `"` + strings.Repeat("x", 257) + `"`}, "phase is 257 bytes long"},
		"before time began":                 {[]string{`"time":6000`, `"time":-1`}, "time is -1"},
		"that took a year":                  {[]string{`"took":700`, `"took":99999999999999999`}, "more than a year"},
		"of a negative round":               {[]string{`"round":1`, `"round":-1`}, "round is -1"},
		"of more sandboxes than can be":     {[]string{`"sandboxes":2`, `"sandboxes":10001`}, "sandboxes 10001"},
		"of cgroups left before the end":    {[]string{`"moment":"end"`, `"left":["/x"],"moment":"end"`}, `only "after" can tell`},
		"with a failure of no kind":         {[]string{`"moment":"end"`, `"failure":{},"moment":"end"`}, "failure without a kind"},
		"of a node without memory":          {[]string{`"total":17179869184`, `"total":0`}, "host.total is 0"},
		"of negative memory":                {[]string{`"available":8589934592`, `"available":-5`}, "host: available is -5"},
		"of more memory than addresses":     {[]string{`"cached":1073741824`, `"cached":144115188075855873`}, "host: cached is 144115188075855873"},
		"of more listed than free":          {[]string{`"listed":16777216`, `"listed":8589934593`}, "listed 8589934593 is above free"},
		"of a negative load":                {[]string{`"load1":0.25`, `"load1":-0.25`}, "load1 is -0.25"},
		"of negative time of the CPUs":      {[]string{`"busy":9000000000000`, `"busy":-9`}, "busy is -9"},
		"of more processes than pids":       {[]string{`"others_count":90`, `"others_count":4194305`}, "others_count is 4194305"},
		"of work that ended before":         {[]string{`"begun":5000`, `"begun":5000,"ended":4999`}, "ended 4999 is before begun 5000"},
		"of work with negative CPUs":        {[]string{`"begun":5000`, `"begun":5000,"spin":-1`}, "spin is -1"},
		"of work holding negative memory":   {[]string{`"hold":67108864`, `"hold":-1`}, "work: hold is -1"},
		"of a relative cgroup":              {[]string{`"path":"/tare-run-x/c-0"`, `"path":"tare-run-x"`}, "begins at the root"},
		"of a cgroup twice":                 {[]string{`"/system.slice/containerd.service","charge"`, `"/tare-run-x/c-0","charge"`}, "is there twice"},
		"of a cgroup of no charge":          {[]string{`"charge":"pod"`, `"charge":""`}, "without a charge"},
		"of a charge of a long name":        {[]string{`"charge":"pod"`, `"charge":"` + strings.Repeat("x", 65) + `"`}, "charge is 65 bytes long"},
		"of a cgroup on lane -2":            {[]string{`"lane":0`, `"lane":-2`}, "lane is -2"},
		"of a cgroup with negative usage":   {[]string{`"usage":83886080`, `"usage":-1`}, "usage is -1"},
		"of a cgroup with negative time":    {[]string{`"cpu":7000000000`, `"cpu":-1`}, "cpu is -1"},
		"of pid 0":                          {[]string{`"pid":812`, `"pid":0`}, "process 0: a pid is from 1"},
		"of a pid beyond the kernel's":      {[]string{`"pid":812`, `"pid":4194305`}, "a pid is from 1 to 4194304"},
		"of a process twice":                {[]string{`"pid":700,"start":1200`, `"pid":812,"start":99000`}, "process 812 is there twice"},
		"of a process of no role":           {[]string{`"role":"sentry"`, `"role":""`}, "process 812: no role"},
		"of a role of a long name":          {[]string{`"role":"sentry"`, `"role":"` + strings.Repeat("x", 65) + `"`}, "role is 65 bytes long"},
		"of a process on lane 10000":        {[]string{`"runsc-sandbox among its arguments","lane":0`, `"","lane":10000`}, "lane is 10000"},
		"of a process with negative memory": {[]string{`"pss_anon":73400320`, `"pss_anon":-1`}, "pss_anon is -1"},
		"of negative threads":               {[]string{`"threads":3`, `"threads":-3`}, "threads is -3"},
		"of thread 0":                       {[]string{`"threads":[814]`, `"threads":[0]`}, "thread 0"},
		"of more names than threads":        {[]string{`"names":["exe","exe"]`, `"names":["exe"]`}, "1 names of 2 threads"},
		"of statistics of no source":        {[]string{`"source":"ctr task metrics"`, `"source":""`}, "without a source"},
		"of statistics below unknown":       {[]string{`"memory":73400320,"cpu":-1`, `"memory":-2,"cpu":-1`}, "memory is -2"},
		"of statistics of no lane":          {[]string{`"lane":0,"source"`, `"lane":-1,"source"`}, "engine: lane is -1"},
		"of negative problems":              {[]string{`"gone":1`, `"gone":-1`}, "problems: gone is -1"},
		"of too many examples":              {[]string{`"examples":["`, `"examples":["` + strings.Repeat(`","`, 100)}, "101 examples"},
		"of groups that are no list":        {[]string{`"groups":[{"path"`, `"groups":{},"x":[{"path"`}, "groups is not a list"},
		"of more groups than can be":        {[]string{`"groups":[{"path"`, `"groups":[` + strings.Repeat("{},", 1<<16) + `{"path"`}, "more than 65536 groups"},
		"of more processes than can be":     {[]string{`"processes":[`, `"processes":[` + strings.Repeat("{},", 1<<16)}, "more than 65536 processes"},
		"of more statistics than can be":    {[]string{`"engine":[`, `"engine":[` + strings.Repeat("{},", 1<<16)}, "more than 65536 of an engine's"},
		"of more sets than can be":          {[]string{`"groups":[{"paths"`, `"groups":[` + strings.Repeat("{},", 1<<17) + `{"paths"`}, "more than 131072 sets of cgroups"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			line := changed(t, fullReading(), TypeReading, test.replace...)
			good := changed(t, fullReading(), TypeReading)
			got, err := Read(strings.NewReader(headerLine + line + good))
			if err != nil || len(got.Readings) != 1 || len(got.Problems) != 1 {
				t.Fatalf("%v, %d readings, problems %v", err, len(got.Readings), got.Problems)
			}
			if !strings.Contains(got.Problems[0].Reason, test.want) {
				t.Errorf("the reason is %q", got.Problems[0].Reason)
			}
		})
	}
}

func TestAPossibleReadingIsLetThrough(t *testing.T) {
	for name, replace := range map[string][]string{
		"as it was":                           nil,
		"before the sandboxes":                {`"phase":"hold 64MiB","sandboxes":2,"moment":"end"`, `"phase":"","sandboxes":0,"moment":"before"`},
		"after the sandboxes":                 {`"phase":"hold 64MiB","sandboxes":2,"moment":"end"`, `"phase":"","sandboxes":0,"moment":"after","left":["/a"]`},
		"a charge and a role of later":        {`"charge":"pod"`, `"charge":"guest"`, `"role":"sentry"`, `"role":"pager"`},
		"nothing reported":                    {`"memory":73400320,"cpu":-1`, `"memory":-1,"cpu":-1`},
		"a node that could not be read":       {`"total":17179869184`, `"total":0`, `"moment":"end"`, `"failure":{"kind":"error","detail":"x"},"moment":"end"`},
		"a peak read before the usage":        {`"peak":94371840`, `"peak":1`},
		"more mapped than file and shmem":     {`"mapped":0`, `"mapped":99999999`},
		"the time of a vCPU read after":       {`"cpu":5000000000`, `"cpu":5000000000,"vcpu":5000000001`},
		"a pid that began anew":               {`"pid":700`, `"pid":812`},
		"no groups, processes and statistics": {`"groups":[{"path"`, `"groups":null,"x":[{"path"`, `"processes":[`, `"y":[`, `"engine":[`, `"z":[`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + changed(t, fullReading(), TypeReading, replace...)))
			if err != nil || len(got.Readings) != 1 || len(got.Problems) != 0 {
				t.Errorf("%v, problems %v", err, got.Problems)
			}
		})
	}
}

func TestAnImpossibleSeriesIsAProblem(t *testing.T) {
	tests := map[string]struct {
		replace []string
		want    string
	}{
		"of no target":                     {[]string{`"containerd/runsc"`, `""`}, "without a target"},
		"of no phase":                      {[]string{`"hold 64MiB"`, `""`}, "without a phase"},
		"of no interval":                   {[]string{`"interval":100000000`, `"interval":0`}, "interval 0 ns"},
		"of negative missed ticks":         {[]string{`"missed":1`, `"missed":-1`}, "missed is -1"},
		"of negative own time":             {[]string{`"own_cpu":4000000`, `"own_cpu":-4`}, "own_cpu is -4"},
		"before time began":                {[]string{`"times":[5000`, `"times":[-5`}, "time -5 of tick 0"},
		"whose times go back":              {[]string{`6000,8000`, `6000,5999`}, "tick 2 at 5999 is not after"},
		"with two ticks at one time":       {[]string{`5000,6000`, `6000,6000`}, "tick 1 at 6000 is not after"},
		"with a value too many":            {[]string{`[5,6,7]`, `[5,6,7,8]`}, `"node_busy" has 4 values at 3 times`},
		"with a value too few":             {[]string{`[5,6,7]`, `[5,6]`}, "2 values at 3 times"},
		"with no values":                   {[]string{`[5,6,7]`, `null`}, "0 values at 3 times"},
		"with a value below unknown":       {[]string{`[5,6,7]`, `[5,-2,7]`}, "is -2 at tick 1"},
		"with more memory than addresses":  {[]string{`[1048576,`, `[144115188075855873,`}, "is 144115188075855873 at tick 0"},
		"of values that are no object":     {[]string{`"values":{`, `"values":[],"x":{`}, "values is not an object"},
		"with a name twice":                {[]string{`"pod_memory"`, `"node_busy"`}, "is there twice"},
		"of a long name":                   {[]string{`"node_busy"`, `"` + strings.Repeat("x", 257) + `"`}, "257 bytes long"},
		"of more names than can be":        {[]string{`"values":{`, `"values":{` + numbered(64)}, "more than 64 series"},
		"of problems that cannot be":       {[]string{`"problems":{`, `"problems":{"broken":-1`}, "broken is -1"},
		"of more sandboxes than can be":    {[]string{`"sandboxes":2`, `"sandboxes":10001`}, "sandboxes 10001"},
		"of a fraction of a byte":          {[]string{`[5,6,7]`, `[5.5,6,7]`}, "5.5"},
		"of the time between two readings": {[]string{`"interval":100000000`, `"interval":99999999999999999`}, "to a year"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Read(strings.NewReader(headerLine + changed(t, fullSeries(), TypeSeries, test.replace...) + changed(t, fullSeries(), TypeSeries)))
			if err != nil || len(got.Series) != 1 || len(got.Problems) != 1 {
				t.Fatalf("%v, %d series, problems %v", err, len(got.Series), got.Problems)
			}
			if !strings.Contains(got.Problems[0].Reason, test.want) {
				t.Errorf("the reason is %q", got.Problems[0].Reason)
			}
		})
	}
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d":[1,2,3],`, i)
	}
	return b.String()
}

// What a hostile line of MaxLine leads to is bounded: its lists are cut off
// where an honest line would be too long for the file.
func TestAHostileReadingTakesLittleMemory(t *testing.T) {
	fill := func(begin, element, end string) string {
		return begin + strings.Repeat(element+",", (MaxLine-len(begin)-len(end)-len(element)-1)/(len(element)+1)) + element + end
	}
	for name, line := range map[string]string{
		"empty groups":      fill(`{"type":"reading","groups":[`, `{}`, `]}`),
		"empty memory":      fill(`{"type":"reading","groups":[`, `{"memory":{}}`, `]}`),
		"empty processes":   fill(`{"type":"reading","processes":[`, `{}`, `]}`),
		"empty memberships": fill(`{"type":"reading","processes":[{"pid":1,"groups":[`, `{}`, `]}]}`),
		"small memberships": fill(`{"type":"reading","processes":[{"pid":1,"groups":[`, `{"paths":{"":""}}`, `]}]}`),
		"one set each":      fill(`{"type":"reading","processes":[`, `{"groups":[{"paths":{"":""}}]}`, `]}`),
		"empty statistics":  fill(`{"type":"reading","engine":[`, `{}`, `]}`),
		"empty examples":    fill(`{"type":"reading","problems":{"examples":[`, `""`, `]}}`),
		"empty names left":  fill(`{"type":"reading","left":[`, `""`, `]}`),
		"short ticks":       fill(`{"type":"series","times":[`, `1`, `]}`),
		"short values":      fill(`{"type":"series","values":{"a":[`, `1`, `]}}`),
		"empty series":      fill(`{"type":"series","values":{`, `"a":[]`, `}}`),
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(line)
			if len(text) > MaxLine || len(text) < MaxLine-64 {
				t.Fatalf("the line has %d bytes", len(text))
			}
			kind, err := lineType(text)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if _, err := decodeLine(text, kind); err == nil {
				t.Error("it was let through")
			}
			runtime.ReadMemStats(&after)
			// All that was allocated meanwhile, garbage included.
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*MaxLine {
				t.Errorf("it took %d MiB, %d times its length", grown>>20, grown/MaxLine)
			}
		})
	}
}

func TestReadingsComeBackAsTheyWere(t *testing.T) {
	text, _ := plainText(t)
	got, err := Read(strings.NewReader(text))
	if err != nil || len(got.Readings) != 1 || len(got.Series) != 1 {
		t.Fatalf("%v, %d readings, %d series", err, len(got.Readings), len(got.Series))
	}
	for _, pair := range [][2]any{{got.Readings[0], fullReading()}, {got.Series[0], fullSeries()}} {
		have, err := json.Marshal(pair[0])
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(pair[1])
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(want) {
			t.Errorf("got  %s\nwant %s", have, want)
		}
	}
}
