package browser

import (
	"strings"
	"testing"
)

// A test that finds nothing on a page shows something only if it would have.
func TestWhatAPageMustNotDoIsSeen(t *testing.T) {
	t.Parallel()
	const policy = `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; img-src *">`
	for name, c := range map[string]struct{ html, want string }{
		"a request":                      {`<img src="http://127.0.0.1:9/x.png">`, "a request for http://127.0.0.1:9/x.png"},
		"an error":                       {`<script>undefined.x</script>`, "an exception"},
		"a promise that nobody looks at": {`<script>Promise.reject(new Error('lost'))</script>`, "lost"},
		"a warning":                      {`<script>console.warn('beware')</script>`, "beware"},
		"a dialog":                       {`<script>alert('hello')</script>`, "a dialog: hello"},
		"eval against the policy":        {policy + `<script>try { eval('1') } catch {}</script>`, "policy: script-src"},
		"a style against the policy":     {policy + `<p style="color: red">x</p>`, "policy: style-src"},
		"a handler, if it were refused":  {strings.Replace(policy, "'unsafe-inline'", "'none'", 1) + `<p onclick="x()">x</p>`, "policy: script-src-attr"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTab(t)
			p.show("bad", `<!doctype html><title>x</title>`+c.html)
			p.run(painted, nil)
			if found := strings.Join(p.faults(), "\n"); !strings.Contains(found, c.want) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
	t.Run("what axe-core complains of, and what does not fit", func(t *testing.T) {
		t.Parallel()
		p := newTab(t)
		p.resize(phone)
		p.show("bad", `<!doctype html><meta name="viewport" content="width=device-width"><title>x</title><p style="color: #ccc">pale<div style="width: 600px">wide</div>`)
		if found := strings.Join(p.violations(), "\n"); !strings.Contains(found, "color-contrast") || !strings.Contains(found, "html-has-lang") {
			t.Errorf("found %q", found)
		}
		if p.overflow() == "" {
			t.Error("600 px fit into 390")
		}
	})
}
