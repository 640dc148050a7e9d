package page

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/dop251/goja"
)

// figures writes the chart files of a Markdown document.
type figures struct {
	keep    func(name string, svg []byte) (link string, err error)
	taken   map[string]bool
	colours map[string]string
	vm      *goja.Runtime
	draw    goja.Callable
}

// markdown adds links to charts if files can be stored. Mermaid cannot draw intervals, and the
// tables have the numbers.
func (f *figures) markdown(out *bufio.Writer, charts []*Chart) error {
	if f.keep == nil {
		return nil
	}
	for _, c := range charts {
		svg, err := f.svg(c)
		if err != nil {
			return fmt.Errorf("draw %s: %w", c.Name, err)
		}
		link, err := f.keep(uniqueID(f.taken, c.Name), svg)
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
		fmt.Fprintf(out, "\n![%s](<%s>)\n", escaped(c.Caption), link)
	}
	return nil
}

// svg renders a chart with the Vega and the specification of the HTML page. Its background is
// white, so that it is readable on a dark page.
func (f *figures) svg(c *Chart) ([]byte, error) {
	spec, err := json.Marshal(c.vegaLite(f.colours))
	if err != nil {
		return nil, fmt.Errorf("marshal specification: %w", err)
	}
	if f.draw == nil {
		if err := f.load(); err != nil {
			return nil, err
		}
	}
	v, err := f.draw(goja.Undefined(), f.vm.ToValue(string(spec)))
	if err != nil {
		return nil, fmt.Errorf("vega: %w", err)
	}
	p, ok := v.Export().(*goja.Promise) // nothing in it is asynchronous, so the promise is settled
	if !ok || p.State() != goja.PromiseStateFulfilled {
		return nil, fmt.Errorf("vega returned no image: %v", p.Result())
	}
	return []byte(p.Result().String()), nil
}

// scripts is the compiled Vega, shared by all documents. Compiling takes a quarter of a second.
var scripts = sync.OnceValues(func() (programs []*goja.Program, err error) {
	for _, script := range []string{"svg.js", "vega/vega.min.js", "vega/vega-lite.min.js"} {
		program, err := goja.Compile(script, asset(script), false)
		if err != nil {
			return nil, err
		}
		programs = append(programs, program)
	}
	return programs, nil
})

// load runs Vega in a JavaScript engine. Each document has its own engine, since
// specifications are untrusted.
func (f *figures) load() error {
	programs, err := scripts()
	if err != nil {
		return err
	}
	f.vm = goja.New()
	for _, program := range programs {
		if _, err := f.vm.RunProgram(program); err != nil {
			return err
		}
	}
	var ok bool
	if f.draw, ok = goja.AssertFunction(f.vm.Get("draw")); !ok {
		return errors.New("svg.js: no function draw")
	}
	return nil
}
