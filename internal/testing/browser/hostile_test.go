package browser

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tare-bench/tare/internal/cli"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/hostile"
	"github.com/tare-bench/tare/internal/testing/must"
)

// harmful closes every possible context and begins active content.
const harmful = "</script></style></title></textarea>--><script>alert(1)</script><img src=//x.invalid onerror=alert(2)>" +
	`"'` + "`" + ` onfocus=alert(3) autofocus ${alert(4)} {{alert(5)}} <a href="javascript:alert(6)">javascript:alert(7)</a>` +
	"<svg/onload=alert(8)><meta http-equiv=refresh content=0;url=//x.invalid>&lt;b&gt;\x1b[31m\u202egnp\u2028\u0000<base href=//x.invalid>]]>"

// kinds returns the elements of a page with their attributes and links.
const kinds = `() => [...new Set([...document.querySelectorAll('*')].flatMap(e => [e.localName, ...[...e.attributes].map(
	a => e.localName + '[' + a.name + (/^(href|src|action|xlink:href)$/.test(a.name) ? '=' + a.value.replace(/[#].*/, '#') : '') + ']')]))]`

func TestHostileRecordIsEscaped(t *testing.T) {
	t.Parallel()
	for _, one := range all.Instruments {
		t.Run(one.Name, func(t *testing.T) {
			t.Parallel()
			file := one.Name + ".jsonl"
			if one.Name == "bpf" {
				file = "bpf-load.jsonl"
			}
			p := newTab(t)
			rec := load(t, stored+file)
			p.show("clean", report(t, rec))
			p.await(drawn)
			usual := append(eval[[]string](p, kinds), "dl", "dt", "dd") // for notes, which a harmless record may not have
			must.OK(t, hostile.Record(rec, harmful))
			p.show("hostile", report(t, rec))
			p.await(drawn)
			for _, kind := range eval[[]string](p, kinds) {
				check.That(t, slices.Contains(usual, kind), "the record added %s", kind)
			}
			text := eval[string](p, `() => document.body.textContent`)
			check.That(t, strings.Contains(text, "<script>alert(1)</script>") && strings.Contains(text, term.Clean(harmful)),
				"hostile text is not shown verbatim:\n%.2000s", text)
			check.That(t, term.Clean(text) == text || term.Clean(strings.ReplaceAll(text, "\n", " ")) == strings.ReplaceAll(text, "\n", " "),
				"what only acts on other text is passed on")
		})
	}
}

func TestScriptKeywordsAreValidNames(t *testing.T) {
	t.Parallel()
	rec := load(t, stored+"lifecycle.jsonl")
	names := map[string]string{"host": "__proto__", "runc": "constructor", "crun": strings.Repeat("long", 2500)}
	for i := range rec.Targets {
		rec.Targets[i].Name = names[rec.Targets[i].Name]
	}
	for i := range rec.Batches {
		rec.Batches[i].Target = names[rec.Batches[i].Target]
	}
	for old, name := range names {
		rec.Header.Plan = []byte(strings.ReplaceAll(string(rec.Header.Plan), `"`+old+`"`, `"`+name+`"`))
	}
	p := newTab(t)
	p.resize(phone)
	p.show("names", report(t, rec))
	p.await(drawn)
	check.Contains(t, "is not there", eval[string](p, `() => document.body.innerText`), "__proto__", "constructor")
	check.Equal(t, "overflow", p.overflow(), "")
}

// axe is axe-core, see docs/dependencies.md.
var axe = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/axe.min.js") })

// in runs a subtest on an open tab.
func (p *tab) in(name string, look func()) {
	p.Helper()
	whole := p.T
	whole.Run(name, func(t *testing.T) {
		p.T = t
		defer func() { p.T = whole }()
		look()
		for _, what := range p.faults() {
			t.Error(what)
		}
	})
}

// violations returns the violations that axe-core finds, by rule.
func (p *tab) violations() []string {
	p.Helper()
	source := must.Get(axe())(p)
	if !eval[bool](p, `() => 'axe' in window`) {
		p.run(string(source), nil)
	}
	return eval[[]string](p, `async () => (await axe.run(document, {resultTypes: ['violations'], preload: false})).violations.map(
		v => v.id + ': ' + v.help + ': ' + v.nodes.length + ' × ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.any.concat(n.all, n.none).map(c => c.message)).join('\n\t'))`)
}

// overflow returns the elements wider than the window, "" if there are none.
func (p *tab) overflow() string {
	p.Helper()
	return eval[string](p, must.Read(p, "testdata/overflow.js"))
}

// drawn is true once all charts of a page are drawn.
const drawn = `() => document.documentElement.hasAttribute('data-drawn')`

// painted resolves once the drawn content is visible.
const painted = `new Promise(done => requestAnimationFrame(() => setTimeout(done)))`

// served starts tare serve and returns its address with a token.
func served(t *testing.T, dir string) string {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	read, write := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- cli.Execute(ctx, []string{"serve", dir}, cli.Streams{Out: write, Err: io.Discard})
		write.Close()
	}()
	t.Cleanup(func() {
		interrupt()
		check.Equal(t, "tare serve: exit", <-code, cli.ExitDone)
	})
	address := must.Get(bufio.NewReader(read).ReadString('\n'))(t)
	return strings.TrimSpace(address)
}

func TestServedPagesAreAccessible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, os.DirFS("../../../record/testdata/v1")))
	const hostile = "<img src=x onerror=alert(1)>.jsonl"
	must.Write(t, filepath.Join(dir, hostile), "garbled")
	text := must.Read(t, filepath.Join(dir, "lifecycle.jsonl"))
	lines := strings.SplitAfter(text, "\n")
	growing, err := os.Create(filepath.Join(dir, "growing.jsonl")) // incomplete: the end is written later
	must.OK(t, err)
	defer growing.Close()
	grow := func(lines []string) {
		must.Get(growing.WriteString(strings.Join(lines, "")))(t)
	}
	grow(lines[:8])

	p := newTab(t)
	address := served(t, dir)
	p.home, _, _ = strings.Cut(address, "?")
	p.in("the address has no token", func() {
		p.open(address)
		if at := eval[string](p, `() => location.href`); at != p.home {
			p.Errorf("address %s", at)
		}
		if shown := eval[string](p, `() => document.body.textContent`); !strings.Contains(shown, hostile) {
			p.Errorf("no hostile name as text:\n%s", shown)
		}
	})
	for _, at := range []string{"", "?q=storage", "live?r=growing.jsonl", "live?r=lifecycle.jsonl"} {
		for width, theme := range looks {
			p.in(fmt.Sprintf("/%s, %s, %d px wide", at, theme, width), func() {
				p.resize(width)
				p.medium(theme)
				p.open(p.home + at)
				p.run(painted, nil)
				p.isUsable()
			})
		}
	}
	p.in("two records are selected and compared", func() {
		p.open(p.home)
		eval[bool](p, `() => { for (const [name, value] of [['a', 'startup.jsonl'], ['b', 'startup.jsonl']]) document.querySelector('[name=' + name + '][value="' + value + '"]').click(); return true }`)
		if at := eval[string](p, `() => location.origin + '/compare?' + new URLSearchParams(new FormData(document.querySelector('form[action="/compare"]')))`); at != p.home+"compare?a=startup.jsonl&b=startup.jsonl" {
			p.Errorf("requested %s", at)
		}
	})
	p.in("a report links back", func() {
		p.open(p.home + "report?r=lifecycle.jsonl")
		p.await(drawn)
		if back := eval[string](p, `() => document.querySelector('.beside a').href`); back != p.home {
			p.Errorf("links to %s", back)
		}
	})
	p.in("a live run is updated until its end", func() {
		p.open(p.home + "live?r=growing.jsonl")
		before := eval[string](p, `() => document.getElementById('samples').textContent`)
		grow(lines[8:20])
		p.await(`() => document.getElementById('samples').textContent !== '` + before + `'`)
		grow(lines[20:])
		p.await(`() => document.getElementById('state').textContent === 'done'`)
		rec, n := load(t, growing.Name()), 0
		for _, b := range rec.Batches {
			n += len(b.Samples)
		}
		if shown := eval[string](p, `() => document.getElementById('samples').textContent`); shown != fmt.Sprint(n) {
			p.Errorf("%s samples, want %d", shown, n)
		}
	})
}
