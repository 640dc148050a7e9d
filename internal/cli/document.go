package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/export"
	"github.com/tare-bench/tare/internal/core/finding"
	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/instrument"
	"github.com/tare-bench/tare/internal/instrument/beside"
	"github.com/tare-bench/tare/internal/instrument/document"
	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/perform"
	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

// isFolder reports whether path names a document's folder rather than a record: it ends in
// /, is a folder, or has no extension.
func isFolder(path string) bool {
	if info, err := os.Stat(path); err == nil {
		return info.IsDir()
	}
	return path != "" && (strings.HasSuffix(path, "/") || filepath.Ext(path) == "")
}

// planFile is the plan that reproduces a document's measurements.
const planFile = "plan.yaml"

// newFolder creates the folder of a document. It never overwrites existing documents or
// records.
func newFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("create the document's folder: %w; name another with -o DIR", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the document's folder: %w; name another with -o DIR", err)
	}
	for _, e := range entries {
		if name := e.Name(); record.IsName(name) || name == planFile || strings.HasPrefix(name, "report.") || strings.HasPrefix(name, "figures") {
			return fmt.Errorf("%s already contains a document or records, such as %s: name another folder with -o DIR", dir, term.Clean(name))
		}
	}
	return nil
}

// document writes the document of records and its figures to a folder. Both tare run and
// tare report end with it.
func (s *app) document(dir string, all []instrument.Judged, out outputFlags) (err error) {
	var made []string
	defer func() {
		if err != nil { // do not leave a partial document behind
			for _, path := range slices.Backward(made) {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}()
	all = document.Ordered(all)
	section, again := s.again(all)
	o := s.pageOptions(out)
	o.Width, o.Colour = 0, false
	pages, err := document.Of(all, s.instruments, section, o)
	if err != nil {
		return fmt.Errorf("make the document: %w", err)
	}
	if out.theirs != nil {
		if p := beside.InDocument(all, out.theirs, o); p != nil {
			pages = slices.Insert(pages, len(pages)-1, p)
		}
	}
	write := func(name string, to func(io.Writer) error) error {
		var text bytes.Buffer
		if err := to(&text); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		path := filepath.Join(dir, name)
		err := writeNew(path, text.Bytes())
		if err == nil {
			made = append(made, path)
		}
		return err
	}
	o.Figure = func(name string, svg []byte) (string, error) {
		link := "figures/" + name + ".svg"
		folder := filepath.Join(dir, "figures")
		switch err := os.Mkdir(folder, 0o755); {
		case err == nil:
			made = append(made, folder)
		case !errors.Is(err, os.ErrExist):
			return "", fmt.Errorf("make a folder for figures: %w", err)
		}
		return link, write(link, func(w io.Writer) error { _, err := w.Write(svg); return err })
	}
	for _, format := range []string{"md", "html"} {
		if err := write("report."+format, func(w io.Writer) error { return page.Write(w, format, pages, o) }); err != nil {
			return err
		}
	}
	for _, name := range []string{"csv", "json"} {
		format, _ := export.FormatOf(name)
		if err := write("figures."+name, func(w io.Writer) error { return format.Write(w, instrument.Documents(all)) }); err != nil {
			return err
		}
	}
	if again != nil {
		if err := writePlan(dir, again); err != nil {
			return err
		}
	}
	fmt.Fprintf(s.Err, "document: %s\n", filepath.Join(dir, "report.html"))
	return nil
}

// writePlan writes the plan of a document. It replaces the plan from the start of the run,
// which has no seeds yet.
func writePlan(dir string, text []byte) error {
	if err := writeWhole(filepath.Join(dir, planFile), text, 0o600, os.Rename); err != nil {
		return fmt.Errorf("write the plan of the document: %w", err)
	}
	return nil
}

// keepPlan writes the plan to the document's folder before the run, so that it survives a
// killed run.
func (s *app) keepPlan(p *plan.Plan, flags []string, out outputFlags) error {
	headers := make([]*record.Header, len(p.Measure))
	for i := range p.Measure {
		each := out.measure(p, i, flags)
		header, err := plannedHeader(&p.Measure[i], &each)
		if err != nil {
			return err
		}
		headers[i] = &header
	}
	text, err := plan.Again("the plan", headers, s.instruments)
	if err != nil {
		return err
	}
	return writePlan(out.dir, text)
}

// plannedHeader returns the header of a measure that was not started.
func plannedHeader(m *plan.Measure, out *outputFlags) (record.Header, error) {
	header, err := keptHeader(m.Name, m.Options)
	header.Of, header.Environment = out.of, environment(workspace.DefaultRoots().Data)
	return header, err
}

// tellUnbegun prints, for each folder of records, the measures of its plan that have no
// record.
func (s *app) tellUnbegun(of map[string][]*record.Part) {
	for _, dir := range slices.Sorted(maps.Keys(of)) {
		if line := s.unbegun(dir, of[dir]); line != "" {
			fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(line))
		}
	}
}

// unbegun names the measures of a folder's plan that have no record. A killed run could not
// report them itself. It returns "" without a plan or if all have a record.
func (s *app) unbegun(dir string, there []*record.Part) string {
	path := filepath.Join(dir, planFile)
	text, err := option.ReadFile(path)
	if err != nil {
		return ""
	}
	p, err := plan.Parse(path, text, s.instruments)
	if err != nil || slices.ContainsFunc(there, func(of *record.Part) bool { return of.Measures != len(p.Measure) }) {
		return "" // the folder belongs to another plan
	}
	var names []string
	for i, m := range p.Measure {
		if !slices.ContainsFunc(there, func(of *record.Part) bool { return of.Measure == i+1 }) {
			names = append(names, fmt.Sprintf("%d %s", i+1, m.Name))
		}
	}
	if names == nil {
		return ""
	}
	return fmt.Sprintf("%s: not started, since there is no record: %s, of %s; tare run %[1]s -o ANOTHER/ repeats the plan", path, strings.Join(names, ", "), page.Amount(len(p.Measure), "measure"))
}

// writeNew writes a file atomically and never replaces one.
func writeNew(path string, text []byte) error {
	err := writeWhole(path, text, 0o600, renameNew)
	if errors.Is(err, os.ErrExist) { // created since newFolder checked
		return fmt.Errorf("%s was created by another process that writes a document there; wait for it, or name another folder with -o DIR", path)
	}
	if err != nil {
		return fmt.Errorf("write the document: %w; the records are kept: create it with tare report RECORD… -o DIR", err)
	}
	return nil
}

// again returns the section on reproducing records and the plan for it. The plan is nil if
// one cannot be made.
func (s *app) again(all []instrument.Judged) (*page.Section, []byte) {
	var headers []*record.Header
	var commands, versions, seeds []string
	for _, one := range all {
		h := &one.Record.Header
		headers = append(headers, h)
		commands = append(commands, lane.Quote(h.Command))
		versions = append(versions, "tare "+page.Known(h.Version))
		if seed := h.Planned().Seed; seed != 0 {
			seeds = append(seeds, fmt.Sprint(seed))
		}
	}
	items := []page.Item{}
	for i, command := range slices.Compact(commands) {
		key := ""
		if i == 0 {
			key = "made by"
		}
		items = append(items, page.Item{Key: key, Text: command, Code: true})
	}
	items = append(items, page.Item{Key: "version", Text: page.Listed(versions)})
	if seeds != nil {
		items = append(items, page.Item{Key: "seeds", Text: strings.Join(seeds, ", ") + ", in the order of the measures"})
	}
	items = append(items, flagsOf(all)...)
	section := &page.Section{Title: "how to run it again", Style: term.Bold, Lists: []page.List{{Items: items}}}
	text, err := plan.Again("this", headers, s.instruments)
	if err != nil {
		section.Notes = []string{err.Error()}
		return section, nil
	}
	section.Lists[0].Items = append(items, page.Item{Key: "again", Text: "tare run " + planFile + " -o again/", Code: true})
	section.Block = &page.Block{Language: "yaml", Lines: strings.Split(strings.TrimSpace(string(text)), "\n")}
	section.Notes = []string{planFile + " is this plan: the same targets, settings and seeds"}
	return section, text
}

// flagsOf lists the command-line flags that changed each measure of the plan.
func flagsOf(all []instrument.Judged) (items []page.Item) {
	for i, one := range all {
		if of := one.Record.Header.Of; of != nil && len(of.Flags) > 0 {
			items = append(items, page.Item{Key: fmt.Sprintf("%d %s took", i+1, page.Heading(one.Record.Header.Experiment)), Text: "--" + strings.Join(of.Flags, ", --")})
		}
	}
	return items
}

// leave writes a record for a measure that was not run, because a document needs a record of
// every measure. The record has the reason instead of measurements.
func (s *app) leave(m *plan.Measure, out *outputFlags, interrupted bool, why error) error {
	if _, err := os.Stat(out.record); err == nil {
		return nil // the record has measurements, perhaps those of another run
	}
	header, err := plannedHeader(m, out)
	if err != nil {
		return err
	}
	end := record.End{Status: "failed", Why: strings.ReplaceAll(why.Error(), "\n", "; ")}
	level, found := finding.Error, []record.Finding(nil)
	if _, missing := errors.AsType[*perform.Absent](why); missing && skips(m) {
		end.Status, level = "skipped", finding.Note
	}
	if interrupted {
		end.Status, end.Why = "interrupted", ""
	} else {
		found = []record.Finding{{Code: finding.NotWeighed, Level: level, Message: "nothing was measured: " + end.Why, Advice: "tare doctor says what can be weighed here"}}
	}
	w, err := s.create(out.record)
	if err != nil {
		return err
	}
	return writeRecord(w, slices.Concat([]any{header}, linesOf(found), []any{end})...)
}

// skips reports whether a measure may be skipped if none of its targets is available.
func skips(m *plan.Measure) bool {
	w, _ := whom(m.Options)
	return w.Skips()
}
