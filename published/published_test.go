package published_test

import (
	"encoding/json"
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/core/stat"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/published"
)

const isulad = "published/isulad-2020"

func load(t *testing.T, name string) *published.Report {
	t.Helper()
	return must.Get(published.Load(name))(t)
}

func TestISuladReportIsComplete(t *testing.T) {
	r := load(t, isulad)
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			want := row.Op
			if table.Lanes > 1 {
				want = "100 * " + row.Op
			}
			check.That(t, row.Label == want && len(row.Versus) == 2,
				"%s: row %q of %s has %d differences", table.ID, row.Label, row.Op, len(row.Versus))
		}
		check.That(t, table.OriginalTitle != "" && table.Title != "", "%s has no title", table.ID)
	}
	for id, version := range map[string]string{"docker": "19.03.11", "podman": "2.0.3", "isula": "2.0.3", "cri-o": ""} {
		got := r.Engine(id)
		check.That(t, got.Version == version && (version != "" || len(got.Notes) != 0), "%s: %+v", id, got)
	}
	check.That(t, r.Date == "2020-09-09" && r.Author == "haozi007" && r.Unit == "ms", "%+v", r)
}

// The expected column sums were computed from the publication before its tables were
// converted to a file.
func TestISuladColumnSumsMatch(t *testing.T) {
	sums := map[string][3]float64{
		"client-x86-containers-1": {2249, 2250, 1139}, "client-x86-containers-100": {36229, 30928, 16399},
		"client-arm-containers-1": {3561, 3549, 1818}, "client-arm-containers-100": {89245, 71647, 28026},
		"cri-x86-pods-1": {1081, 677, 511}, "cri-x86-pods-with-a-container-1": {1803, 1284, 946},
		"cri-x86-pods-100": {24476, 11168, 9591}, "cri-x86-pods-with-a-container-100": {41968, 21259, 15350},
		"cri-arm-pods-1": {1782, 2785, 791}, "cri-arm-pods-with-a-container-1": {2753, 3727, 552},
		"cri-arm-pods-100": {43002, 49377, 18011}, "cri-arm-pods-with-a-container-100": {73996, 81019, 10087},
	}
	r := load(t, isulad)
	for _, table := range r.Tables {
		var got [3]float64
		for _, row := range table.Rows {
			for i, v := range row.Values {
				ms, ok := milliseconds(r, v)
				check.That(t, ok, "%s: %q is not a time", table.ID, v)
				got[i] += ms
			}
		}
		check.Equal(t, table.ID, got, sums[table.ID])
	}
}

func TestPrintedDifferencesMatchAveragesOrAreNoted(t *testing.T) {
	r := load(t, isulad)
	var wrong []string
	differences := 0
	for _, table := range r.Tables {
		subject := slices.Index(table.Columns, table.Subject)
		for _, row := range table.Rows {
			to, _ := milliseconds(r, row.Values[subject])
			noted := false
			for i, other := range table.Versus {
				differences++
				from, _ := milliseconds(r, row.Values[slices.Index(table.Columns, other)])
				if computed := stat.FormatVersus(from, to); computed != row.Versus[i] {
					wrong = append(wrong, table.ID+": "+row.Label+" against "+r.Column(other).Title+": printed "+row.Versus[i]+", from the averages "+computed)
					noted = strings.Contains(row.Note, row.Versus[i]) && strings.Contains(row.Note, computed)
				}
			}
			check.That(t, noted == (row.Note != ""), "%s: %s: the note is %q", table.ID, row.Label, row.Note)
		}
	}
	want := []string{"client-arm-containers-100: 100 * rm against Podman: printed -92.33%, from the averages -91.54%"}
	check.That(t, slices.Equal(wrong, want) && differences == 80, "%d differences, mismatches: %q, want %q", differences, wrong, want)
}

func TestPublicationsAreComplete(t *testing.T) {
	for name, want := range map[string][4]int{ // tables, rows, values, and statements that its figures contradict
		"isulad-2020": {12, 40, 120, 4}, "kata-boot-2018": {3, 24, 68, 5}, "kata-io": {8, 53, 129, 3}, "kata-overhead": {8, 66, 128, 4}, "kmesh-resource": {4, 16, 22, 3},
	} {
		r := load(t, name)
		got := [4]int{len(r.Tables), 0, 0, len(r.Claims)}
		for _, table := range r.Tables {
			got[1] += len(table.Rows)
			for _, row := range table.Rows {
				got[2] += len(row.Values) - len(slices.DeleteFunc(slices.Clone(row.Values), func(v published.Figure) bool { return v != "" }))
			}
		}
		check.That(t, got == want && r.Name == name, "%s: %v, want %v", name, got, want)
	}
}

// Every formula consists of printed figures and small integers, and yields the stated
// result.
func TestContradictionsFollowFromPrintedFigures(t *testing.T) {
	number := regexp.MustCompile(`[0-9.]+`)
	for _, name := range published.Names() {
		r := load(t, name)
		printed := map[string]bool{"1": true, "4": true, "8": true, "100": true, "1024": true, "1000000": true}
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				for _, v := range row.Values {
					printed[string(v)] = true
				}
			}
		}
		for _, claim := range r.Claims {
			for _, but := range claim.But {
				for _, n := range number.FindAllString(but.Formula, -1) {
					check.That(t, printed[n], "%s: %s: %s is in no table", name, claim.Says, n)
				}
				// Divide integers without truncation.
				exact := number.ReplaceAllStringFunc(but.Formula, func(n string) string { return "(" + n + "*1.0)" })
				got, err := types.Eval(token.NewFileSet(), nil, token.NoPos, exact)
				if err != nil {
					t.Errorf("%s: %q: %v", name, but.Formula, err)
					continue
				}
				value, _ := constant.Float64Val(constant.ToFloat(got.Value))
				said, _, _ := strings.Cut(strings.TrimPrefix(but.Gives, "+"), " ")
				_, decimals, _ := strings.Cut(said, ".")
				check.Equal(t, fmt.Sprintf("%s: %s =", name, but.Formula), strconv.FormatFloat(value, 'f', len(decimals), 64), said)
			}
		}
	}
}

func TestColumnsMatchTargets(t *testing.T) {
	r := load(t, isulad)
	golden.Lines(t, "testdata/akin.txt", func(t *testing.T, target string) (any, error) {
		var columns []string
		for _, c := range r.Columns {
			if c.Akin(target) {
				columns = append(columns, c.ID)
			}
		}
		return columns, nil
	})
}

func TestPublicationsAreFoundByNameAndByPath(t *testing.T) {
	check.Equal(t, "names", published.Names(), []string{"isulad-2020", "kata-boot-2018", "kata-io", "kata-overhead", "kmesh-resource"})
	text := must.Get(os.ReadFile("isulad-2020/report.json"))(t)
	dir := t.TempDir()
	must.OK(t, os.WriteFile(filepath.Join(dir, "report.json"), text, 0o644))
	t.Chdir(t.TempDir()) // a folder without published records
	want := must.JSON(t, load(t, isulad))
	for _, name := range []string{"isulad-2020", "published/isulad-2020/", "./published/isulad-2020", dir, filepath.Join(dir, "report.json")} {
		check.Equal(t, name, string(must.JSON(t, load(t, name))), string(want))
	}
}

func TestInvalidPublicationIsRefused(t *testing.T) {
	good := must.Read(t, "isulad-2020/report.json")
	tests := map[string]struct{ text, want string }{
		"empty file":        {"", "does not hold published figures"},
		"other JSON":        {`{"a":1}`, "unknown field"},
		"record":            {`{"type":"header","schema":1}` + "\n{}", "is a record: use tare compare A B"},
		"compressed record": {"\x28\xb5\x2f\xfd....", "is a record"},
		"two publications":  {good + good, "more than one"},
		"later version":     {`{"version":3,"sheets":[]}`, "use a later tare"},
		"too large file":    {strings.Repeat(" ", 1<<20) + good, "larger than 1 MiB"},
	}
	for _, row := range must.Rows(t, "testdata/refused.tsv") {
		must.That(t, strings.Contains(good, row[1]), "no %q in the file", row[1])
		tests[row[0]] = struct{ text, want string }{strings.Replace(good, row[1], row[2], 1), row[3]}
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "it.json")
			must.Write(t, path, test.text)
			_, err := published.Load(path)
			check.Error(t, err, test.want)
		})
	}
	_, err := published.Load("published/none")
	check.Error(t, err, "published/isulad-2020")
	_, err = published.Load("/dev/zero")
	check.Error(t, err, "is not a regular file")
}

func TestFigureKeepsItsPrintedForm(t *testing.T) {
	var got []published.Figure
	must.OK(t, json.Unmarshal([]byte(`[12.50, null, 0, 1e3]`), &got))
	check.Equal(t, "text", string(must.JSON(t, got)), "[12.50,null,0,1e3]")
	r := published.Report{Unit: "s"}
	for i, want := range []float64{12500, 0, 0, 1e6} {
		if ms, ok := milliseconds(&r, got[i]); ms != want || ok != (i != 1) {
			t.Errorf("%q: %v, %v", got[i], ms, ok)
		}
	}
}

func FuzzParse(f *testing.F) {
	text := must.Get(os.ReadFile("isulad-2020/report.json"))(f)
	f.Add(text)
	f.Add([]byte(`{"version":1,"tables":[{"rows":[{}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := published.Parse("it", text)
		if err != nil {
			return
		}
		for _, table := range r.Tables {
			for _, row := range table.Rows {
				for i := range table.Columns {
					milliseconds(r, row.Values[i])
				}
			}
		}
	})
}

// milliseconds returns a value in milliseconds. ok is false if there is none.
func milliseconds(r *published.Report, f published.Figure) (ms float64, ok bool) {
	n, err := strconv.ParseFloat(string(f), 64)
	return n * published.Units[r.Unit].Factor / 1e6, err == nil
}
