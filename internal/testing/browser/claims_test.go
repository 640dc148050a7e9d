package browser

import (
	"os"
	"sync"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// axe is axe-core, see docs/dependencies.md.
var axe = sync.OnceValues(func() ([]byte, error) { return os.ReadFile("testdata/axe.min.js") })

// in makes a part of a test of what is looked at in an open tab.
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

// violations are those that axe-core finds, by their rules.
func (p *tab) violations() []string {
	p.Helper()
	source, err := axe()
	must.OK(p, err)
	if !eval[bool](p, `() => 'axe' in window`) {
		p.run(string(source), nil)
	}
	return eval[[]string](p, `async () => (await axe.run(document, {resultTypes: ['violations'], preload: false})).violations.map(
		v => v.id + ': ' + v.help + ': ' + v.nodes.length + ' × ' + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200) + ' ' + n.any.concat(n.all, n.none).map(c => c.message)).join('\n\t'))`)
}

// overflow says what is wider than the window, "" where nothing is.
func (p *tab) overflow() string {
	p.Helper()
	return eval[string](p, must.Read(p, "testdata/overflow.js"))
}

// drawn is when all pictures of a page are.
const drawn = `() => document.documentElement.hasAttribute('data-drawn')`

// painted is once what is drawn can be seen.
const painted = `new Promise(done => requestAnimationFrame(() => setTimeout(done)))`
