// Package page renders reports for people: sections of tables, charts, lists and notes. An
// instrument defines the content of its page. Each renderer (text, Markdown, HTML) draws the
// pages of all instruments.
//
// Any text on a page may be untrusted. Every renderer cleans what it writes, so callers do
// not have to.
package page

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page is a report that is not yet rendered.
type Page struct {
	Title    string // title of the plan; "" if it has none
	Cover    bool   // first page of a combined document, which uses the title of this page
	Command  string // command that made the record; the title in Markdown if Title is empty
	Head     []string
	Answer   []string // sentences with the results of the run; text repeats the first one at the end
	Sections []Section
}

// heading returns the title. A page without a title returns its command.
func (p *Page) heading() string { return cmp.Or(p.Title, p.Command, "tare") }

// Part groups sections in a document of several pages. The document shows each part once
// instead of once per page.
type Part string

// The parts other than results.
const (
	Method   Part = "method"
	Mistrust Part = "mistrust"
)

// Section is a title with charts, a table or lists, all optional, and notes below.
type Section struct {
	Title   string
	Picture *Waterfall
	Charts  []*Chart
	Table   *Table
	Lists   []List
	Block   *Block
	Files   []File
	Notes   []string
	Style   term.Style // of the title
	Part    Part       // "": results
	Detail  bool       // text omits the section without --details; HTML folds it
}

// File is JSON to download, such as a trace. HTML shows a button for it.
type File struct {
	Name, Title string
	JSON        func() any // its content
}

// Block is a text to copy verbatim.
type Block struct {
	Language string
	Lines    []string
}

// List is rows of a key and a text under an optional heading.
type List struct {
	Heading string
	Items   []Item
}

// Item is one row of a list. Without a key it continues the row above.
type Item struct {
	Key, Text string
	Code      bool // a command
	Style     term.Style
}

// Add appends the sections that are not nil.
func (p *Page) Add(s ...*Section) {
	for _, one := range s {
		if one != nil {
			p.Sections = append(p.Sections, *one)
		}
	}
}

// Failed adds a text about n failed attempts. It is a red section if n is above 0. Otherwise it
// is a note below the last table, if there is one.
func (p *Page) Failed(n int, text string) {
	if last := len(p.Sections) - 1; n == 0 && last >= 0 && p.Sections[last].Table != nil && !p.Sections[last].Detail {
		p.Sections[last].Notes = append(p.Sections[last].Notes, text)
		return
	}
	s := &Section{Title: text}
	if n > 0 {
		s.Style = term.Red
	}
	p.Add(s)
}

// AddDetails appends the sections that are not nil and marks them as details.
func (p *Page) AddDetails(s ...*Section) {
	for _, one := range s {
		if one != nil {
			one.Detail = true
		}
	}
	p.Add(s...)
}

// Empty reports whether a section has only a title.
func (s *Section) Empty() bool {
	return s.Picture == nil && s.Charts == nil && s.Table == nil && s.Lists == nil && s.Block == nil && s.Notes == nil
}

// Options control how a page is rendered and which details it includes.
type Options struct {
	Width   int  // columns of the terminal; 0: no limit. Text only
	Colour  bool // text only
	Verbose bool // the machine, every stamp, resources and the reason of every verdict

	// Figure stores a chart of a Markdown page as the file NAME.svg and returns a relative
	// link to it. Names are unique. If Figure is nil, Markdown has no charts.
	Figure func(name string, svg []byte) (link string, err error)
	// Beside lists the links of a served HTML page.
	Beside []Address
}

// Formats are the supported output formats.
var Formats = []string{"text", "md", "html"}

// Write renders pages one below the other in one of the formats.
func Write(w io.Writer, format string, pages []*Page, o Options) error {
	if format == "html" {
		return writeHTML(w, pages, o.Beside)
	}
	f := figures{keep: o.Figure, taken: map[string]bool{}, colours: map[string]string{}}
	for i, p := range pages {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		var err error
		switch format {
		case "text":
			err = writeText(w, p, o)
		case "md":
			err = writeMarkdown(w, p, &f)
		default:
			err = fmt.Errorf("unknown page format %q", format)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// LongestTitle is the maximum length of a title, so that it stays on about one line.
const LongestTitle = 200

// New returns an instrument's page with the plan's title.
func New(title, instrument string) *Page {
	return &Page{Title: Short(term.Clean(title), LongestTitle), Command: "tare " + instrument}
}

// Merge appends an item. If an item has the same text already, Merge adds only the key.
func Merge(items []Item, more Item) []Item {
	for i := range items {
		if items[i].Text == more.Text {
			items[i].Key += ", " + more.Key
			return items
		}
	}
	return append(items, more)
}

// TargetNotes lists the notes of the targets.
func TargetNotes(targets []record.Target) []Item {
	var items []Item
	for _, t := range targets {
		if len(t.Notes) > 0 {
			items = Merge(items, Item{Key: Heading(t.Name), Text: strings.Join(t.Notes, "; ")})
		}
	}
	return items
}
