package browser

import (
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/testing/hostile"
	"github.com/tare-bench/tare/internal/testing/must"
)

// harmful ends what a text may stand in, and begins what would be obeyed.
const harmful = "</script></style></title></textarea>--><script>alert(1)</script><img src=//x.invalid onerror=alert(2)>" +
	`"'` + "`" + ` onfocus=alert(3) autofocus ${alert(4)} {{alert(5)}} <a href="javascript:alert(6)">javascript:alert(7)</a>` +
	"<svg/onload=alert(8)><meta http-equiv=refresh content=0;url=//x.invalid>&lt;b&gt;\x1b[31m\u202egnp\u2028\u0000<base href=//x.invalid>]]>"

// kinds are the elements of a page with their attributes, and what is linked to.
const kinds = `() => [...new Set([...document.querySelectorAll('*')].flatMap(e => [e.localName, ...[...e.attributes].map(
	a => e.localName + '[' + a.name + (/^(href|src|action|xlink:href)$/.test(a.name) ? '=' + a.value.replace(/[#].*/, '#') : '') + ']')]))]`

func TestAHostileRecordIsText(t *testing.T) {
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
			usual := append(eval[[]string](p, kinds), "dl", "dt", "dd") // of notes, which a record may lack that is not hostile
			must.OK(t, hostile.Record(rec, harmful))
			p.show("hostile", report(t, rec))
			p.await(drawn)
			for _, kind := range eval[[]string](p, kinds) {
				if !slices.Contains(usual, kind) {
					t.Errorf("the record brought %s with it", kind)
				}
			}
			text := eval[string](p, `() => document.body.textContent`)
			if !strings.Contains(text, "<script>alert(1)</script>") || !strings.Contains(text, term.Clean(harmful)) {
				t.Errorf("hostile text is not shown as it is:\n%.2000s", text)
			}
			if term.Clean(text) != text && term.Clean(strings.ReplaceAll(text, "\n", " ")) != strings.ReplaceAll(text, "\n", " ") {
				t.Error("what only acts on other text is passed on")
			}
		})
	}
}

func TestNamesThatMeanSomethingToAScriptAreNames(t *testing.T) {
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
	text := eval[string](p, `() => document.body.innerText`)
	for _, name := range []string{"__proto__", "constructor"} {
		if !strings.Contains(text, name) {
			t.Errorf("%s is not there", name)
		}
	}
	if wide := p.overflow(); wide != "" {
		t.Error(wide)
	}
}
