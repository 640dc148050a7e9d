package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/compare"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// compare compares two records, like tare compare.
func (s *site) compare(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	return s.over(w, r, func(ctx context.Context) ([]*page.Page, []string, error) {
		var sides []compare.Side
		for _, key := range []string{query.Get("a"), query.Get("b")} {
			if key == "" {
				return nil, nil, errors.New("choose an old record and a new one in the list")
			}
			side, err := s.side(ctx, key, len(sides))
			if err != nil {
				return nil, nil, err
			}
			if len(sides) > 0 && sides[0].Name == side.Name {
				side.Name = key
			}
			sides = append(sides, side)
		}
		compared, err := compare.New(sides, compare.Options{Unlike: query.Get("unlike") != ""})
		if err != nil {
			return nil, nil, err
		}
		return []*page.Page{compared.Page()}, nil, nil
	})
}

// back links a page to the list.
var back = page.Options{Beside: []page.Address{{Text: "all records", URL: "/"}}}

// history shows where figures of the latest filtered records changed, like tare history.
func (s *site) history(w http.ResponseWriter, r *http.Request) error {
	return s.over(w, r, func(ctx context.Context) ([]*page.Page, []string, error) {
		var runs []compare.Run
		head, err := s.newest(ctx, r, historyOf, func(_ string, j instrument.Judged) { runs = append(runs, compare.NewRun(j.Record, j)) })
		if err != nil {
			return nil, nil, err
		}
		h, err := compare.NewHistory(runs, compare.Headline, "")
		if err != nil {
			return nil, nil, err
		}
		return []*page.Page{h.Page()}, head, nil
	})
}

// nodes shows the distribution of figures over nodes in the latest filtered records, like
// tare report --over node.
func (s *site) nodes(w http.ResponseWriter, r *http.Request) error {
	return s.over(w, r, func(ctx context.Context) ([]*page.Page, []string, error) {
		nodes, err := compare.NewNodes("node", compare.Headline)
		if err != nil {
			return nil, nil, err
		}
		head, err := s.newest(ctx, r, nodesOf, func(file string, j instrument.Judged) {
			run := compare.NewRun(j.Record, j)
			failed, total, findings := j.Result()
			nodes.Unnamed = nodes.Unnamed || run.Labels.Get("node") == ""
			nodes.Add(cmp.Or(run.Labels.Get("node"), record.Stem(file)), &run, failed, total, findings)
		})
		return nodes.Pages(), head, err
	})
}

// over sends pages about several records, with notes on skipped ones.
func (s *site) over(w http.ResponseWriter, r *http.Request, of func(context.Context) ([]*page.Page, []string, error)) error {
	text, err := s.produce(r, s.long, func(ctx context.Context, text *bytes.Buffer) error {
		pages, head, err := of(ctx)
		if err != nil {
			return err
		}
		pages[0].Head = append(pages[0].Head, head...)
		return page.Write(text, "html", pages, back)
	})
	if err == nil {
		send(w, "html", text)
	}
	return err
}

// newest judges the latest filtered records, one after the other. head names skipped
// records.
func (s *site) newest(ctx context.Context, r *http.Request, most int, take func(file string, j instrument.Judged)) (head []string, err error) {
	all, _ := s.index.list(ctx)
	var left, again []string
	all = slices.DeleteFunc(all, func(f found) bool { return f.header == nil })
	rows := s.filtered(all, term.Clean(r.URL.Query().Get("q")))
	if len(rows) > most {
		rows = rows[:most]
		head = append(head, fmt.Sprintf("only the latest %d records are included; the command includes all", most))
	}
	taken, copies := 0, record.Copies{}
	for _, row := range rows {
		copies.Add(row.of.runs, func() []record.Extent { return s.extents(row.of.path) })
	}
	for file, row := range rows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, judged, err := s.found(ctx, row.Key)
		if err != nil {
			left = append(left, row.Name)
		}
		for nth, j := range judged {
			if _, counts := copies.Counts(file, nth, j.Record.Header.RunID); !counts {
				again = append(again, row.Name)
				continue
			}
			take(one.path, j)
			taken++
		}
	}
	if left != nil {
		head = append(head, "skipped, since they cannot be judged (see their reports): "+page.Listed(left))
	}
	if again != nil {
		head = append(head, "skipped, since they are copies: "+page.Listed(again))
	}
	if taken == 0 {
		return nil, errors.New(strings.Join(append([]string{"no record to show"}, head...), "\n"))
	}
	return head, nil
}

// extents returns the extents of a file's records. Errors are reported when the file is
// judged.
func (s *site) extents(name string) (all []record.Extent) {
	_ = s.reading(name, func(r *record.Reader) error {
		all = r.Extents()
		return nil
	})
	return all
}

// found returns a listed file with its judged records.
func (s *site) found(ctx context.Context, key string) (one found, all []instrument.Judged, err error) {
	if one, err = s.index.find(ctx, key); err == nil {
		all, err = s.judged(one.path)
	}
	return one, all, err
}

// side returns the records of a file as a side, with figures only.
func (s *site) side(ctx context.Context, key string, nth int) (compare.Side, error) {
	one, all, err := s.found(ctx, key)
	side := compare.Side{Name: compare.SideName(one.path, nth)}
	for _, j := range all {
		side.Runs = append(side.Runs, compare.NewRun(j.Record, j))
	}
	return side, err
}
