package record

import (
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

func TestAnImpossibleCellIsAProblem(t *testing.T) {
	tests := map[string]struct {
		replace []string
		want    string
	}{
		"of no target":                 {[]string{`"target":"containerd/kata"`, `"target":""`}, "a cell without a target"},
		"of no job":                    {[]string{`"job":"randread 512k"`, `"job":""`}, "a cell without a job"},
		"of a job of a long name":      {[]string{`"randread 512k"`, `"` + strings.Repeat("x", 257) + `"`}, "job is 257 bytes long"},
		"of no tool":                   {[]string{`"tool":"fio"`, `"tool":""`}, "a cell without a tool"},
		"of a negative round":          {[]string{`"round":1`, `"round":-1`}, "round is -1"},
		"of an unknown volume":         {[]string{`"volume":"rootfs"`, `"volume":"floppy"`}, `volume "floppy"`},
		"of no volume":                 {[]string{`"volume":"rootfs"`, `"volume":""`}, `volume ""`},
		"of an unknown cache":          {[]string{`"cache":"direct"`, `"cache":"L2"`}, `cache "L2"`},
		"of no cache":                  {[]string{`"cache":"direct"`, `"cache":""`}, `cache ""`},
		"with other caches dropped":    {[]string{`"dropped":"node"`, `"dropped":"all"`}, `dropped "all"`},
		"that was imported and seen":   {[]string{`"order":2`, `"order":2,"source":"a:1"`}, "nothing but the claim"},
		"without figures":              {[]string{`"bytes":8589934592,"ios":16384,"bandwidth":4500000000,"iops":8600.5`, `"bytes":0`}, "a claim without figures"},
		"with a failure of no kind":    {[]string{`"order":2`, `"order":2,"failure":{}`}, "a failure without a kind"},
		"that has no begin":            {[]string{`"begun":5000,`, ``}, "no begin or no end"},
		"that ended before it began":   {[]string{`"ended":9000`, `"ended":4999`}, "ended 4999 is before begun 5000"},
		"of two clocks":                {[]string{`"ended":9000`, `"ended":99999999999999999`}, "of another clock"},
		"set up before time began":     {[]string{`"set_up":700`, `"set_up":-7`}, "set_up is -7"},
		"laid out in a year":           {[]string{`"took":4000`, `"took":99999999999999999`}, "layout: took is 99999999999999999 ns"},
		"with less than no files":      {[]string{`"files":1`, `"files":-1`}, "layout: files is -1"},
		"of negative bandwidth":        {[]string{`"bandwidth":4500000000`, `"bandwidth":-1`}, "claim: read: bandwidth is -1"},
		"of bandwidth beyond all":      {[]string{`"bandwidth":4500000000`, `"bandwidth":1e300`}, "claim: read: bandwidth is 1e+300"},
		"of negative IOPS":             {[]string{`"iops":8600.5`, `"iops":-0.5`}, "claim: read: iops is -0.5"},
		"of negative bytes":            {[]string{`"bytes":8589934592`, `"bytes":-1`}, "claim: read: bytes is -1"},
		"of a negative latency":        {[]string{`"mean":900`, `"mean":-900`}, "claim: read: latency: mean is -900"},
		"of quantiles in disorder":     {[]string{`"p99":2100`, `"p99":1399`}, "p99 1399 is below p95 1400"},
		"of quantiles apart":           {[]string{`"p95":1400,"p99":2100,"p999":5300`, `"p999":879`}, "p999 879 is below p50 880"},
		"that took a negative time":    {[]string{`"seconds":1.905`, `"seconds":-1`}, "claim: seconds is -1"},
		"seen for a negative time":     {[]string{`"took":4100`, `"took":-1`}, "seen: took is -1"},
		"of a device gone back":        {[]string{`"read_ios":2048`, `"read_ios":-2048`}, "seen: device: read_ios is -2048"},
		"of disks gone back":           {[]string{`"write_bytes":4096`, `"write_bytes":-4096`}, "seen: disks: write_bytes is -4096"},
		"with less flushed than none":  {[]string{`"flushed":-1`, `"flushed":-2`}, "seen: flushed is -2"},
		"of a group gone back":         {[]string{`"group":{"read_bytes":1073741824`, `"group":{"read_bytes":-1`}, "seen: group: read_bytes is -1"},
		"of processes gone back":       {[]string{`"write":5`, `"write":-5`}, "seen: outside: write is -5"},
		"of more cache than addresses": {[]string{`"cached":-4096`, `"cached":-144115188075855873`}, "seen: cached is -144115188075855873"},
		"throttled for less than none": {[]string{`"throttled":6`, `"throttled":-6`}, "seen: throttled is -6"},
		"of a share far above one":     {[]string{`"psi_io":1.02`, `"psi_io":2.1`}, "seen: psi_io is 2.1"},
		"of negative busy CPUs":        {[]string{`"busy":3.5`, `"busy":-3.5`}, "seen: busy is -3.5"},
		"of CPU without a role":        {[]string{`"role":"vmm"`, `"role":""`}, "without a role"},
		"of a role twice":              {[]string{`"role":"virtiofs"`, `"role":"vmm"`}, "role vmm is there twice"},
		"of negative CPU":              {[]string{`"ns":300`, `"ns":-300`}, "role vmm: ns is -300"},
		"of negative own CPU":          {[]string{`"own_cpu":12`, `"own_cpu":-12`}, "seen: own_cpu is -12"},
		"of a negative problem":        {[]string{`"gone":1`, `"gone":-1`}, "seen: problems: gone is -1"},
		"of another kind of claim":     {[]string{`"claim":{`, `"claim":5,"x":{`}, "cannot unmarshal number"},
		"of roles that are no list":    {[]string{`"cpu":[{"role":"vmm","ns":300},{"role":"virtiofs","ns":2900}]`, `"cpu":{}`}, "cpu is not a list"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, changed(t, fullCell(), TypeCell, test.replace...), test.want)
		})
	}
}

func checkRefused(t *testing.T, line, want string) {
	t.Helper()
	got, err := Read(strings.NewReader(headerLine + strings.TrimSpace(line) + "\n"))
	if err != nil || len(got.Problems) != 1 || len(lines(got)) != 1 {
		t.Fatalf("%v, %+v", err, got)
	}
	if !strings.Contains(got.Problems[0].Reason, want) || strings.Contains(got.Problems[0].Reason, "\n") {
		t.Errorf("the reason is %q", got.Problems[0].Reason)
	}
}

func TestCellsThatLookOddButCanBeAreTaken(t *testing.T) {
	failed := fullCell()
	failed.Claim, failed.Seen, failed.Begun, failed.Ended, failed.Failure = nil, nil, 0, 0, &Failure{Kind: FailTimeout}
	several := fullCell()
	several.Volume = "nfs=server:/path"
	unseen := fullCell()
	unseen.Seen, unseen.Layout = nil, nil
	failedImport := importedCell()
	failedImport.Claim, failedImport.Failure = nil, &Failure{Kind: FailExit}
	onlyOps := importedCell()
	onlyOps.Claim = &Claim{Read: Flow{IOPS: 766021}}
	for name, cell := range map[string]Cell{
		"one that failed before it began": failed, "one of several of a kind": several, "one that nobody watched": unseen,
		"one that failed long ago": failedImport, "one of which only the IOPS are known": onlyOps,
	} {
		if err := cell.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingThatIsNoNumberIsTaken(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		cell, ceiling := importedCell(), fullCeiling()
		cell.Claim.Write.Bandwidth, ceiling.ReadIOPS = v, v
		if cell.Validate() == nil || ceiling.Validate() == nil {
			t.Errorf("%g was taken", v)
		}
		cell = fullCell()
		cell.Seen.PSICPU = v
		if cell.Validate() == nil {
			t.Errorf("a share of %g was taken", v)
		}
	}
}

func TestAnImpossiblePlaceIsAProblem(t *testing.T) {
	for name, test := range map[string]struct {
		replace []string
		want    string
	}{
		"of no target":           {[]string{`"target":"containerd/kata"`, `"target":""`}, "a place without a target"},
		"of no volume":           {[]string{`"volume":"rootfs"`, `"volume":""`}, `volume ""`},
		"of another answer":      {[]string{`"direct":"taken"`, `"direct":"maybe"`}, `direct "maybe"`},
		"absent with facts":      {[]string{`"volume":"rootfs"`, `"volume":"rootfs","absent":"no"`}, "a volume that is absent, and facts about it"},
		"of a relative path":     {[]string{`"path":"/"`, `"path":"."`}, "mounts: a path begins at the root"},
		"of a negative size":     {[]string{`"size":1099511627776`, `"size":-1`}, "mounts: size is -1"},
		"of less free than none": {[]string{`"free":549755813888`, `"free":-1`}, "mounts: free is -1"},
		"of a long type":         {[]string{`"type":"virtiofs"`, `"type":"` + strings.Repeat("x", 300) + `"`}, "mounts: type is 300 bytes long"},
		"of 101 mounts":          {[]string{`"mounts":[`, `"mounts":[` + strings.Repeat(`{"path":"/"},`, 100)}, "more than 100 mounts"},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, changed(t, fullPlace(), TypePlace, test.replace...), test.want)
		})
	}
	absent := Place{Target: "a", Volume: VolumeDevice, Absent: "gVisor has no block devices", Advice: "leave it out"}
	if err := absent.Validate(); err != nil {
		t.Error(err)
	}
}

func TestAnImpossibleCeilingIsAProblem(t *testing.T) {
	for name, test := range map[string]struct {
		replace []string
		want    string
	}{
		"of no volume":       {[]string{`"volume":"rootfs"`, `"volume":""`}, `volume ""`},
		"in between":         {[]string{`"when":"before"`, `"when":"between"`}, `when "between"`},
		"of negative reads":  {[]string{`"read":140000000`, `"read":-1`}, "read is -1"},
		"of negative writes": {[]string{`"write_iops":290.5`, `"write_iops":-1`}, "write_iops is -1"},
		"of two years":       {[]string{`"seconds":2`, `"seconds":63115200`}, "seconds is 6.31152e+07"},
		"without figures":    {[]string{`"read":140000000,"write":130000000,"read_iops":312,"write_iops":290.5`, `"read":0`}, "a ceiling without figures"},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, changed(t, fullCeiling(), TypeCeiling, test.replace...), test.want)
		})
	}
	failed := Ceiling{Volume: VolumeNFS, When: "after", Failure: &Failure{Kind: FailExit}}
	if err := failed.Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatWasSeenOfStorageComesBackAsItWas(t *testing.T) {
	text, _ := plainText(t)
	got, err := Read(strings.NewReader(text))
	if err != nil || len(got.Problems) != 0 {
		t.Fatalf("%v, %v", err, got)
	}
	want := fullRecord()
	if !reflect.DeepEqual(got.Cells, want.Cells) {
		t.Errorf("got  %+v\nwant %+v", got.Cells, want.Cells)
	}
	if !reflect.DeepEqual(got.Places, want.Places) || !reflect.DeepEqual(got.Ceilings, want.Ceilings) {
		t.Errorf("got %+v and %+v", got.Places, got.Ceilings)
	}
}

// What was imported comes from a machine of which nothing is known.
func TestARecordOfAnUnknownMachineReads(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b)
	cell := importedCell()
	for _, line := range []any{Header{RunID: "import", Experiment: "storage"}, &cell, End{Status: "done"}} {
		if err := w.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Read(strings.NewReader(b.String()))
	if err != nil || len(got.Problems) != 0 || !reflect.DeepEqual(got.Cells, []Cell{cell}) || !reflect.DeepEqual(got.Header.Environment, Environment{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestALineOfEmptyStorageIsRefusedInLittleMemory(t *testing.T) {
	fill := func(begin, element, end string) string {
		return begin + strings.Repeat(element+",", (MaxLine-len(begin)-len(end)-len(element)-1)/(len(element)+1)) + element + end
	}
	for name, line := range map[string]string{
		"empty roles":    fill(`{"type":"cell","seen":{"cpu":[`, `{}`, `]}}`),
		"empty examples": fill(`{"type":"cell","seen":{"problems":{"examples":[`, `""`, `]}}}`),
		"empty mounts":   fill(`{"type":"place","mounts":[`, `{}`, `]}`),
	} {
		t.Run(name, func(t *testing.T) {
			kind, err := lineType([]byte(line))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			if _, err := decodeLine([]byte(line), kind); err == nil {
				t.Error("it was let through")
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 16*MaxLine {
				t.Errorf("it took %d MiB, %d times its length", grown>>20, grown/MaxLine)
			}
		})
	}
}
