package browser

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/internal/testing/need"
)

// tab is a page in its own isolated window.
type tab struct {
	*testing.T
	b       *chromium
	storage string // browser context with its own cookies and storage
	session string
	target  string
	dir     string // its download folder
	url     string
	home    string // URL prefix that the page may request in addition to itself; "" for none
	loaded  chan bool
	saved   chan string // names of completed downloads

	mu    sync.Mutex
	wrong []string          // faults of the page
	names map[string]string // names of downloads
}

// wide and phone are the tested page widths.
const (
	wide  = 1280
	phone = 390
)

// newTab opens an empty tab. An error on the page fails the test.
func newTab(t *testing.T) *tab {
	t.Helper()
	need.Browser(t)
	b := must.Get(started())(t)
	p := &tab{T: t, b: b, dir: t.TempDir(), loaded: make(chan bool, 1), saved: make(chan string, 100), names: map[string]string{}}
	var is struct{ BrowserContextID, TargetID, SessionID string }
	p.onBrowser("Target.createBrowserContext", fields{"disposeOnDetach": true}, &is)
	p.storage = is.BrowserContextID
	p.onBrowser("Target.createTarget", fields{"url": "about:blank", "browserContextId": p.storage, "newWindow": true}, &is)
	p.target = is.TargetID
	p.onBrowser("Target.attachToTarget", fields{"targetId": p.target, "flatten": true}, &is)
	p.session = is.SessionID
	b.mu.Lock()
	b.tabs[p.session] = p
	b.mu.Unlock()
	t.Cleanup(p.close)
	p.onBrowser("Browser.setDownloadBehavior", fields{"behavior": "allowAndName", "browserContextId": p.storage, "downloadPath": p.dir, "eventsEnabled": true}, nil)
	for _, domain := range []string{"Page", "Network", "Runtime", "Log"} {
		p.do(domain+".enable", nil, nil)
	}
	// Background pages are neither drawn nor get input.
	p.do("Emulation.setFocusEmulationEnabled", fields{"enabled": true}, nil)
	p.do("Page.addScriptToEvaluateOnNewDocument", fields{"source": watch}, nil)
	p.resize(wide)
	return p
}

// watch reports violations of the page's own policy. The console reports them as well,
// but not those of a report-only policy.
const watch = `addEventListener('securitypolicyviolation', e => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI + ' ' + e.sample))`

type fields map[string]any

func (p *tab) onBrowser(method string, params fields, result any) {
	p.Helper()
	must.OK(p, p.b.call(p.Context(), "", method, params, result))
}

func (p *tab) do(method string, params fields, result any) {
	p.Helper()
	if params == nil {
		params = fields{}
	}
	must.OK(p, p.b.call(p.Context(), p.session, method, params, result))
}

func (p *tab) close() {
	p.b.mu.Lock()
	delete(p.b.tabs, p.session)
	p.b.mu.Unlock()
	// the test's own context is done
	_ = p.b.call(context.Background(), "", "Target.disposeBrowserContext", fields{"browserContextId": p.storage}, nil)
	for _, what := range p.faults() {
		p.Error(what)
	}
}

// faults returns the errors of the page since the last call.
func (p *tab) faults() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.wrong
	p.wrong = nil
	return slices.Compact(out)
}

func (p *tab) fault(format string, args ...any) {
	p.mu.Lock()
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
	p.mu.Unlock()
}

// event handles events in the order they occur.
func (p *tab) event(m message) {
	var is struct {
		Request          struct{ URL string }
		Entry            struct{ Source, Level, Text, URL string }
		Type             string
		Message          string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	_ = json.Unmarshal(m.Params, &is) // other forms are irrelevant here
	switch m.Method {
	case "Page.loadEventFired":
		select {
		case p.loaded <- true:
		default: // no one waits
		}
	case "Network.requestWillBeSent":
		if url := is.Request.URL; url != p.url && (p.home == "" || !strings.HasPrefix(url, p.home)) && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			p.fault("a request for %s", url)
		}
	case "Log.entryAdded":
		if is.Entry.Level == "error" || is.Entry.Source == "security" {
			p.fault("the browser complains: %s %s", is.Entry.Text, is.Entry.URL)
		}
	case "Runtime.consoleAPICalled":
		if is.Type == "error" || is.Type == "warning" || is.Type == "assert" {
			p.fault("the console: %v", is.Args)
		}
	case "Runtime.exceptionThrown":
		p.fault("an exception: %s %s", is.ExceptionDetails.Text, is.ExceptionDetails.Exception.Description)
	case "Page.javascriptDialogOpening":
		p.fault("a dialog: %s", is.Message)
		go func() {
			_ = p.b.call(context.Background(), p.session, "Page.handleJavaScriptDialog", fields{"accept": true}, nil)
		}()
	case "Inspector.targetCrashed":
		p.fault("the page crashed")
	}
}

// download handles the download events of all tabs.
func (p *tab) download(m message) {
	var is struct{ FrameID, GUID, SuggestedFilename, State string }
	if json.Unmarshal(m.Params, &is) != nil {
		return
	}
	p.mu.Lock()
	if is.FrameID == p.target {
		p.names[is.GUID] = is.SuggestedFilename
	}
	name, ours := p.names[is.GUID]
	p.mu.Unlock()
	if ours && is.State == "completed" {
		_ = os.Rename(filepath.Join(p.dir, is.GUID), filepath.Join(p.dir, filepath.Base(name)))
		p.saved <- filepath.Base(name)
	}
}

// open loads a page and waits until it and its charts are ready.
func (p *tab) open(url string) {
	p.Helper()
	p.url = url
	var is struct{ ErrorText string }
	p.do("Page.navigate", fields{"url": url}, &is)
	if is.ErrorText != "" {
		p.Fatalf("%s: %s", url, is.ErrorText)
	}
	wait(p, p.loaded, "the page")
}

// wait waits for an event.
func wait[T any](p *tab, of <-chan T, what string) (got T) {
	p.Helper()
	select {
	case got = <-of:
	case <-p.b.ended:
		p.Fatalf("%s did not come: the browser ended", what)
	case <-time.After(patience):
		p.Fatalf("%s did not come in %v", what, patience)
	}
	return got
}

// show opens a page from its text.
func (p *tab) show(name, html string) {
	p.Helper()
	path := filepath.Join(p.TempDir(), name+".html")
	must.Write(p, path, html)
	p.open("file://" + path)
}

// resize sets the width of the window. At phone width it emulates a phone.
func (p *tab) resize(width int) {
	p.Helper()
	p.do("Emulation.setDeviceMetricsOverride", fields{"width": width, "height": 844, "screenWidth": width, "screenHeight": 844, "deviceScaleFactor": 1, "mobile": width == phone}, nil)
}

// medium emulates the reader's preference: "light", "dark", or "print" for paper.
func (p *tab) medium(name string) {
	p.Helper()
	params := fields{"media": "", "features": []fields{{"name": "prefers-color-scheme", "value": name}}}
	if name == "print" {
		params = fields{"media": "print"}
	}
	p.do("Emulation.setEmulatedMedia", params, nil)
}

// eval calls a function in the page with arguments and awaits its promise.
func eval[T any](p *tab, function string, args ...any) (value T) {
	p.Helper()
	given := make([]string, len(args))
	for i, a := range args {
		text := must.JSON(p, a)
		given[i] = string(text)
	}
	p.run("("+function+")("+strings.Join(given, ", ")+")", &value)
	return value
}

func (p *tab) run(expression string, value any) {
	p.Helper()
	var is struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.do("Runtime.evaluate", fields{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
		"allowUnsafeEvalBlockedByCSP": false, // otherwise code of the page would be permitted during the evaluation as well
	}, &is)
	if e := is.ExceptionDetails; e != nil {
		p.Fatalf("%.300s: %s %s", expression, e.Text, e.Exception.Description)
	}
	if value != nil && is.Result.Value != nil {
		if err := json.Unmarshal(is.Result.Value, value); err != nil {
			p.Fatalf("%.300s: %v", expression, err)
		}
	}
}

// await waits until a function of the page returns a true value. It calls the function
// again after every change of the document.
func (p *tab) await(function string) {
	p.Helper()
	eval[bool](p, `() => new Promise(done => {
		const is = `+function+`;
		const look = () => { if (is()) { changes.disconnect(); done(true) } };
		const changes = new MutationObserver(look);
		changes.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
		look();
	})`)
}

// keys maps key names to their codes.
var keys = map[string]struct {
	code int
	text string
}{"Tab": {9, ""}, "Enter": {13, "\r"}, "Escape": {27, ""}}

func (p *tab) press(name string) {
	p.Helper()
	k := keys[name]
	p.do("Input.dispatchKeyEvent", fields{"type": "keyDown", "key": name, "code": name, "windowsVirtualKeyCode": k.code, "text": k.text}, nil)
	p.do("Input.dispatchKeyEvent", fields{"type": "keyUp", "key": name, "code": name, "windowsVirtualKeyCode": k.code}, nil)
}

func (p *tab) write(text string) {
	p.Helper()
	p.do("Input.insertText", fields{"text": text}, nil)
}

// picture takes a screenshot from the top of the page, up to a maximum height.
func (p *tab) picture(width, height int) []byte {
	p.Helper()
	height = min(height, eval[int](p, `() => document.documentElement.scrollHeight`))
	var is struct{ Data string }
	p.do("Page.captureScreenshot", fields{
		"format": "png", "captureBeyondViewport": true,
		"clip": fields{"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
	}, &is)
	return must.Get(base64.StdEncoding.DecodeString(is.Data))(p)
}

// fetched waits for a download and reads it.
func (p *tab) fetched(what string) (name string, content []byte) {
	p.Helper()
	name = wait(p, p.saved, what)
	content = must.Get(os.ReadFile(filepath.Join(p.dir, name)))(p)
	return name, content
}
