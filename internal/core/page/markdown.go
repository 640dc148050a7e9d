package page

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// writeMarkdown renders a page as GitHub Flavored Markdown. Every line begins with tare's own
// text or markup, so that no foreign text can start a heading or a list.
func writeMarkdown(w io.Writer, p *Page, f *figures) error {
	out := bufio.NewWriter(w)
	level := "##"
	if p.Cover {
		level = "#"
	}
	fmt.Fprintf(out, "%s %s\n", level, escaped(p.heading()))
	for _, line := range p.Head {
		fmt.Fprintf(out, "\n%s\n", escaped(line))
	}
	for _, sentence := range p.Answer {
		fmt.Fprintf(out, "\n%s\n", escaped(sentence))
	}
	for i := range p.Sections {
		s := &p.Sections[i]
		if s.Empty() {
			fmt.Fprintf(out, "\n**%s**\n", escaped(s.Title))
			continue
		}
		fmt.Fprintf(out, "\n### %s\n", escaped(s.Title))
		if s.Picture != nil {
			markdownBlock(out, &Block{Language: "mermaid", Lines: s.Picture.gantt()})
		}
		if err := f.markdown(out, s.Charts); err != nil {
			return err
		}
		if s.Table != nil {
			out.WriteByte('\n')
			markdownTable(out, s.Table.drawn(0))
		}
		if len(s.Lists) > 0 {
			out.WriteByte('\n')
		}
		for _, l := range s.Lists {
			markdownList(out, l)
		}
		if s.Block != nil {
			markdownBlock(out, s.Block)
		}
		for _, note := range s.Notes {
			fmt.Fprintf(out, "\n<sub>%s</sub>\n", escaped(note))
		}
	}
	return out.Flush()
}

func markdownTable(out *bufio.Writer, g *Table) {
	row := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	titles, rules := make([]string, len(g.Columns)), make([]string, len(g.Columns))
	for i, c := range g.Columns {
		titles[i], rules[i] = escaped(c.Title), "---"
		if c.Right {
			rules[i] = "---:"
		}
	}
	row(titles)
	row(rules)
	for _, r := range g.Rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = escaped(c.joined(0))
			if c.Label != "" {
				cells[i] = escaped(c.Label)
			}
		}
		row(cells)
	}
}

func markdownList(out *bufio.Writer, l List) {
	bullet := "- "
	if l.Heading != "" {
		fmt.Fprintf(out, "- **%s**\n", escaped(l.Heading))
		bullet = "  - "
	}
	for _, i := range l.Items {
		text := escaped(i.Text)
		if i.Code {
			text = code(i.Text)
		}
		if i.Key == "" {
			// Continue the previous item: a line of the same bullet.
			fmt.Fprintf(out, "%s<br>%s\n", strings.Repeat(" ", len(bullet)), text)
			continue
		}
		fmt.Fprintf(out, "%s**%s** %s\n", bullet, escaped(i.Key), text)
	}
}

// markdownBlock writes a fenced block. Its fence is longer than any in its text.
func markdownBlock(out *bufio.Writer, b *Block) {
	fence := "```"
	for _, line := range b.Lines {
		for strings.Contains(line, fence) {
			fence += "`"
		}
	}
	fmt.Fprintf(out, "\n%s%s\n", fence, b.Language)
	for _, line := range b.Lines {
		fmt.Fprintf(out, "%s\n", term.Clean(line))
	}
	fmt.Fprintf(out, "%s\n", fence)
}

// code formats a command as a code span. A command with characters that could end the span
// or open other markup becomes escaped text.
func code(command string) string {
	command = term.Clean(command)
	if strings.TrimSpace(command) == "" || strings.ContainsAny(command, "`|<>") {
		return escaped(command)
	}
	return "`" + command + "`"
}

var markup = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "|", `\|`, "<", "&lt;", ">", "&gt;", "&", "&amp;",
	"[", `\[`, "]", `\]`, "$", `\$`, "#", `\#`,
)

// escaped escapes Markdown syntax. An asterisk between spaces, as in "100 * create", does not
// start emphasis and needs no escape.
func escaped(s string) string {
	s = markup.Replace(term.Clean(s))
	if !strings.ContainsAny(s, "*_~") {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		if strings.IndexByte("*_~", s[i]) >= 0 && !spaced(s, i) {
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// spaced reports whether the character at i has only spaces next to it.
func spaced(s string, i int) bool {
	return (i == 0 || s[i-1] == ' ') && (i == len(s)-1 || s[i+1] == ' ')
}
