package cli

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/goccy/go-yaml"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// variants writes copies of a stored record. It maps each file name to pairs of texts to
// replace. Every copy has its own run name.
func variants(t *testing.T, dir, stored string, files map[string][]string) {
	t.Helper()
	text := must.Read(t, filepath.Join("../../record/testdata/v1", stored))
	for name, pairs := range files {
		id := regexp.MustCompile(`"run_id":"[^"]*"`).ReplaceAllString(text, fmt.Sprintf(`"run_id":%q`, strings.NewReplacer("/", "-", ".", "-").Replace(name)))
		must.Write(t, filepath.Join(dir, name), strings.NewReplacer(pairs...).Replace(id))
	}
}

// quiet are replacements that remove PSI data from a record.
var quiet = []string{`"have_psi":true`, `"have_psi":false`}

// The recipes of docs/compare.md run on suitable records.
func TestEveryCompareRecipeWorks(t *testing.T) {
	dir := t.TempDir()
	arm := []string{`"arch":"x86_64"`, `"arch":"aarch64"`, "AMD EPYC", "Neoverse-N1"}
	configured := func(key, value string) []string {
		return append([]string{`"config":{`, `"config":{"` + key + `":"` + value + `",`}, quiet...)
	}
	k61 := append([]string{"6.18.44", "6.1.0"}, quiet...)
	variants(t, dir, "lifecycle.jsonl", map[string][]string{
		"x86.jsonl": {}, "arm.jsonl": arm, "old/1.jsonl": {}, "old/2.jsonl": {}, "new/1.jsonl": {}, "new/2.jsonl": {}, "new-3.jsonl": {},
	})
	for i := range 3 { // the minimum for a verdict
		own, shared, name := configured("sandbox_cgroup_only", "true"), configured("sandbox_cgroup_only", "false"), fmt.Sprintf("/%d.jsonl", i)
		variants(t, dir, "lifecycle.jsonl", map[string][]string{"boot" + name: configured("template", "false"), "template" + name: configured("template", "true"), "k618" + name: quiet, "k61" + name: k61})
		variants(t, dir, "overhead.jsonl", map[string][]string{"own" + name: own, "shared" + name: shared})
	}
	variants(t, dir, "storage.jsonl", map[string][]string{"disk.jsonl": {`"runc"`, `"kata"`, `"host"`, `"runc"`}})
	services := map[string][]string{}
	for i, n := range []string{"1", "1", "100", "100", "1000", "1000"} {
		services[fmt.Sprintf("s%s-%c.jsonl", n, 'a'+i%2)] = []string{`"services":1`, `"services":` + n, `"services":[1]`, `"services":[` + n + `]`}
	}
	variants(t, dir, "bpf-load.jsonl", services)
	text := must.Read(t, "../../docs/compare.md")
	t.Chdir(dir)
	seen := 0
	for line := range strings.Lines(text) {
		line, found := strings.CutPrefix(line, "    tare compare ")
		if !found {
			continue
		}
		command, says, _ := strings.Cut(strings.TrimSpace(line), "   # ")
		formats := []string{"text", "md", "csv", "json"}
		if seen++; seen > 1 {
			formats = formats[:1]
		}
		for _, format := range formats {
			code, out, stderr := tare(t, append([]string{"compare", "--format", format}, words(strings.TrimSpace(command))...)...)
			if code != ExitDone || stderr != "" {
				t.Fatalf("tare compare %s as %s: exit %d\n%s", command, format, code, stderr)
			}
			rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			switch {
			case format == "text" && !strings.Contains(out, says):
				t.Errorf("tare compare %s does not print %q:\n%s", command, says, out)
			case format == "csv" && (err != nil || len(rows) < 2), format == "json" && !json.Valid([]byte(out)), format == "md" && !strings.Contains(out, "| ---"):
				t.Errorf("tare compare %s as %s:\n%s", command, format, out)
			}
		}
	}
	if seen < 7 {
		t.Errorf("only %d recipes", seen)
	}
}

func TestUnreadablePartsAreReportedByCompare(t *testing.T) {
	dir := t.TempDir()
	variants(t, dir, "lifecycle.jsonl", map[string][]string{"a.jsonl": {}, "b.jsonl": {`"round":0,`, `"round":0,"round":5,`}})
	t.Chdir(dir)
	for _, verb := range []string{"compare a.jsonl b.jsonl", "gate a.jsonl b.jsonl", "history a.jsonl b.jsonl --filter op:run"} {
		_, _, stderr := tare(t, words(verb)...)
		if strings.Count(stderr, "b.jsonl: lines of the record that could not be read: ") != 1 || strings.Contains(stderr, "a.jsonl: lines") {
			t.Errorf("tare %s printed %s", verb, stderr)
		}
	}
}

func TestCompareReportsErrors(t *testing.T) {
	dir := t.TempDir()
	variants(t, dir, "lifecycle.jsonl", map[string][]string{"a.jsonl": {}, "b.jsonl": {"6.18.44", "6.1.0"}, "empty/readme.txt": {}})
	t.Chdir(dir)
	refusals(t, "compare")
}

func TestCompareEscapesHostileRecords(t *testing.T) {
	dir := t.TempDir()
	hostile := `\u001b[31m<b>|` + "`x`" + `\n# heading\u202e=1+1`
	variants(t, dir, "lifecycle.jsonl", map[string][]string{"a.jsonl": {}, "b.jsonl": {"AMD EPYC", hostile, `"runc"`, `"runc` + hostile + `"`, `"version":"1`, `"version":"` + hostile}})
	t.Chdir(dir)
	for _, args := range []string{"compare a.jsonl b.jsonl", "compare a.jsonl b.jsonl --unlike", "compare b.jsonl --col target", "gate a.jsonl b.jsonl --unlike"} {
		for _, format := range []string{"text", "md", "csv", "json"} {
			_, out, stderr := tare(t, append(words(args), "--format", format)...)
			for _, r := range out + stderr {
				if r != '\n' && !unicode.IsGraphic(r) {
					t.Fatalf("%s as %s: unescaped %U", args, format, r)
				}
			}
			if strings.HasPrefix(args, "compare") && !strings.Contains(out+stderr, "heading") {
				t.Errorf("%s as %s: no hostile text reached the output", args, format)
			}
			if format == "md" && (strings.Contains(out, "<b>") || strings.Contains(out, "\n# ")) {
				t.Errorf("%s: Markdown is injected:\n%s", args, out)
			}
		}
	}
}

func TestGateExitsWithItsVerdict(t *testing.T) {
	dir := t.TempDir()
	// The stored record has few rounds of host, so only a wide margin passes.
	variants(t, dir, "lifecycle.jsonl", map[string][]string{"base.jsonl": quiet, "same.jsonl": quiet, "gone.jsonl": append([]string{`"op":"run"`, `"op":"rerun"`}, quiet...), "arm.jsonl": {"x86_64", "aarch64"}, "busy.jsonl": {}})
	t.Chdir(dir)
	commands(t, "gate", nil)
}

func TestGateMeasuresBothSidesInTheSameRounds(t *testing.T) {
	needRunc(t)
	dir := place(t)
	wrapper(t, dir, "runc-old", `[ "$verb" = create ] && sleep 0`)
	wrapper(t, dir, "runc-new", `[ "$verb" = create ] && sleep 0.3`)
	code, out, stderr := tare(t, words("gate --interleave old=./runc-old new=./runc-new --ops create --rounds 8 --warmup 0 -q -o r.jsonl --format json")...)
	var d struct {
		Figures []struct {
			Verdict string
			Versus  struct{ Of string }
		}
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != ExitRegressed || len(d.Figures) != 1 || d.Figures[0].Verdict != "worse" || d.Figures[0].Versus.Of != "pairs" {
		t.Errorf("0.3 s slower: exit %d, %v\n%s\n%s", code, err, out, stderr)
	}
	out, _ = ends(t, ExitUsage, "is below the noise of this machine", words("gate --self old=./runc-old --worse 0.01% --ops create --rounds 6 --warmup 0 -q -o s.jsonl")...)
	check.Equal(t, "report of a margin below the noise", out, "")
}

func TestGateOfSingleRunsMeasuresRunToRunSpread(t *testing.T) {
	needRunc(t)
	need.Long(t)
	place(t)
	for _, name := range []string{"base.jsonl", "new.jsonl"} {
		ends(t, ExitDone, "failed 0/", words("lifecycle host floor runc --ops run --rounds 8 --warmup 0 -q -o "+name)...)
		text := strings.NewReplacer(quiet...).Replace(must.Read(t, name)) // ignore the load of the test machine
		must.Write(t, name, text)
	}
	const gate = "gate base.jsonl new.jsonl --metric 'target:runc quantity:latency' --worse 50% --format json -q "
	figures := map[string]string{}
	for way, how := range map[string]string{"controls": "", "self": "--self -o self.jsonl"} {
		_, figures[way], _ = tare(t, words(gate+how)...)
	}
	_, figures["earlier"], _ = tare(t, words(gate+"--earlier self-1.jsonl,self-2.jsonl,self-3.jsonl,self-4.jsonl,self-5.jsonl")...)
	if figures["self"] != figures["earlier"] || figures["self"] == figures["controls"] {
		t.Errorf("results of new and earlier records differ, or equal those of the controls: %s", figures)
	}
	ends(t, ExitUsage, `this is a record of "overhead", not of lifecycle`, "gate", "--self", filepath.Join(testdata, "../../../record/testdata/v1/overhead.jsonl"), "new.jsonl", "-q")
}

// One runtime returns 1 s before its start is done. The other one returns late.
func TestRuntimeThatReturnsEarlyDoesNotWin(t *testing.T) {
	needRunc(t)
	need.Long(t)
	dir := place(t)
	wrapper(t, dir, "runc-old", "")
	wrapper(t, dir, "early-start", `[ "$verb" = start ] && { (sleep 1; exec "$runc" "$@") >/dev/null 2>&1 & exit 0; }`)
	wrapper(t, dir, "early-run", `[ "$verb" = run ] && { (sleep 1; exec "$runc" "$@") & exit 0; }`)
	wrapper(t, dir, "late-start", `[ "$verb" = start ] && { "$runc" "$@"; sleep 1; exit 0; }`)
	for _, c := range []struct{ new, op, early, worse string }{
		{"early-start", "start", "before the workload ran", "latency  target=new op=start"},
		{"early-run", "run", "before the workload ran", "latency  target=new op=run"},
		{"late-start", "start", "", "time-to  target=new op=start"},
	} {
		file := c.new + ".jsonl"
		out, _ := ends(t, ExitRegressed, "gate: worse", words("gate --interleave old=./runc-old new=./"+c.new+" --ops "+c.op+" --rounds 8 --warmup 0 -q -o "+file)...)
		check.Contains(t, fmt.Sprintf("%s: output of the gate", c.new), out, c.early)
		for line := range strings.Lines(out) {
			if strings.Contains(line, c.worse) && strings.Contains(line, "not worse") {
				t.Errorf("%s: %s", c.new, line)
			}
		}
		if report, _ := ends(t, ExitDone, "failed 0/", "report", file); strings.Contains(report, "before the workload ran") != (c.early != "") {
			t.Errorf("%s: wrong report\n%s", c.new, report)
		}
	}
}

func TestLatePidFileCounts(t *testing.T) {
	needRunc(t)
	wrapper(t, place(t), "runc-late", `[ "$verb" = run ] && { "$runc" "$@"; mv "$8" "$8.late"; (sleep 0.3; mv "$8.late" "$8") >/dev/null 2>&1 & exit 0; }`)
	ends(t, ExitDone, "failed 0/3", words("lifecycle late=./runc-late --ops run --rounds 3 --warmup 0 -q -o r.jsonl")...)
}

// job has the keywords of a GitLab job that are in use. Any other keyword is a mistake.
// https://docs.gitlab.com/ci/yaml/
type job struct {
	Stage        string
	Image        string
	Tags         []string
	Rules        []struct{ If string }
	BeforeScript []string `yaml:"before_script"`
	Script       []string
	AllowFailure struct {
		ExitCodes []int `yaml:"exit_codes"`
	} `yaml:"allow_failure"`
	Artifacts struct {
		When     string
		Paths    []string
		ExpireIn string `yaml:"expire_in"`
	}
}

func TestGitLabJobIsValid(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile("../../docs/ci/gitlab-ci.yml"))(t)
	var ci struct {
		Stages []string
		Gate   job `yaml:"runtime-gate"`
	}
	must.OK(t, yaml.UnmarshalWithOptions(text, &ci, yaml.Strict()))
	g := ci.Gate
	if len(ci.Stages) != 1 || g.Stage != ci.Stages[0] || g.Image == "" || len(g.AllowFailure.ExitCodes) != 1 || g.AllowFailure.ExitCodes[0] != ExitUndecided || g.Artifacts.When != "always" {
		t.Errorf("got %+v", ci)
	}
}

// The commands in the CI files are valid and documented.
func TestCICommandsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, name := range []string{"gitlab-ci.yml", "github.yml"} {
		text := must.Read(t, "../../docs/ci/"+name)
		for line := range strings.Lines(text) {
			call := regexp.MustCompile(`\btare"? gate (.*)`).FindStringSubmatch(line)
			if call == nil {
				continue
			}
			seen++
			if err := understood("gate " + call[1]); err != nil {
				t.Errorf("%s: %s: %v", name, line, err)
			}
		}
	}
	check.Equal(t, "calls of the gate", seen, 3)
}
