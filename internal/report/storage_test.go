package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/tare-bench/tare/internal/judge"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

func (s *stored) report(t *testing.T, format Format, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := Storage(&out, format, s.rec, &s.v, o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// sectionOf is a section of a Markdown report.
func sectionOf(t *testing.T, out, title string) string {
	t.Helper()
	_, part, ok := strings.Cut(out, "\n### "+title)
	if !ok {
		t.Fatalf("no section %q in:\n%s", title, out)
	}
	part, _, _ = strings.Cut(part, "\n### ")
	return part
}

func TestStorageReportsAreAsTheGoldenFilesHaveThem(t *testing.T) {
	tests := []struct {
		file   string
		of     func() *stored
		format Format
		o      Options
	}{
		{"storage.txt", storages, Text, Options{Width: 120}},
		{"storage-80.txt", storages, Text, Options{Width: 80}},
		{"storage-verbose.txt", smallStorage, Text, Options{Width: 100, Verbose: true}},
		{"storage-broken.txt", brokenStorage, Text, Options{Width: 100, Colour: true}},
		{"storage-imported.txt", kataPublished, Text, Options{Width: 120, Verbose: true}},
		{"storage-dozen-80.txt", dozenStorage, Text, Options{Width: 80}},
		{"storage-vile.txt", vileStorage, Text, Options{Width: 120, Verbose: true}},
		{"storage-empty.txt", func() *stored { return newStored("host") }, Text, Options{Width: 80}},
		{"storage.md", storages, Markdown, Options{}},
		{"storage-imported.md", kataPublished, Markdown, Options{}},
		{"storage-vile.md", vileStorage, Markdown, Options{Verbose: true}},
		{"storage.csv", storages, CSV, Options{}},
		{"storage-broken.csv", brokenStorage, CSV, Options{}},
		{"storage.json", smallStorage, JSON, Options{}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			got := tt.of().report(t, tt.format, tt.o)
			path := filepath.Join("testdata", tt.file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs (go test ./report -update writes it anew); got:\n%s", path, got)
			}
		})
	}
}

func TestTablesOfStorageStayWithinTheWidth(t *testing.T) {
	for _, width := range []int{80, 100, 120, 200} {
		for name, s := range map[string]*stored{"all": storages(), "small": smallStorage(), "imported": kataPublished(), "dozen": dozenStorage()} {
			for line := range strings.Lines(s.report(t, Text, Options{Width: width})) {
				if n := term.Width(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s at %d: %d columns: %s", name, width, n, line)
				}
			}
		}
	}
}

func TestTheSameStorageGivesTheSameReport(t *testing.T) {
	for _, format := range formats {
		first := vileStorage().report(t, format, Options{Width: 100, Verbose: true})
		for range 5 {
			if vileStorage().report(t, format, Options{Width: 100, Verbose: true}) != first {
				t.Fatalf("%s differs from one time to the next", format)
			}
		}
	}
}

func TestNoFormatOfStoragePassesOnWhatATerminalObeys(t *testing.T) {
	imported := vileStorage()
	imported.v.Imported = true
	for _, s := range []*stored{vileStorage(), imported} {
		for _, format := range formats {
			for _, o := range []Options{{Width: 80}, {Verbose: true}} {
				for _, r := range s.report(t, format, o) {
					if r != '\n' && !unicode.IsGraphic(r) {
						t.Errorf("%s: %U is passed on", format, r)
					}
				}
			}
		}
	}
}

func TestMarkdownOfStorageShowsTextOfOthersAndDoesNotObeyIt(t *testing.T) {
	out := vileStorage().report(t, Markdown, Options{Verbose: true})
	for _, bad := range []string{"<b>", "`x`", "[link]", "\n# heading", "cmd|"} {
		if strings.Contains(out, bad) {
			t.Errorf("%q stands in it as it came", bad)
		}
	}
	columns := 0
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		n := strings.Count(line, "|") - strings.Count(line, `\|`)
		if columns != 0 && n != columns {
			t.Errorf("a row of %d bars in a table of %d: %s", n, columns, line)
		}
		columns = n
	}
}

func TestCSVOfStorageHoldsNoFormula(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(vileStorage().report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for i, field := range row {
			if _, err := strconv.ParseFloat(field, 64); field != "" && err != nil && strings.Contains("=+-@", field[:1]) {
				t.Errorf("a formula in %s: %q", rows[0][i], field)
			}
		}
	}
}

func TestAFigureThatIsNotTheDevicesHasItsVerdictBeforeIt(t *testing.T) {
	cached := map[string]string{"8600": "guest cache", "9100": "host cache", "9200": "host cache", "4300": "guest cache", "13159": "not direct", "10850": "not direct"}
	forms := map[string]string{"md": storages().report(t, Markdown, Options{})}
	for _, width := range []int{0, 80, 120} {
		forms["text at "+strconv.Itoa(width)] = storages().report(t, Text, Options{Width: width})
	}
	for form, out := range forms {
		seen := 0
		for line := range strings.Lines(out) {
			for figure, word := range cached {
				before, _, ok := strings.Cut(line, figure+" (")
				if !ok {
					continue
				}
				seen++
				if !strings.HasSuffix(before, word+" ") {
					t.Errorf("%s: no %q before %s in %q", form, word, figure, line)
				}
			}
			if before, _, ok := strings.Cut(line, "1681 ("); ok && !strings.HasSuffix(before, "  ") && !strings.HasSuffix(before, "| ") {
				t.Errorf("%s: a figure of the device has something before it: %q", form, line)
			}
		}
		if seen != len(cached) {
			t.Errorf("%s: %d of %d figures", form, seen, len(cached))
		}
	}
}

func TestEveryPartOfAJobsTableHasTheVerdict(t *testing.T) {
	out := dozenStorage().report(t, Text, Options{Width: 80})
	parts := 0
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "  target ") && (strings.Contains(line, "MB/s") || strings.Contains(line, "p99") || strings.Contains(line, "GiB")) {
			parts++
			if fields := strings.Fields(line); fields[1] != "verdict" {
				t.Errorf("figures without a verdict: %q", line)
			}
		}
	}
	if parts < 2*12 {
		t.Errorf("%d parts; the tables of twelve jobs do not fit in 80 columns", parts)
	}
}

func TestInShortIsInThePublishedForm(t *testing.T) {
	table := sectionOf(t, kataPublished().report(t, Markdown, Options{}), "in short")
	for _, want := range []string{
		": rootfs, direct\n",
		"| target | fio randread 512k | fio read 512k | fio randwrite 512k | fio write 512k | dd write 4k |",
		"| kata | host cache 8600 (4509.2 MB/s) | host cache 9389 (4922.6 MB/s) | 741 (389.0 MB/s) | 756 (396.8 MB/s) | 134.2 MB/s |",
		"| kata × host | (\\~ 5.12×) | (\\~ 2.10×) | (\\~ 0.068×) | (\\~ 0.078×) | ~ 1.21× |",
		"| host | 1681 (881.6 MB/s) |",
		"| 111.0 MB/s |",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
}

func TestARatioStandsInParenthesesUnlessBothAreTheDevices(t *testing.T) {
	const device, cache = judge.VerdictDevice, judge.VerdictHostCache
	for _, tt := range []struct {
		name       string
		base, cell judge.Verdict
		different  bool
		want       string
	}{
		{"both", device, device, true, "0.50×"},
		{"both, not shown to differ", device, device, false, "~ 0.50×"},
		{"the target's not", device, cache, true, "(0.50×)"},
		{"the base's not", cache, device, true, "(0.50×)"},
		{"neither", cache, cache, false, "(~ 0.50×)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			table := &judge.StorageTable{Base: "host", Cells: []judge.StorageCell{
				{Target: "host", Rounds: 1, Verdict: tt.base}, {Target: "runc", Rounds: 1, Verdict: tt.cell},
			}}
			if got, _ := times(table, &table.Cells[1], around(0.5, 3), tt.different); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	alone := &judge.StorageTable{Base: "host", Cells: []judge.StorageCell{{Target: "runc", Rounds: 1, Verdict: device}}}
	if got, _ := times(alone, &alone.Cells[0], around(0.5, 3), true); got != "(0.50×)" {
		t.Errorf("without a base: got %s", got)
	}
}

func TestATableWithoutABaseDoesNotRenameThatOfTheOthers(t *testing.T) {
	s := storages()
	s.v.Tables[0].Base = ""
	for i := range s.v.Tables[0].Cells {
		s.v.Tables[0].Cells[i].Ratio = judge.Estimate{}
	}
	out := s.report(t, Markdown, Options{})
	if table := sectionOf(t, out, "in short"); !strings.Contains(table, "| runc × host |  | (\\~ 1.01×) ±4 % |") {
		t.Errorf("got:\n%s", table)
	}
	if table := sectionOf(t, out, "randread 512k, rootfs, direct"); strings.Contains(table, "| × ") {
		t.Errorf("a column of nothing:\n%s", table)
	}
}

func TestWhatHasNoFigureIsADashWithItsReason(t *testing.T) {
	for _, format := range []Format{Text, Markdown} {
		out := brokenStorage().report(t, format, Options{})
		for _, want := range []string{
			"failed 4/12 cells", "this kernel has no NFS client", "→ modprobe nfs", "1/3 rounds failed; the first: fio exited with 1",
			"3/3 rounds failed", "No space left on device", "no figures", "1/3 failed, 1690", "no answer within 10 s", "– /dev/shm on host",
		} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q is not in:\n%s", format, want, out)
			}
		}
	}
	out := brokenStorage().report(t, Markdown, Options{})
	for _, want := range []string{"| runc | – |", "| crun | – |", "| runsc | – |", "| runc | failed | – |", "| crun | absent | – |"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if out := storages().report(t, Text, Options{}); !strings.Contains(out, "failed 0/84 cells") {
		t.Error("nothing failed, and it does not say so")
	}
}

func TestAJobThatReadsAndWritesHasARowForEach(t *testing.T) {
	table := sectionOf(t, storages().report(t, Markdown, Options{}), "rndrw 16k, bind, direct")
	for _, want := range []string{
		"| host | device | both | 160.6 ±2 % | 9800 | · | · | · |",
		"| host | device | read | 96.3 ±2 % | 5880 | 1.53 ms | 4.25 ms | 10.2 ms |",
		"| host | device | write | 64.2 ±2 % | 3920 |",
		"| runsc | throttled | write |",
		"**runsc** throttled: its groups were kept from the CPU",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
	if strings.Contains(sectionOf(t, storages().report(t, Markdown, Options{}), "randread 512k, bind"), "| both |") {
		t.Error("a job of one direction has rows for both")
	}
}

func TestSysbenchShowsTheLatenciesThatItHas(t *testing.T) {
	s := storages()
	out := s.report(t, Markdown, Options{})
	if table := sectionOf(t, out, "rndrw 16k sysbench"); !strings.Contains(table, "| IOPS | mean | p95 |") || strings.Contains(table, "| p99 |") {
		t.Errorf("got:\n%s", table)
	}
	if table := sectionOf(t, out, "randread 512k, bind"); strings.Contains(table, "| mean |") || strings.Contains(table, "| p95 |") {
		t.Errorf("fio says more than those, got:\n%s", table)
	}
	if table := sectionOf(t, s.report(t, Markdown, Options{Verbose: true}), "randread 512k, bind"); !strings.Contains(table, "| mean | p50 | p95 | p99 | p99.9 |") {
		t.Errorf("verbose, got:\n%s", table)
	}
}

func TestWhatWasImportedSaysSo(t *testing.T) {
	for _, format := range []Format{Text, Markdown} {
		out := kataPublished().report(t, format, Options{Verbose: true})
		for _, want := range []string{"imported from notes.txt; nothing was seen from outside", "notes.txt:100", "notes.txt:142"} {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in:\n%s", format, want, out)
			}
		}
		for _, bad := range []string{"Linux", "cgroup", "fresh sandbox", "at the device:", "CPU m", "0 CPUs", "caches dropped"} {
			if strings.Contains(out, bad) {
				t.Errorf("%s: nobody saw %q", format, bad)
			}
		}
	}
}

func TestSizesAreThoseOfDf(t *testing.T) {
	table := sectionOf(t, storages().report(t, Markdown, Options{}), "sizes")
	for _, want := range []string{"| target | / | available | type | /dev/shm | available | type |", "| runc | 98.0 GiB | 61.0 GiB | overlay | 64.0 MiB | 64.0 MiB | tmpfs |", "| 992 MiB | 992 MiB |"} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in:\n%s", want, table)
		}
	}
}

func TestACSVOfStorageHasARowForEachCellAndDirection(t *testing.T) {
	s := storages()
	rows, err := csv.NewReader(strings.NewReader(s.report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rows[0], storageColumns) || rows[0][0] != "tool" || rows[0][12] != "bandwidth_bytes_per_s" || rows[0][len(rows[0])-1] != "command" {
		t.Errorf("the columns are %q", rows[0])
	}
	count := map[string]int{}
	for _, row := range rows[1:] {
		count[row[7]]++
		if row[1] == "dd write 4k" && row[6] == "host" && row[12] != "128400000" {
			t.Errorf("a bandwidth of 128.4e6 bytes/s is %s", row[12])
		}
		if row[7] != "total" && row[slices.Index(rows[0], "cpu_s_per_gib")] != "" {
			t.Errorf("CPU of a direction: %q", row)
		}
	}
	if count["total"] != 7*4 || count["read"] != 6*4 || count["write"] != 3*4 {
		t.Errorf("got %v", count)
	}
	rows, err = csv.NewReader(strings.NewReader(brokenStorage().report(t, CSV, Options{}))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if verdict := row[8]; (verdict == "failed" || verdict == "absent") && strings.Join(row[11:12+39], "") != "" {
			t.Errorf("figures of what %s: %q", verdict, row)
		}
	}
}

func TestJSONOfStorageIsTheJudgement(t *testing.T) {
	s := storages()
	var d struct {
		RunID   string        `json:"run_id"`
		Status  string        `json:"status"`
		Storage judge.Storage `json:"storage"`
	}
	if err := json.Unmarshal([]byte(s.report(t, JSON, Options{})), &d); err != nil {
		t.Fatal(err)
	}
	if d.RunID != "k3v9x2" || d.Status != "done" {
		t.Errorf("got %q, %q", d.RunID, d.Status)
	}
	got, err := json.Marshal(d.Storage.Tables)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(s.v.Tables)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("read back:\n%.2000s\nwant:\n%.2000s", got, want)
	}
	if err := json.Unmarshal([]byte(vileStorage().report(t, JSON, Options{})), &d); err != nil || d.Storage.Tables[0].Job != hostileName {
		t.Errorf("text of others is %q, %v", d.Storage.Tables[0].Job, err)
	}
}

func TestWhatIsNoNumberInStorageIsNeverShownAsOne(t *testing.T) {
	s := storages()
	for _, part := range []any{&s.v.Tables, &s.v.Ceilings} {
		nans(reflect.ValueOf(part).Elem())
	}
	for _, format := range formats {
		out := s.report(t, format, Options{Width: 100, Verbose: true})
		if strings.Contains(out, "NaN") || strings.Contains(out, "Inf") {
			t.Errorf("%s holds what is no number", format)
		}
		if format == JSON && !json.Valid([]byte(out)) {
			t.Error("no JSON")
		}
	}
}

func TestAWriteOfStorageThatFailsIsNotLost(t *testing.T) {
	s := storages()
	for _, format := range formats {
		for _, left := range []int{0, 300, 5000} {
			if err := Storage(&full{left}, format, s.rec, &s.v, Options{Width: 80}); !errors.Is(err, errFull) {
				t.Errorf("%s after %d bytes: got %v", format, left, err)
			}
		}
	}
	if err := Storage(&bytes.Buffer{}, "html", s.rec, &s.v, Options{}); err == nil || !strings.Contains(err.Error(), "text, json, md, csv") {
		t.Errorf("an unknown format: %v", err)
	}
}

func TestARateThatThereIsNeverLooksLikeNone(t *testing.T) {
	for bytes, want := range map[float64]string{
		0: "0.00", 420: "0.00042", 41_000: "0.041", 1.23e6: "1.23", 9.994e6: "9.99", 9.996e6: "10.0", 111.42e6: "111.4", 6579.1e6: "6579.1",
		math.NaN(): "?", math.Inf(1): "?",
	} {
		if got := megabytes(bytes); got != want {
			t.Errorf("%v bytes/s: got %s, want %s", bytes, got, want)
		}
	}
	for v, want := range map[float64]string{0: "0.00", 0.0003: "0.0003", 0.0996: "0.10", 0.5: "0.50", 316: "316", 766021: "766021"} {
		if got := significant(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestVolumesThatAreTheSameAreSaidOnce(t *testing.T) {
	v := &judge.Storage{Places: []record.Place{
		placed("runc", "rootfs", "overlay", "ext4", 98<<30, 1), placed("runc", "bind", "ext4", "ext4", 98<<30, 1),
		placed("crun", "rootfs", "overlay", "ext4", 98<<30, 1), {Target: "runsc", Volume: "device", Absent: "it has none", Advice: "leave it out"},
	}}
	want := []item{
		{key: "rootfs", text: "runc, crun: overlay inside, ext4 on the host, device vda, O_DIRECT taken, 98.0 GiB"},
		{key: "bind", text: "runc: ext4, device vda, O_DIRECT taken, 98.0 GiB"},
		{key: "device", text: "runsc: – it has none"}, {text: "→ leave it out"},
	}
	if got := volumes(v).lists[0].items; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
