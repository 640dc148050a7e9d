package cli

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/untouched"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// place gives a test folders of its own and checks afterwards that the machine
// is as it was: no process, cgroup, mount or folder of tare's is left.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TARE_DATA_DIR", filepath.Join(dir, "data"))
	t.Setenv("TARE_STATE_DIR", filepath.Join(dir, "state"))
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "home"))
	t.Chdir(dir)
	var ids []string
	untouched.Check(t, dir, func() []string {
		records, _ := filepath.Glob(filepath.Join(dir, "*.jsonl"))
		for _, path := range records {
			if rec, err := record.Load(path); err == nil {
				ids = append(ids, rec.Header.RunID)
			}
		}
		return ids
	})
	return dir
}

// tare runs a command line in this process.
func tare(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = Execute(t.Context(), args, Streams{Out: &out, Err: &err})
	return code, out.String(), err.String()
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("weighing runtimes needs root")
	}
}

func needRunc(t *testing.T) {
	t.Helper()
	needRoot(t)
	if _, err := exec.LookPath("runc"); err != nil {
		t.Skip("runc is not installed: apt-get install runc")
	}
}

// TestEveryExampleOfHelpWorks runs all examples of all commands in the order
// in which help shows them, in one folder, as a reader would.
func TestEveryExampleOfHelpWorks(t *testing.T) {
	needRunc(t)
	untouched.Alone(t) // tare clean is among them
	m := withEngines(t)
	logs := map[string][]byte{}
	for _, name := range []string{"kata.log", "containerd.log"} { // read before the test goes elsewhere
		text, err := os.ReadFile("../instrument/startup/logs/testdata/cripod." + name)
		if err != nil {
			t.Fatal(err)
		}
		logs[name] = text
	}
	dir := place(t)
	plan := "version: 1\nname: example\nmeasure:\n  - lifecycle:\n      targets: [host, floor]\n"
	if err := os.WriteFile(filepath.Join(dir, "plan.yaml"), []byte(plan), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte(keptNotes), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "my.fio"), []byte("[a]\nrw=read\nsize=1m\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kata.log", "containerd.log"} {
		if err := os.WriteFile(filepath.Join(dir, name), logs[name], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var lines []string
	var collect func(c *cobra.Command)
	collect = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			lines = append(lines, strings.TrimSpace(line))
		}
		for _, sub := range c.Commands() {
			if sub.Name() == "report" {
				defer collect(sub) // its record is made by an example of lifecycle
				continue
			}
			collect(sub)
		}
	}
	collect(New(Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}))
	if len(lines) < 10 {
		t.Fatalf("only %d examples: %q", len(lines), lines)
	}
	for _, line := range lines {
		args := words(line)
		if args[0] != "tare" {
			t.Errorf("an example that is no command of tare: %q", line)
			continue
		}
		if args[1] == "overhead" { // as it is it watches every phase for ten seconds, three times
			if i := slices.Index(args, "--sandboxes"); i >= 0 {
				args = slices.Delete(args, i, i+2)
			}
			args = append(args, "--rounds", "1", "--sandboxes", "1", "--hold", "1200ms", "--settle", "300ms")
		}
		if args[1] == "top" && !slices.Contains(args, "--once") { // it would show what is there for ever
			args = append(args, "--once")
		}
		if args[1] == "lifecycle" && !slices.Contains(args, "host") && !slices.Contains(args, "-o") { // whether it works, not how long it takes
			args = append(args, "--warmup", "0")
			if slices.Contains(args, "--precision") {
				args = append(args, "--budget", "1s")
			} else {
				args = append(args, "--rounds", "1")
			}
		}
		began := time.Now()
		if code, out, stderr := tare(t, args[1:]...); code != 0 || out == "" {
			t.Errorf("%s: exit %d\n%s\n%s", line, code, out, stderr)
		}
		t.Logf("%.1f s: %s", time.Since(began).Seconds(), line)
	}
	m.nothingLeft(t)
}

// words splits a command line as a shell does that knows single quotes only.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}

func TestEveryCommandExplainsItself(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"lifecycle", "--help"}, {"overhead", "--help"}, {"storage", "--help"}, {"startup", "--help"}, {"top", "--help"}, {"run", "--help"}, {"import", "--help"}, {"report", "--help"}, {"doctor", "--help"}, {"clean", "--help"}, {"version"}, {"--version"}, {"completion", "bash"}, {"completion", "zsh"}, {"completion", "fish"}} {
		if code, out, stderr := tare(t, args...); code != 0 || len(out) < 10 || stderr != "" {
			t.Errorf("%v: exit %d, %q, %q", args, code, out, stderr)
		}
	}
}

func TestBadInputIsToldWithWhatToDo(t *testing.T) {
	dir := place(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	taken := write("taken.jsonl", "mine")
	mistake := write("mistake.yaml", "version: 1\nname: x\nmeasure:\n  - lifecycle:\n      rounds: none\n")
	for name, c := range map[string]struct {
		args []string
		says []string
	}{
		"an unknown target":             {[]string{"lifecycle", "nosuch"}, []string{"nosuch", "known are host, floor, runc", "NAME=PATH"}},
		"a runtime that is missing":     {[]string{"lifecycle", "x=/no/such/runtime"}, []string{"/no/such/runtime", "NAME=/path"}},
		"an empty path":                 {[]string{"lifecycle", "x="}, []string{"x=", "path"}},
		"the same target twice":         {[]string{"lifecycle", "host", "host"}, []string{"host", "twice"}},
		"a name with a control sign":    {[]string{"lifecycle", "a\x1b[2Jb"}, []string{"name"}},
		"lanes of zero":                 {[]string{"lifecycle", "host", "-n", "0"}, []string{"--lanes", "0"}},
		"lanes that are no number":      {[]string{"lifecycle", "host", "-n", "1,many"}, []string{"--lanes", "many"}},
		"an unknown operation":          {[]string{"lifecycle", "host", "--ops", "create,jump"}, []string{"jump", "runp, create, start, stop, rm, stopp, rmp, run"}},
		"a precision of 200 %":          {[]string{"lifecycle", "host", "--precision", "200%"}, []string{"--precision"}},
		"no rounds":                     {[]string{"lifecycle", "host", "--rounds", "0"}, []string{"--rounds", "0"}},
		"a baseline that is not there":  {[]string{"lifecycle", "host", "floor", "--baseline", "runc"}, []string{"baseline", "runc", "host, floor"}},
		"an unknown flag":               {[]string{"lifecycle", "--fast"}, []string{"--fast", "--help"}},
		"an unknown format":             {[]string{"lifecycle", "host", "--format", "xml"}, []string{"xml", "text"}},
		"a record that is there":        {[]string{"lifecycle", "host", "-o", taken}, []string{"taken.jsonl", "-o"}},
		"a record in no folder":         {[]string{"lifecycle", "host", "-o", filepath.Join(dir, "no", "r.jsonl")}, []string{"r.jsonl", "-o"}},
		"a report of nothing":           {[]string{"report", filepath.Join(dir, "none.jsonl")}, []string{"none.jsonl"}},
		"a report of what is no record": {[]string{"report", taken}, []string{"not a tare record"}},
		"a plan with a mistake":         {[]string{"run", mistake}, []string{"mistake.yaml:5:15:"}},
		"a plan that is not there":      {[]string{"run", filepath.Join(dir, "no.yaml")}, []string{"no.yaml"}},
		"an unknown command":            {[]string{"weight"}, []string{"weight"}},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, stderr := tare(t, c.args...)
			if code != ExitUsage || out != "" {
				t.Errorf("exit %d, stdout %q", code, out)
			}
			for _, want := range c.says {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q does not say %q", stderr, want)
				}
			}
			if strings.ContainsRune(stderr, 0x1b) {
				t.Errorf("a control sign reached the terminal: %q", stderr)
			}
		})
	}
	if b, _ := os.ReadFile(taken); string(b) != "mine" {
		t.Errorf("an existing file was changed: %q", b)
	}
}

func TestASecondRunAtOnceIsRefused(t *testing.T) {
	place(t)
	first, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		t.Fatal(err)
	}
	code, _, stderr := tare(t, "lifecycle", "host", "--rounds", "1")
	if code != ExitUsage || !strings.Contains(stderr, first.ID) || !strings.Contains(stderr, "two runs at once") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := tare(t, "lifecycle", "host", "--rounds", "1"); code != 0 {
		t.Errorf("after the first has ended: exit %d: %s", code, stderr)
	}
}
