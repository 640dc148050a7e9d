package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

//go:embed assets
var assets embed.FS

// longest limits the text of a record that is judged for a page. A hundred thousand samples
// take a fifth of it. tare report accepts longer records.
const longest = 128 << 20

// shortRecord is the largest record whose report does not wait for reports of longer
// records.
const shortRecord = 8 << 20

const (
	perPage   = 500 // listed records per page
	historyOf = 200 // records in a history
	nodesOf   = 2000
	columns   = 120 // width of text output
)

// site serves the pages.
type site struct {
	Options
	index *index
	views *template.Template
	// Semaphores for judging records, to limit memory: one for any records, one for a
	// single short record.
	long, short chan struct{}
	metered     map[string]metered // of the last metrics, by path; owned by the holder of long

	patience time.Duration
	mu       sync.Mutex
	makings  map[string]*making // by address
}

func newSite(o Options, root *os.Root) *site {
	views := template.Must(template.New("").ParseFS(assets, "assets/*.html"))
	return &site{Options: o, views: views, long: make(chan struct{}, 1), short: make(chan struct{}, 1), patience: patience, makings: map[string]*making{},
		index: &index{root: root, lines: o.Lines, entries: map[string]*entry{}}}
}

// guarded returns all pages behind the guard, for a server that listens on host.
func (s *site) guarded(host string, port int) http.Handler {
	return &guard{next: s.routes(), host: host, token: sha256.Sum256([]byte(s.Token)), cookie: fmt.Sprintf("tare-%d", port)}
}

func (s *site) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", s.list)
	for at, show := range map[string]func(http.ResponseWriter, *http.Request, found) error{
		"/report": s.report, "/record": s.record, "/live": s.live, "/live.json": s.liveJSON,
	} {
		mux.HandleFunc(at, s.or(func(w http.ResponseWriter, r *http.Request) error {
			one, err := s.index.find(r.Context(), r.URL.Query().Get("r"))
			if err != nil {
				return err
			}
			return show(w, r, one)
		}))
	}
	mux.HandleFunc("/compare", s.or(s.compare))
	mux.HandleFunc("/history", s.or(s.history))
	mux.HandleFunc("/metrics", s.or(s.metrics))
	mux.HandleFunc("/nodes", s.or(s.nodes))
	for _, name := range []string{"live.js", "serve.css"} {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, assets, "assets/"+name) })
	}
	for name, text := range map[string]string{"page.css": page.Style(), "theme.js": page.Theme()} { // the same as in reports
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, name, time.Time{}, strings.NewReader(text))
		})
	}
	return mux
}

// listing is the data of the page with all records.
type listing struct {
	Dir, Filter, Bounded string
	Rows                 []Row
	Matching, All        int
	Next, Previous       int // first row of that page; -1: none
}

// list lists records, the newest first.
func (s *site) list(w http.ResponseWriter, r *http.Request) {
	all, bounded := s.index.list(r.Context())
	v := listing{Dir: s.Dir, Filter: term.Clean(r.URL.Query().Get("q")), Bounded: bounded, All: len(all), Next: -1, Previous: -1}
	rows := s.filtered(all, v.Filter)
	v.Matching = len(rows)
	from, _ := strconv.Atoi(r.URL.Query().Get("from")) // default 0
	from = max(0, min(from, len(rows)))
	v.Rows = rows[from:min(from+perPage, len(rows))]
	if from+perPage < v.Matching {
		v.Next = from + perPage
	}
	if from > 0 {
		v.Previous = max(0, from-perPage)
	}
	s.draw(w, http.StatusOK, "list.html", v)
}

// filtered returns the rows that contain all words of the filter.
func (s *site) filtered(all []found, filter string) (rows []Row) {
	words := strings.Fields(strings.ToLower(filter))
	for i := range all {
		if row := s.row(&all[i]); row.has(words) {
			rows = append(rows, row)
		}
	}
	return rows
}

// or returns a handler that shows a page, or its error.
func (s *site) or(show func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := show(w, r); err != nil {
			s.fail(w, r, err)
		}
	}
}

// wrong is the data of an error page.
type wrong struct {
	Title string
	Lines []string
	Again string // URL that shows the page anyway
}

func (s *site) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, title := http.StatusUnprocessableEntity, "Cannot show this page"
	switch {
	case errors.Is(err, errNoRecord):
		status, title = http.StatusNotFound, "Not found"
	case errors.Is(err, errMaking):
		status, title = http.StatusAccepted, "Please wait"
		w.Header().Set("Refresh", strconv.Itoa(reload))
		w.Header().Set("Retry-After", strconv.Itoa(reload))
	case errors.Is(err, errBusy):
		status, title = http.StatusServiceUnavailable, "Please wait"
	}
	v := wrong{Title: title}
	for line := range strings.Lines(err.Error()) {
		v.Lines = append(v.Lines, term.Clean(strings.TrimSuffix(line, "\n")))
	}
	if errors.Is(err, compare.ErrUnlike) {
		query := r.URL.Query()
		query.Set("unlike", "1")
		v.Again = "/compare?" + query.Encode()
	}
	s.draw(w, status, "wrong.html", v)
}

func (s *site) draw(w http.ResponseWriter, status int, view string, data any) {
	var text bytes.Buffer
	if err := s.views.ExecuteTemplate(&text, view, data); err != nil {
		http.Error(w, "Cannot render the page.", http.StatusInternalServerError)
		s.Log.Printf("draw %s: %v", view, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = text.WriteTo(w) // ignore write errors: the client disconnected
}

// reading reads at most longest bytes of a file.
func (s *site) reading(name string, do func(*record.Reader) error) error {
	f, _, err := s.index.open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	r := s.Lines.NewReader(f)
	defer func() { _ = r.Close() }() // nothing was written
	r.AtMost(longest)
	return do(r)
}

// judged judges the records of a file.
func (s *site) judged(name string) (all []instrument.Judged, err error) {
	var records []*record.Record
	err = s.reading(name, func(r *record.Reader) (err error) {
		records, err = r.All()
		return err
	})
	if errors.Is(err, record.ErrTooLong) {
		err = fmt.Errorf("%w; tare report %s may", err, name)
	}
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		j, err := s.Instruments.Judge(rec)
		if err != nil {
			return nil, err
		}
		all = append(all, instrument.Judged{Record: rec, Judgement: j})
	}
	return all, nil
}

// report shows the report of a record, or sends it as a file in a format for programs.
func (s *site) report(w http.ResponseWriter, r *http.Request, one found) error {
	query := r.URL.Query()
	format := cmp.Or(query.Get("format"), "html")
	o := page.Options{Width: columns, Beside: []page.Address{{Text: "all records", URL: "/"}, {Text: "other formats", URL: "/live?r=" + url.QueryEscape(keyOf(one.path))}}}
	if query.Get("verbose") != "" {
		o.Verbose = true
	} else {
		query.Set("verbose", "1")
		o.Beside = append(o.Beside, page.Address{Text: "everything", URL: "/report?" + query.Encode()})
	}
	if err := s.Instruments.CheckFormat(format, one.header.Experiment); err != nil {
		return err
	}
	lane := s.long
	if one.info.Size() <= shortRecord && !strings.HasSuffix(one.path, ".zst") {
		lane = s.short
	}
	text, err := s.produce(r, lane, func(_ context.Context, text *bytes.Buffer) error {
		all, err := s.judged(one.path)
		if err != nil {
			return err
		}
		return s.Instruments.Report(text, format, all, o)
	})
	if err != nil {
		return err
	}
	if !slices.Contains(page.Formats, format) {
		save(w, base(one.path)+"."+format)
	}
	send(w, format, text)
	return nil
}

// send sends a page. For HTML it also sends the page's own security policy, with the hashes
// of its scripts, as a header.
func send(w http.ResponseWriter, format string, text *bytes.Buffer) {
	switch {
	case format == "html":
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", page.PolicyOf(string(text.Bytes()[:min(text.Len(), headerBytes)]))+"; frame-ancestors 'none'")
	case slices.Contains(page.Formats, format):
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_, _ = text.WriteTo(w) // ignore write errors: the client disconnected
}

// record sends the record itself.
func (s *site) record(w http.ResponseWriter, r *http.Request, one found) error {
	f, info, err := s.index.open(one.path)
	if err != nil {
		return err
	}
	defer f.Close()
	save(w, path.Base(one.path))
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

func save(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
}

// base returns the file name of a record without its extension.
func base(name string) string {
	return record.Stem(path.Base(name))
}

// live shows the progress of a run and updates it while the run is active.
func (s *site) live(w http.ResponseWriter, _ *http.Request, one found) error {
	s.draw(w, http.StatusOK, "live.html", s.row(&one))
	return nil
}

// liveJSON returns the changing data of that page.
func (s *site) liveJSON(w http.ResponseWriter, _ *http.Request, one found) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(s.row(&one))
}
