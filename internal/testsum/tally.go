package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// tally counts tests from the events of go test.
//
// A test that only holds subtests is not counted beside them, unless it failed
// or skipped by itself. A test that began and never ended has failed. A package
// that failed without a failing test (it does not build, or its TestMain gave
// up) counts as one failed test, so that a failure is never a zero.
type tally struct {
	passed, failed, skipped int

	out      io.Writer
	module   string
	packages map[string]*pkg
	builds   map[string]*strings.Builder // what the compiler said, by import path
	failures []string
	skips    []string
	spoke    time.Time // when something was printed last
	began    time.Time
}

type pkg struct {
	name   string
	began  time.Time
	output strings.Builder
	tests  []*result
	byName map[string]*result
}

type result struct {
	name    string
	output  strings.Builder
	outcome string // pass, fail, skip; empty while it runs
	group   bool   // has subtests
	blamed  bool   // a subtest of it failed
}

func newTally(out io.Writer, module string) *tally {
	now := time.Now()
	return &tally{
		out: out, module: module, began: now, spoke: now,
		packages: map[string]*pkg{}, builds: map[string]*strings.Builder{},
	}
}

func (t *tally) count() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

func (t *tally) add(e event) {
	if e.Action == "build-output" {
		b, ok := t.builds[e.ImportPath]
		if !ok {
			b = &strings.Builder{}
			t.builds[e.ImportPath] = b
		}
		b.WriteString(e.Output)
		return
	}
	if e.Package == "" {
		return
	}
	p, ok := t.packages[e.Package]
	if !ok {
		p = &pkg{name: e.Package, began: time.Now(), byName: map[string]*result{}}
		t.packages[e.Package] = p
	}
	switch e.Action {
	case "output":
		if e.Test == "" {
			p.output.WriteString(e.Output)
		} else {
			p.test(e.Test).output.WriteString(e.Output)
		}
	case "run":
		p.test(e.Test)
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.test(e.Test).outcome = e.Action
			return
		}
		t.end(p, e)
	}
}

// finish closes what go test left open, lists what failed and what was
// skipped. The error is how go test ended.
func (t *tally) finish(err error) {
	for _, p := range t.packages {
		t.end(p, event{Action: "fail", Elapsed: time.Since(p.began).Seconds()})
	}
	if err != nil && t.failed == 0 {
		t.failed++
		t.failures = append(t.failures, failure(err))
	}
	t.list("failed", t.failures)
	t.list("skipped", t.skips)
	if t.passed+t.failed+t.skipped == 0 {
		fmt.Fprintln(t.out, "no test ran")
	}
}

// signOfLife says what is under way, when nothing else was said for long.
func (t *tally) signOfLife(now time.Time) {
	if now.Sub(t.spoke) < silence {
		return
	}
	t.spoke = now
	if len(t.packages) == 0 {
		fmt.Fprintf(t.out, "...  %7.1fs  building\n", now.Sub(t.began).Seconds())
	}
	for _, p := range t.packages {
		fmt.Fprintf(t.out, "...  %7.1fs  %s %s\n", now.Sub(p.began).Seconds(), t.short(p.name), p.running())
	}
}

// end counts a package that is over, and prints its line.
func (t *tally) end(p *pkg, e event) {
	delete(t.packages, p.name)
	p.settle(e.Action == "fail")

	var passed, failed, skipped int
	for _, r := range p.tests {
		switch {
		case r.outcome == "skip":
			skipped++
			t.skips = append(t.skips, fmt.Sprintf("%s %s: %s", t.short(p.name), r.name, reason(r.output.String())))
		case r.outcome == "fail":
			t.show(t.short(p.name)+" "+r.name, r.output.String())
			if !r.blamed {
				failed++
				t.failures = append(t.failures, t.short(p.name)+" "+r.name)
			}
		case r.outcome == "pass" && !r.group:
			passed++
		}
	}
	if e.Action == "fail" {
		t.show(t.short(p.name), p.output.String())
		if failed == 0 {
			failed++
			t.failures = append(t.failures, t.short(p.name)+" "+t.why(e))
		}
	}
	t.passed += passed
	t.failed += failed
	t.skipped += skipped
	if passed+failed+skipped == 0 {
		return // it has no tests
	}

	verdict := "ok  "
	if failed > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(t.out, "%s %7.1fs  %s: %d passed", verdict, e.Elapsed, t.short(p.name), passed)
	if failed > 0 {
		fmt.Fprintf(t.out, ", %d failed", failed)
	}
	if skipped > 0 {
		fmt.Fprintf(t.out, ", %d skipped", skipped)
	}
	fmt.Fprintln(t.out)
	t.spoke = time.Now()
}

// why is the reason of a package's failure that no test has, having shown what
// the compiler said of it once.
func (t *tally) why(e event) string {
	if e.FailedBuild == "" {
		return "(outside its tests)"
	}
	if b, ok := t.builds[e.FailedBuild]; ok {
		t.show(e.FailedBuild, b.String())
		delete(t.builds, e.FailedBuild)
	}
	return "(does not build)"
}

// show prints what a failing test or package printed, less go test's framing.
func (t *tally) show(title, output string) {
	var kept []string
	for line := range strings.Lines(output) {
		if !framing.MatchString(line) {
			kept = append(kept, "    "+line)
		}
	}
	if len(kept) > 0 {
		fmt.Fprintf(t.out, "---- %s\n%s", title, strings.Join(kept, ""))
		if !strings.HasSuffix(output, "\n") {
			fmt.Fprintln(t.out)
		}
	}
}

var framing = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME) |\s*--- (PASS|SKIP): |(PASS|FAIL|ok)\s)`)

func (t *tally) list(title string, entries []string) {
	if len(entries) == 0 {
		return
	}
	fmt.Fprintf(t.out, "\n%s:\n", title)
	for _, entry := range entries {
		fmt.Fprintf(t.out, "  %s\n", entry)
	}
}

func (t *tally) short(pkg string) string {
	if pkg == t.module {
		return "."
	}
	return strings.TrimPrefix(pkg, t.module+"/")
}

// test returns the result of that name, made when it is first heard of.
func (p *pkg) test(name string) *result {
	r, ok := p.byName[name]
	if !ok {
		r = &result{name: name}
		p.byName[name] = r
		p.tests = append(p.tests, r)
		for above := range p.above(name) {
			above.group = true
		}
	}
	return r
}

// above yields the tests that the one of that name is a subtest of.
func (p *pkg) above(name string) func(yield func(*result) bool) {
	return func(yield func(*result) bool) {
		for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name, '/') {
			name = name[:i]
			if r, ok := p.byName[name]; ok && !yield(r) {
				return
			}
		}
	}
}

// settle closes the tests that are still open when the package ends, and marks
// those that failed because of a subtest.
func (p *pkg) settle(failed bool) {
	for _, r := range p.tests {
		switch {
		case r.outcome == "" && failed:
			r.outcome = "fail"
			r.output.WriteString("it began and never ended\n")
		case r.outcome == "": // the package knows better
			r.outcome = "pass"
		}
	}
	for _, r := range p.tests {
		if r.outcome == "fail" {
			for above := range p.above(r.name) {
				above.blamed = true
			}
		}
	}
}

// running names the test that is under way.
func (p *pkg) running() string {
	var names []string
	for _, r := range p.tests {
		if r.outcome == "" && !r.group {
			names = append(names, r.name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// reason is the last thing that a skipped test logged, which is why.
func reason(output string) string {
	var lines []string
	for line := range strings.Lines(output) {
		if framing.MatchString(line) {
			continue
		}
		if at := logged.FindStringIndex(line); at != nil {
			lines, line = nil, line[at[1]:]
		}
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return "no reason given"
	}
	return strings.Join(lines, " ")
}

var logged = regexp.MustCompile(`^\s+\S+\.go:\d+: `)
