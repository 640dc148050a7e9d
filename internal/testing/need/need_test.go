package need

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/check"
)

// outcome records how a test ended.
type outcome struct{ verb, reason string }

func (o *outcome) Helper() {}

func (o *outcome) Fatalf(format string, args ...any) { o.end("fail", format, args...) }

func (o *outcome) Skipf(format string, args ...any) { o.end("skip", format, args...) }

func (o *outcome) end(verb, format string, args ...any) {
	*o = outcome{verb, fmt.Sprintf(format, args...)}
	panic(o)
}

func ask(need func(TB)) (o *outcome) {
	o = &outcome{}
	defer func() {
		if r := recover(); r != nil && r != any(o) {
			panic(r)
		}
	}()
	need(o)
	return o
}

func TestNeeds(t *testing.T) {
	absent := func(t TB) { Tool(t, "no-such-program") }
	for _, test := range []struct {
		name, require string
		need          func(TB)
		verb, reason  string
	}{
		{"a tier that is not required is skipped with its target", "", Browser, "skip", "needs Chromium: run make test-browser"},
		{"another tier does not run it", "vm,tools", Browser, "skip", "make test-browser"},
		{"a required tier runs", "browser", Browser, "", ""},
		{"all is every tier", "all", Browser, "", ""},
		{"youki runs only with all", "engines", func(t TB) { Runtime(t, "youki") }, "skip", "run make test-all"},
		{"installed program is found", "", func(t TB) { Tool(t, "sh") }, "", ""},
		{"a missing program skips with its package", "", absent, "skip", "apt-get install no-such-program"},
		{"missing program fails if tools are required", "tools", absent, "fail", "TARE_REQUIRE=tools"},
		{"a compiler runs with the tools only", "", func(t TB) { Tool(t, "clang-14") }, "skip", "run make test-tools"},
		{"the host needs nothing", "", func(t TB) { Runtime(t, "host") }, "", ""},
		{"long test is skipped without a required tier", "", Long, "skip", "run make test-all"},
		{"a long test runs with any tier", "engines", Long, "", ""},
		{"a misspelt tier is a failure", "engine", Cluster, "fail", `unknown tier "engine"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv(Variable, test.require)
			o := ask(test.need)
			check.That(t, o.verb == test.verb && strings.Contains(o.reason, test.reason), "got %q %q, want %q %q", o.verb, o.reason, test.verb, test.reason)
		})
	}
}

func TestWithoutRootTestsAreSkippedOrFailIfRequired(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Setenv(Variable, "")
		o := ask(Root)
		check.That(t, o.verb == "", "root: %s %s", o.verb, o.reason)
		return
	}
	for require, verb := range map[string]string{"": "skip", "engines": "fail"} {
		t.Setenv(Variable, require)
		o := ask(Root)
		check.That(t, o.verb == verb, "%q: %s %s, want %s", require, o.verb, o.reason, verb)
	}
}
