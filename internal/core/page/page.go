// Package page is what a person reads of a run: sections of tables whose cells are
// figures, pictures, lists and remarks. An instrument says what stands on its page;
// each renderer (text, Markdown, HTML) draws a page once, for all instruments.
//
// Everything that stands on a page may have come from others. Every renderer
// cleans what it writes; nobody before it has to.
package page

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// Page is a report before it is drawn.
type Page struct {
	Title    string // the plan's; "" where it has none
	Cover    bool   // it opens a document of all pages, whose title it has
	Command  string // that made the record, which stands for a title in Markdown
	Head     []string
	Answer   []string // sentences: what the run found. The last line of text repeats the first
	Sections []Section
}

// heading is the title, or the command of a page that has none.
func (p *Page) heading() string { return cmp.Or(p.Title, p.Command, "tare") }

// Part is where a section stands in a document of several pages, which tells once what
// each page has to say by itself.
type Part string

// The parts that are not results.
const (
	Method   Part = "method"
	Mistrust Part = "mistrust"
)

// Section is a title with pictures, a table, or lists, or neither, and remarks
// below.
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
	Detail  bool       // of a page with an answer: text leaves it out unless it is asked for, HTML folds it
}

// File is JSON to take along, such as a trace: in HTML it is behind a button.
type File struct {
	Name, Title string
	JSON        func() any // its content
}

// Block is a text to be copied as it stands.
type Block struct {
	Language string
	Lines    []string
}

// List is rows of a key and a text, under a heading where there is one.
type List struct {
	Heading string
	Items   []Item
}

// Item is one text of a list. Without a key it goes on with the one above.
type Item struct {
	Key, Text string
	Code      bool // a command
	Style     term.Style
}

// Add appends a section, unless there is none.
func (p *Page) Add(s ...*Section) {
	for _, one := range s {
		if one != nil {
			p.Sections = append(p.Sections, *one)
		}
	}
}

// Failed says how many attempts failed: in red below all, or in a note if none did.
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

// AddDetails appends sections as details.
func (p *Page) AddDetails(s ...*Section) {
	for _, one := range s {
		if one != nil {
			one.Detail = true
		}
	}
	p.Add(s...)
}

// Empty tells whether a section is nothing but its title.
func (s *Section) Empty() bool {
	return s.Picture == nil && s.Charts == nil && s.Table == nil && s.Lists == nil && s.Block == nil && s.Notes == nil
}

// Options say how a page is drawn, and how much of it is asked for.
type Options struct {
	Width   int  // columns of the terminal; 0: no limit. Text only
	Colour  bool // text only
	Verbose bool // the machine, every stamp, resources and the reason of every verdict

	// Figure keeps a chart of a page in Markdown as a file, NAME.svg, and returns the
	// relative link to it; no name comes twice. nil: there is no place for files, and
	// charts are left out.
	Figure func(name string, svg []byte) (link string, err error)
	// Beside is what HTML leads to, where it is served.
	Beside []Address
}

// Formats are the words for how pages can be drawn.
var Formats = []string{"text", "md", "html"}

// Write draws pages one below the other, in one of the formats.
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
			err = fmt.Errorf("a page cannot be drawn as %q", format)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// LongestTitle is where a title is cut: it is to be one line.
const LongestTitle = 200

// New begins the page of an instrument's run under the plan's title.
func New(title, instrument string) *Page {
	return &Page{Title: Short(term.Clean(title), LongestTitle), Command: "tare " + instrument}
}

// Merge adds an item, or only its key if there is one with the same text.
func Merge(items []Item, more Item) []Item {
	for i := range items {
		if items[i].Text == more.Text {
			items[i].Key += ", " + more.Key
			return items
		}
	}
	return append(items, more)
}

// TargetNotes are what targets say of themselves.
func TargetNotes(targets []record.Target) []Item {
	var items []Item
	for _, t := range targets {
		if len(t.Notes) > 0 {
			items = Merge(items, Item{Key: Heading(t.Name), Text: strings.Join(t.Notes, "; ")})
		}
	}
	return items
}
