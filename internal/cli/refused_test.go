package cli

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// testdata is the absolute path of the testdata folder.
var testdata = func() string {
	dir, err := filepath.Abs("testdata")
	if err != nil {
		panic(err)
	}
	return dir
}()

func TestInvalidCommandLinesAreRefusedWithAdvice(t *testing.T) {
	place(t)
	must.OK(t, unix.Mkfifo("pipe", 0o600))
	must.Write(t, "taken.jsonl", "mine")
	must.Write(t, "mistake.yaml", "version: 1\nname: x\nmeasure:\n  - lifecycle:\n      rounds: none\n")
	refusals(t, "refused")
	if b, _ := os.ReadFile("taken.jsonl"); string(b) != "mine" {
		t.Errorf("an existing file was changed: %q", b)
	}
	need.Root(t)
	refusals(t, "refused-root")
}

// refusals checks that each command line of testdata/NAME.tsv is refused. A row has the
// arguments of tare and the expected parts of the output, separated by |. pairs contains
// placeholders in the rows, each followed by its value.
func refusals(t *testing.T, name string, pairs ...string) {
	t.Helper()
	for _, row := range must.Rows(t, filepath.Join(testdata, name+".tsv")) {
		values := strings.NewReplacer(pairs...)
		line, says := values.Replace(row[0]), values.Replace(row[1])
		t.Run(line, func(t *testing.T) { refuses(t, words(line), says) })
	}
}

// commands runs the command lines of testdata/NAME.tsv in order. A row has the exit
// status, the arguments of tare and the expected parts of the output, separated by |.
// pairs is as in refusals. check receives the output of each line.
func commands(t *testing.T, name string, check func(line, output string), pairs ...string) {
	t.Helper()
	for _, row := range must.Rows(t, filepath.Join(testdata, name+".tsv")) {
		for i := range row {
			row[i] = strings.NewReplacer(pairs...).Replace(row[i])
		}
		code := must.Get(strconv.Atoi(row[0]))(t)
		stdout, stderr := ends(t, code, row[2], words(row[1])...)
		if strings.ContainsRune(stdout+stderr, 0x1b) {
			t.Errorf("tare %s: an escape sequence is printed\n%s%s", row[1], stdout, stderr)
		}
		if check != nil {
			check(row[1], stdout+stderr)
		}
	}
}

// refuses checks that a command line is refused immediately, before anything runs.
func refuses(t *testing.T, args []string, says ...string) {
	t.Helper()
	began := time.Now()
	out, stderr := ends(t, ExitUsage, strings.Join(says, "|"), args...)
	if out != "" || strings.ContainsRune(stderr, 0x1b) || len(stderr) > 1000 {
		t.Errorf("tare %q: foreign text was printed unescaped, or there is a report: %.1000q, %.2000q", args, out, stderr)
	}
	if _, err := os.Stat("r.jsonl"); err == nil {
		t.Errorf("tare %q: a run was started", args)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("tare %q: refused after %v", args, took)
	}
}

// TestCommandLinesInDocumentsAreValid checks that README and the pages use
// only existing verbs and flags. Examples in help are tested by running them.
func TestCommandLinesInDocumentsAreValid(t *testing.T) {
	t.Parallel()
	pages := must.Get(filepath.Glob("../../docs/*.md"))(t)
	seen := 0
	for _, page := range append(pages, "../../README.md") {
		text := must.Read(t, page)
		for line := range strings.Lines(text) {
			line, found := strings.CutPrefix(line, "    tare ")
			if !found || strings.Contains(line, "·") { // the first line of a captured report
				continue
			}
			seen++
			if err := understood(line); err != nil {
				t.Errorf("%s: tare %s: %v", filepath.Base(page), line, err)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d command lines were found", seen)
	}
}

// TestSecurityPromisesHaveTests checks that each promise of SECURITY.md has its tests.
func TestSecurityPromisesHaveTests(t *testing.T) {
	t.Parallel()
	var code strings.Builder
	must.OK(t, filepath.WalkDir("../..", func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			code.WriteString(must.Read(t, path))
		}
		return err
	}))
	named := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(must.Read(t, "../../SECURITY.md"), -1)
	check.That(t, len(named) > 10, "only %d tests are named", len(named))
	for _, one := range named {
		check.That(t, strings.Contains(code.String(), "\nfunc "+one[1]+"(t *testing.T)"), "SECURITY.md names %s, which does not exist", one[1])
	}
}
