package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/all"
	"github.com/tare-bench/tare/internal/instrument/lifecycle"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

const secret = "a token for tests"

// visitor is an HTTP client with a cookie jar for a test server.
type visitor struct {
	*testing.T
	site   *site
	server *httptest.Server
	client *http.Client
}

// options returns server options for a folder. The runs in alive count as running.
func options(t testing.TB, dir string, alive ...string) Options {
	t.Helper()
	lines := must.Get(all.Instruments.Lines())(t)
	return Options{Dir: dir, Token: secret, Instruments: all.Instruments, Lines: lines, Log: log.New(t.Output(), "", 0),
		Alive: func(id string) bool { return slices.Contains(alive, id) }}
}

// visit serves a folder and returns an authenticated client.
func visit(t *testing.T, dir string, alive ...string) *visitor {
	t.Helper()
	root := must.Get(os.OpenRoot(dir))(t)
	t.Cleanup(func() { root.Close() })
	s := newSite(options(t, dir, alive...), root)
	s.patience = time.Hour // a busy machine may be slow
	v := &visitor{T: t, site: s, server: httptest.NewServer(s.guarded("node7", 1))}
	t.Cleanup(v.server.Close)
	jar, _ := cookiejar.New(nil) // never fails
	v.client = &http.Client{Jar: jar}
	status, _, _ := v.get("/?token=" + url.QueryEscape(secret))
	must.That(t, status == http.StatusOK, "the login failed: %d", status)
	return v
}

func (v *visitor) get(at string) (status int, body string, header http.Header) {
	v.Helper()
	return v.ask(http.MethodGet, at)
}

func (v *visitor) ask(method, at string) (status int, body string, header http.Header) {
	v.Helper()
	r := must.Get(http.NewRequestWithContext(v.Context(), method, v.server.URL+at, nil))(v)
	answer := must.Get(v.client.Do(r))(v)
	defer answer.Body.Close()
	text := must.Get(io.ReadAll(answer.Body))(v)
	return answer.StatusCode, string(text), answer.Header
}

// says gets a page, checks its status and expected texts, and returns it.
func (v *visitor) says(at string, status int, parts ...string) string {
	v.Helper()
	got, body, _ := v.get(at)
	lacks := func(part string) bool { return !strings.Contains(body, part) }
	if got != status || slices.ContainsFunc(parts, lacks) {
		v.Errorf("%s: got %d; want %d and %q\n%.3000s", at, got, status, parts, body)
	}
	return body
}

// asked changes an unauthenticated request for the list and returns the response.
func (v *visitor) asked(change func(r *http.Request)) *httptest.ResponseRecorder {
	v.Helper()
	r := httptest.NewRequestWithContext(v.Context(), http.MethodGet, "/", nil)
	r.Host = "127.0.0.1"
	change(r)
	w := httptest.NewRecorder()
	v.site.guarded("node7", 1).ServeHTTP(w, r)
	return w
}

// again makes the next page read the folder, although that happens at most once per
// second.
func (v *visitor) again() { v.site.index.walked = time.Time{} }

// written is a record that a test writes.
type written struct {
	*testing.T
	*record.Writer
	path string
}

// begin writes the first lines of a record.
func begin(t *testing.T, dir, name, id string, change func(*record.Header)) *written {
	t.Helper()
	plan := lifecycle.Defaults()
	plan.Ops, plan.Lanes, plan.Rounds = append(plan.Ops[:0], "create"), append(plan.Lanes[:0], 2), 3
	path := filepath.Join(dir, name)
	must.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
	w := must.Get(record.Create(path))(t)
	r := &written{t, w, path}
	h := record.Header{RunID: id, Experiment: lifecycle.Name, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Plan: must.JSON(t, plan),
		Environment: record.Environment{Kernel: "6.18.0", CPUModel: "AMD EPYC", CPUs: 2}}
	if change != nil {
		change(&h)
	}
	r.lines(h, record.Target{Name: "docker/runc", Kind: "docker", Clock: "host",
		Operations: map[string]record.Operation{"create": {Command: "create ID", Done: record.StampReturned, Means: "it was answered"}}})
	return r
}

func (w *written) lines(all ...any) {
	w.Helper()
	for _, line := range all {
		must.OK(w, w.Write(line))
	}
}

// round writes a round with two lanes.
func (w *written) round(n int, failure *record.Failure) {
	w.Helper()
	w.lines(record.Batch{Phase: record.PhaseMeasure, Round: n, Target: "docker/runc", Op: "create", Lanes: 2, Released: 1000,
		Samples: []record.Sample{{Start: 1000, Returned: 42_000_000}, {Lane: 1, Start: 1000, Returned: 43_000_000 + int64(n), Failure: failure}}})
}

func (w *written) end() {
	w.Helper()
	w.lines(record.End{Status: "done", Batches: 3})
	must.OK(w, w.Close())
}

// whole writes a record with three rounds.
func whole(t *testing.T, dir, name, id string, change func(*record.Header)) string {
	t.Helper()
	w := begin(t, dir, name, id, change)
	for n := range 3 {
		w.round(n, nil)
	}
	w.end()
	return w.path
}

// Each line of the golden file has an address and a cookie, a Host header, or the
// Authorization header of a scraper. SECRET is the token, and TOKEN is the URL-encoded
// token.
func TestAccessNeedsTheTokenAndTheHostName(t *testing.T) {
	t.Parallel()
	v := visit(t, t.TempDir())
	golden.Lines(t, "testdata/asked.txt", func(t *testing.T, line string) (any, error) {
		what, text, _ := strings.Cut(strings.NewReplacer("SECRET", secret, "TOKEN", url.QueryEscape(secret)).Replace(line), ": ")
		w := v.asked(func(r *http.Request) {
			switch what {
			case "address":
				at, cookie, _ := strings.Cut(text, " ")
				r.URL, _ = url.ParseRequestURI(at)
				r.Header.Set("Cookie", cookie)
			case "name":
				r.Host = text
				r.AddCookie(&http.Cookie{Name: "tare-1", Value: secret, Quoted: true})
			case "scraper":
				r.URL.Path, r.Host = "/metrics", "10.0.0.7:8080"
				r.Header.Set("Authorization", text)
			}
		})
		says := fmt.Sprint(w.Code, " ", http.StatusText(w.Code))
		if w.Code == http.StatusSeeOther {
			says += " " + w.Header().Get("Location") + " " + w.Header().Get("Set-Cookie")
		}
		return says, nil
	})
}

// The golden file has the status and the security headers of each response.
func TestPagesAreReadOnlyWithSecurityHeaders(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "a.jsonl", "a", nil)
	v := visit(t, dir)
	golden.Lines(t, "testdata/guarded.txt", func(t *testing.T, line string) (any, error) {
		method, at, _ := strings.Cut(line, " ")
		status, body, header := v.ask(method, at)
		says := fmt.Sprint(status)
		if body == "" {
			says += ", no body"
		}
		hash := regexp.MustCompile(`sha256-[^']*`)
		for _, key := range []string{"Allow", "X-Content-Type-Options", "Referrer-Policy", "Cache-Control", "X-Frame-Options", "Access-Control-Allow-Origin", "Content-Security-Policy"} {
			if value := header.Get(key); value != "" {
				says += ", " + key + ": " + hash.ReplaceAllString(value, "sha256-…")
			}
		}
		return says, nil
	})
}

func TestFilesOutsideTheFolderAreNotServed(t *testing.T) {
	t.Parallel()
	outside, dir := t.TempDir(), t.TempDir()
	elsewhere := whole(t, outside, "secret.jsonl", "s", nil)
	whole(t, dir, "in/a.jsonl", "a", nil)
	for name, to := range map[string]string{"link.jsonl": elsewhere, "folder": outside, "within.jsonl": filepath.Join(dir, "in/a.jsonl")} {
		must.OK(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	must.OK(t, unix.Mkfifo(filepath.Join(dir, "pipe.jsonl"), 0o600))
	must.Write(t, filepath.Join(dir, "notes.txt"), "secret")
	v := visit(t, dir)
	if _, body, _ := v.get("/"); !strings.Contains(body, "in/a.jsonl") || strings.Contains(body, "link.jsonl") || strings.Contains(body, "secret") || strings.Contains(body, "pipe") {
		t.Errorf("the list contains more than the files of the folder:\n%s", body)
	}
	for _, name := range []string{"../" + filepath.Base(outside) + "/secret.jsonl", elsewhere, "link.jsonl", "folder/secret.jsonl", "within.jsonl", "pipe.jsonl", "notes.txt",
		"in/../in/a.jsonl", "./in/a.jsonl", "in", ".", "", "..", "/etc/passwd", "in/a.jsonl\x00"} {
		for _, at := range []string{"/report", "/record", "/live", "/live.json"} {
			status, body, _ := v.get(at + "?r=" + url.QueryEscape(name))
			check.That(t, status == http.StatusNotFound && !strings.Contains(body, "run s"), "%s of %q: %d", at, name, status)
		}
	}
	// A link or a pipe replaces the file after it was listed.
	for name, swap := range map[string]func(string) error{
		"a link": func(path string) error { return os.Symlink(elsewhere, path) },
		"a pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
	} {
		path := filepath.Join(dir, "in/a.jsonl")
		must.OK(t, os.Remove(path))
		must.OK(t, swap(path))
		status, body, _ := v.get("/record?r=in/a.jsonl")
		check.That(t, status != http.StatusOK && !strings.Contains(body, `"run_id"`), "%s: %d", name, status)
	}
}

func TestListIsSortedByDateAndReportsInvalidFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, day := range map[string]int{"old.jsonl": 1, "sub/new.jsonl.zst": 20, "middle.jsonl": 10} {
		whole(t, dir, name, name[:1], func(h *record.Header) { h.Started = h.Started.AddDate(0, 0, day) })
	}
	for name, text := range map[string]string{"garbled.jsonl": "not json\n", "empty.jsonl": "", "later.jsonl": `{"type":"header","schema":99,"tare_version":"v9"}` + "\n",
		"packed.jsonl.zst": "\x28\xb5\x2f\xfdbroken", "endless.jsonl": strings.Repeat("x", 2*headWithin)} {
		must.Write(t, filepath.Join(dir, name), text)
	}
	v := visit(t, dir)
	body := v.says("/", http.StatusOK, "docker/runc", "AMD EPYC × 2", "6.18.0", "lifecycle", "not a tare record", "newer schema", "8 files", "2026-03-21 12:00", "<td class=\"n\">3</td>")
	places := []int{strings.Index(body, "sub/new.jsonl.zst"), strings.Index(body, "middle.jsonl"), strings.Index(body, "old.jsonl")}
	check.That(t, slices.IsSorted(places) && places[0] >= 0, "positions %v, want ascending", places)
	check.Equal(t, "unreadable files", strings.Count(body, "<td>cannot be read<br>"), 5)
	long := regexp.MustCompile(`<span class="bad" title="[^"]{60,}">[^<]{59}…</span>`)
	check.That(t, long.MatchString(body), "no long reason is truncated with the full text as its title")
	body = v.says("/?q=EPYC+2026-03-11", http.StatusOK, "middle.jsonl")
	check.That(t, !strings.Contains(body, "old.jsonl") && !strings.Contains(body, "garbled"), "filtered:\n%s", body)
	// The list follows the files.
	must.OK(t, os.Remove(filepath.Join(dir, "middle.jsonl")))
	whole(t, dir, "more.jsonl", "m", nil)
	v.again()
	check.Lacks(t, "list after a removal", v.says("/", http.StatusOK, "more.jsonl"), "middle.jsonl")
}

func TestUntrustedNamesAreEscaped(t *testing.T) {
	t.Parallel()
	const hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{.}}&\u202e\x1b[2J"
	dir := t.TempDir()
	name := strings.ReplaceAll(hostile, "/", "") + ".jsonl"
	w := begin(t, dir, name, hostile, func(h *record.Header) {
		h.Plan = json.RawMessage(`{"title":` + string(must.JSON(t, hostile)) + `,"rounds":3,` + string(h.Plan[1:]))
		h.Environment.Kernel, h.Environment.CPUModel, h.Version = hostile, hostile, hostile
	})
	w.lines(record.Target{Name: hostile, Kind: hostile})
	w.round(0, &record.Failure{Kind: record.FailError, Detail: hostile})
	must.Write(t, filepath.Join(dir, "garbled"+name), hostile)
	v := visit(t, dir, hostile)
	at := url.QueryEscape(keyOf(name))
	for _, page := range []string{"/", "/?q=" + url.QueryEscape(hostile), "/live?r=" + at, "/compare?a=" + at + "&b=" + at, "/report?r=" + url.QueryEscape(keyOf("garbled"+name)), "/report?r=" + url.QueryEscape(hostile), "/report?format=" + url.QueryEscape(hostile) + "&r=" + at} {
		_, body, header := v.get(page)
		check.Equal(t, page, header.Get("Content-Type"), "text/html; charset=utf-8")
		check.Lacks(t, page, body, "<script>a", "<img", "\u202e\x1b", "\x1b", "onerror=alert(2)>{{")
	}
	if status, _, header := v.get("/report?format=csv&r=" + at); status != http.StatusOK || strings.ContainsAny(header.Get("Content-Disposition"), "\x1b\u202e\n") {
		t.Errorf("%d, %q", status, header.Get("Content-Disposition"))
	}
}

func TestReportMatchesTheRecordInEveryFormat(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must.OK(t, os.CopyFS(dir, os.DirFS("../../record/testdata/v1")))
	v := visit(t, dir)
	names, err := fs.Glob(os.DirFS(dir), "*.jsonl")
	must.That(t, err == nil && len(names) >= 5, "%v, %v", names, err)
	for _, name := range names {
		records := must.Get(v.site.Lines.LoadAll(filepath.Join(dir, name)))(t)
		j := must.Get(all.Instruments.Judge(records[0]))(t)
		formats := v.site.Instruments.FormatNames(records[0].Header.Experiment)
		if name != "lifecycle.jsonl" { // one record is enough for the common formats
			formats = slices.DeleteFunc(formats, func(format string) bool { _, of := export.FormatOf(format); return of || format == "html" })
		}
		for _, format := range formats {
			var want bytes.Buffer
			refused := all.Instruments.Report(&want, format, []instrument.Judged{{Record: records[0], Judgement: j}}, page.Options{Width: columns})
			status, body, header := v.get("/report?r=" + name + "&format=" + format)
			if refused != nil {
				check.That(t, status == http.StatusUnprocessableEntity && strings.Contains(html.UnescapeString(body), refused.Error()),
					"%s as %s: want a refusal, got %d\n%s", name, format, status, body)
				continue
			}
			if format == "html" { // except for the navigation
				before, after, _ := strings.Cut(body, `<nav class="beside"`)
				_, after, _ = strings.Cut(after, "</nav>\n")
				body = before + after
				if policy := header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; script-src 'sha256-") || !strings.HasSuffix(policy, "; frame-ancestors 'none'") ||
					!strings.Contains(html.UnescapeString(before), strings.TrimSuffix(policy, "; frame-ancestors 'none'")) {
					t.Errorf("%s: wrong policy %q", name, policy)
				}
			}
			check.That(t, status == http.StatusOK && (format == "parquet" || body == want.String()),
				"%s as %s: %d, %d bytes", name, format, status, len(body))
			check.That(t, slices.Contains(page.Formats, format) != strings.HasPrefix(header.Get("Content-Disposition"), "attachment"),
				"%s as %s: %v", name, format, header)
		}
		text := must.Read(t, filepath.Join(dir, name))
		status, body, _ := v.get("/record?r=" + name)
		check.That(t, status == http.StatusOK && body == text, "%s, the record: %d, %d bytes", name, status, len(body))
	}
}

// TestSlowPageDoesNotBlockOthers blocks the generation of a slow page.
func TestSlowPageDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "a.jsonl", "aaaaaaaa", nil)
	whole(t, dir, "b.jsonl", "bbbbbbbb", nil)
	must.OK(t, os.Truncate(filepath.Join(dir, "b.jsonl"), shortRecord+1)) // zeros, which are skipped
	v := visit(t, dir)
	v.site.long <- struct{}{}
	v.site.patience = 0
	for _, page := range []string{"/report?r=b.jsonl", "/compare?a=a.jsonl&b=b.jsonl", "/history", "/nodes", "/metrics"} {
		status, body, header := v.get(page)
		if status != http.StatusAccepted || header.Get("Refresh") != "2" || header.Get("Retry-After") != "2" || !strings.Contains(body, "the page is being generated") {
			t.Errorf("%s: %d %v\n%s", page, status, header, body)
		}
	}
	v.says("/", http.StatusOK, "a.jsonl")
	v.site.patience = time.Hour
	v.says("/report?r=a.jsonl", http.StatusOK, "<h1")
	<-v.site.long
	for _, page := range []string{"/report?r=b.jsonl", "/compare?a=a.jsonl&b=b.jsonl", "/nodes", "/metrics"} {
		if status, body, _ := v.get(page); status == http.StatusAccepted {
			t.Errorf("%s: %d\n%s", page, status, body)
		}
	}
	check.Equal(t, "pages still kept", len(v.site.makings), 1) // the page of /history, which was not requested again
}

func TestConcurrentlyGeneratedPagesAreLimited(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "a.jsonl", "aaaaaaaa", nil)
	v := visit(t, dir)
	v.site.long <- struct{}{}
	v.site.patience = 0
	for i := range mostMade {
		v.says(fmt.Sprintf("/history?q=%d", i), http.StatusAccepted, "the page is being generated")
	}
	v.says("/history", http.StatusServiceUnavailable, "too many pages are being generated")
	<-v.site.long
}

func TestPanicInAPageIsAnError(t *testing.T) {
	t.Parallel()
	v := visit(t, t.TempDir())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil)
	_, err := v.site.produce(r, v.site.long, func(context.Context, *bytes.Buffer) error { panic("no") })
	check.Error(t, err, "internal error: no")
	check.Equal(t, "slots in use", len(v.site.long), 0)
}

func TestNumbersInAddressesAreBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "a.jsonl", "aaaaaaaa", nil)
	v := visit(t, dir)
	for from, rows := range map[string]int{"9223372036854775807": 0, "9223372036854775307": 0, "99999999999999999999": 0, "-1": 1, "-9223372036854775808": 1, "x": 1} {
		if body := v.says("/?from="+from, http.StatusOK); strings.Count(body, "/report?r=a.jsonl") != rows {
			t.Errorf("from %s:\n%s", from, body)
		}
	}
}

func TestCompareMatchesTheCompareCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "a.jsonl", "a", nil)
	whole(t, dir, "sub/a.jsonl", "b", nil)
	whole(t, dir, "c.jsonl", "c", func(h *record.Header) { h.Environment.Kernel = "5.10" })
	v := visit(t, dir)
	for name, test := range map[string]struct {
		query  string
		status int
		says   []string
	}{
		"comparable records":         {"a=a.jsonl&b=sub/a.jsonl", http.StatusOK, []string{"lifecycle", "latency"}},
		"unlike records are refused": {"a=a.jsonl&b=c.jsonl", http.StatusUnprocessableEntity, []string{"unlike", "5.10", "/compare?a=a.jsonl&amp;b=c.jsonl&amp;unlike=1"}},
		"unlike records on request":  {"a=a.jsonl&b=c.jsonl&unlike=1", http.StatusOK, []string{"5.10", "latency"}},
		"same record twice":          {"a=a.jsonl&b=a.jsonl", http.StatusUnprocessableEntity, []string{"same run"}},
		"missing record":             {"a=a.jsonl&b=d.jsonl", http.StatusNotFound, []string{"no such record"}},
		"only one record":            {"a=a.jsonl", http.StatusUnprocessableEntity, []string{"choose an old record and a new one"}},
		"folder instead of a record": {"a=a.jsonl&b=..", http.StatusNotFound, nil},
	} {
		t.Run(name, func(t *testing.T) { v.says("/compare?"+test.query, test.status, test.says...) })
	}
}

func TestHistoryCoversTheFilteredRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, month := range map[string]int{"a": 1, "b": 2, "other": 3} {
		whole(t, dir, name+".jsonl", name, func(h *record.Header) { h.Started = h.Started.AddDate(0, month, 0) })
	}
	must.Write(t, filepath.Join(dir, "garbled.jsonl"), "x")
	v := visit(t, dir)
	for query, want := range map[string]struct {
		status int
		says   string
	}{"": {http.StatusOK, "3 runs"}, "?q=2026-04": {http.StatusOK, "1 run"}, "?q=nothing": {http.StatusUnprocessableEntity, "no record"}} {
		v.says("/history"+query, want.status, want.says)
	}
}

func TestNodesCoverTheFilteredRecordsWithoutCopies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "other"} {
		whole(t, dir, name+".jsonl", name, nil)
		whole(t, dir, "again/"+name+".jsonl", name, nil)
	}
	text := must.Get(os.ReadFile(filepath.Join(dir, "again/b.jsonl")))(t)
	must.OK(t, os.WriteFile(filepath.Join(dir, "0b.jsonl"), append(text, "{}\n"...), 0o600)) // a damaged copy that sorts first
	v := visit(t, dir)
	for at, says := range map[string]string{"/nodes": "lifecycle over 3 records", "/history": "3 runs", "/nodes?q=b.jsonl": "lifecycle over 1 record"} {
		v.says(at, http.StatusOK, says, "since they are copies: ")
	}
	v.says("/history?q=b.jsonl", http.StatusOK, "since they are copies: 0b.jsonl, b.jsonl") // the damaged copy does not count
	v.says("/nodes?q=nothing", http.StatusUnprocessableEntity, "no record to show")
	v.says("/", http.StatusOK, `<a href="/nodes?q=">`)
}

func TestHistoryListsOmittedRecords(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole(t, dir, "good.jsonl", "good", nil)
	whole(t, dir, "later.jsonl", "later", func(h *record.Header) { h.Experiment = "of-later" })
	v := visit(t, dir)
	for query, want := range map[string]struct {
		status int
		says   string
	}{"": {http.StatusOK, "1 run"}, "?q=of-later": {http.StatusUnprocessableEntity, "no record to show"}} {
		v.says("/history"+query, want.status, want.says, "(see their reports): later.jsonl")
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	check.Is(t, v.site.history(httptest.NewRecorder(), httptest.NewRequestWithContext(gone, http.MethodGet, "/history", nil)), context.Canceled)
}

func TestProgressWorksForAnyFileName(t *testing.T) {
	t.Parallel()
	from := regexp.MustCompile(`data-from="([^"]*)"`)
	for _, name := range []string{"docker+cli.jsonl", "a&b.jsonl", "50% #1?.jsonl"} {
		dir := t.TempDir()
		begin(t, dir, name, "alive", nil)
		v := visit(t, dir, "alive")
		_, body, _ := v.get("/live?r=" + url.QueryEscape(keyOf(name)))
		at := from.FindStringSubmatch(body)
		must.That(t, at != nil, "%s:\n%s", name, body)
		if status, _, _ := v.get(html.UnescapeString(at[1])); status != http.StatusOK {
			t.Errorf("%s, as %s: %d", name, at[1], status)
		}
	}
}

func TestCanceledListKeepsTheKnownState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, "run.jsonl", "alive", nil)
	w.round(0, nil)
	v := visit(t, dir, "alive")
	w.round(1, nil)
	begin(t, dir, "new.jsonl", "new", nil)
	v.again()
	none, cancel := context.WithCancel(t.Context())
	cancel()
	known := map[string]Row{}
	for _, r := range v.site.filtered(first(v.site.index.list(none)), "") {
		known[r.Name] = r
	}
	got := known["run.jsonl"]
	check.That(t, got.Samples == "2" && got.Wrong == "", "known record: %+v", got)
	got = known["new.jsonl"]
	check.That(t, got.Wrong == "not read yet", "new record: %+v", got)
	got = v.progress("run.jsonl")
	check.That(t, got.Samples == "4", "after reading the new lines: %+v", got)
}

// progress returns the progress of a run.
func (v *visitor) progress(name string) (r Row) {
	v.Helper()
	_, body, _ := v.get("/live.json?r=" + name)
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		v.Fatalf("%v: %s", err, body)
	}
	return r
}

func TestProgressIsShownUntilTheRunEnds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"run.jsonl", "run.jsonl.zst"} {
		dir := t.TempDir()
		w := begin(t, dir, name, "alive", nil)
		v := visit(t, dir, "alive")
		v.says("/", http.StatusOK, "under way")
		got := v.progress(name)
		check.That(t, got.State == "under way" && got.Live && got.Samples == "0" && got.Rounds == "", "%s before the first round: %+v", name, got)
		w.round(0, nil)
		w.round(1, &record.Failure{Kind: record.FailError, Detail: "no space left"})
		if got := v.progress(name); got.Rounds != "2 of 3" || got.Samples != "4" || got.Failures != "1" || got.Last != "round 2, docker/runc, create, 2 lanes" || !got.Live {
			t.Errorf("%s after two rounds: %+v", name, got)
		}
		v.says("/live?r="+name, http.StatusOK, "The report so far", `src="/live.js"`)
		w.lines(record.Finding{Code: "steal", Level: "warning", Message: "m", Advice: "a"})
		w.round(2, nil)
		w.lines(record.End{Status: "done", Failures: 1})
		if got := v.progress(name); got.Rounds != "3" || got.Samples != "6" || got.Failures != "1" || got.Findings != "1 warning" || got.State != "done" || got.Live {
			t.Errorf("%s after its end: %+v", name, got)
		}
		_, body, _ := v.get("/live?r=" + name)
		check.That(t, !strings.Contains(body, "live.js"), "%s is still polled:\n%s", name, body)
		w.end()
	}
}

func TestConcurrentReadersOfAGrowingRunAgree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, "run.jsonl", "alive", nil)
	v := visit(t, dir, "alive")
	var looking sync.WaitGroup
	for range 4 {
		looking.Go(func() {
			for range 10 {
				v.site.index.list(t.Context())
				v.site.liveJSON(httptest.NewRecorder(), nil, first(v.site.index.find(t.Context(), "run.jsonl")))
			}
		})
	}
	for n := range 40 {
		w.lines(record.Finding{Code: "steal", Level: "note", Message: "m", Advice: "a"})
		w.round(n, nil)
	}
	looking.Wait()
	got := v.progress("run.jsonl")
	check.That(t, got.Samples == "80" && got.Findings == "40 notes", "%+v", got)
}

func TestOnlyNewLinesAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, "run.jsonl", "alive", nil)
	w.round(0, nil)
	v := visit(t, dir, "alive")
	got := v.progress("run.jsonl")
	must.That(t, got.Samples == "2", "%+v", got)
	f := must.Get(os.OpenFile(w.path, os.O_RDWR, 0))(t)
	defer f.Close()
	// The head identifies a file. This damage is after the head, so only a second read
	// would report it.
	must.Get(f.WriteAt([]byte("}}}"), 300))(t)
	w.round(1, nil)
	must.Get(f.Seek(0, io.SeekEnd))(t)
	must.Get(f.WriteString(`{"type":"batch","phase":"measure","round":2,`))(t) // an incomplete line
	got = v.progress("run.jsonl")
	check.That(t, got.Samples == "4" && got.State == "under way" && got.Rounds == "2 of 3", "%+v", got)
	// A different file with the same name is a new record.
	whole(t, dir, "other.jsonl", "other", nil)
	must.OK(t, os.Rename(filepath.Join(dir, "other.jsonl"), w.path))
	got = v.progress("run.jsonl")
	check.That(t, got.Samples == "6" && got.State == "done", "replaced file: %+v", got)
}

func TestOldRecordWithoutEndIsCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, "run.jsonl", "dead", nil)
	w.round(0, nil)
	v := visit(t, dir)
	got := v.progress("run.jsonl")
	check.That(t, got.State == "no end yet" && got.Live, "%+v", got)
	long := time.Now().Add(-time.Hour)
	must.OK(t, os.Chtimes(w.path, long, long))
	got = v.progress("run.jsonl")
	check.That(t, got.State == cutOff && !got.Live, "%+v", got)
}

func TestBothEndsOfALongRecordAreRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := begin(t, dir, "long.jsonl", "long", nil)
	w.round(0, nil)
	f := must.Get(os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0))(t)
	defer f.Close()
	filler := []byte(`{"type":"later","text":"` + strings.Repeat("x", 1<<20) + "\"}\n")
	for range wholeUpTo >> 20 {
		must.Get(f.Write(filler))(t)
	}
	w.round(1, nil)
	w.end()
	v := visit(t, dir)
	got := v.progress("long.jsonl")
	check.That(t, got.State == "done" && got.Samples == "≥ 4" && got.Rounds == "2 of 3", "%+v", got)
}

func TestServerStopsWithItsContext(t *testing.T) {
	t.Parallel()
	o := options(t, t.TempDir())
	o.Address = "127.0.0.1:0"
	ctx, cancel := context.WithCancel(t.Context())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- Serve(ctx, o, func(address string) { at <- address }) }()
	var address string
	select {
	case address = <-at:
	case err := <-ended:
		t.Fatalf("the server did not start: %v", err)
	}
	answer, err := http.Get(address) // its connection stays open
	must.That(t, err == nil && answer.StatusCode == http.StatusForbidden, "%v, %v", answer, err)
	defer answer.Body.Close()
	cancel()
	must.OK(t, <-ended)
	o.Dir = filepath.Join(o.Dir, "nothing")
	check.Error(t, Serve(t.Context(), o, nil), "name another")
}

func FuzzEveryFileIsListed(f *testing.F) {
	text := must.Get(os.ReadFile("../../record/testdata/v1/startup-logs.jsonl"))(f)
	f.Add(text)
	f.Add(text[:len(text)/2])
	f.Add([]byte("\x28\xb5\x2f\xfd"))
	dir := f.TempDir()
	root := must.Get(os.OpenRoot(dir))(f)
	defer root.Close()
	s := newSite(options(f, dir), root)
	f.Fuzz(func(t *testing.T, text []byte) {
		must.OK(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), text, 0o600))
		s.index.walked = time.Time{}
		rows := s.filtered(first(s.index.list(t.Context())), "")
		check.That(t, len(rows) == 1 && rows[0].State != "" && (rows[0].Instrument != "" || rows[0].Wrong != ""), "%+v", rows)
		s.draw(httptest.NewRecorder(), http.StatusOK, "list.html", listing{Rows: rows})
	})
}

func first[T, U any](one T, _ U) T { return one }
