package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

// writeMarkdown draws a page as GitHub Flavored Markdown. Every line begins
// with a word of ours or with markup, so that no text of others can begin a
// heading or a list.
func writeMarkdown(w io.Writer, p *page) error {
	out := bufio.NewWriter(w)
	title := "tare lifecycle"
	if p.command != "" {
		title = p.command
	}
	if p.title != "" {
		title = p.title
	}
	fmt.Fprintf(out, "## %s\n", escaped(title))
	for _, line := range p.head {
		fmt.Fprintf(out, "\n%s\n", escaped(line))
	}
	for i := range p.sections {
		s := &p.sections[i]
		if s.table == nil && s.lists == nil && s.block == nil && s.notes == nil {
			fmt.Fprintf(out, "\n**%s**\n", escaped(s.title))
			continue
		}
		fmt.Fprintf(out, "\n### %s\n", escaped(s.title))
		if s.table != nil {
			out.WriteByte('\n')
			markdownGrid(out, s.table.whole())
		}
		if len(s.lists) > 0 {
			out.WriteByte('\n')
		}
		for _, l := range s.lists {
			markdownList(out, l)
		}
		if s.block != nil {
			markdownBlock(out, s.block)
		}
		for _, note := range s.notes {
			fmt.Fprintf(out, "\n<sub>%s</sub>\n", escaped(note))
		}
	}
	return out.Flush()
}

func markdownGrid(out *bufio.Writer, g *grid) {
	row := func(cells []string) { fmt.Fprintf(out, "| %s |\n", strings.Join(cells, " | ")) }
	titles, rules := make([]string, len(g.columns)), make([]string, len(g.columns))
	for i, c := range g.columns {
		titles[i], rules[i] = escaped(c.Title), "---"
		if c.Right {
			rules[i] = "---:"
		}
	}
	row(titles)
	row(rules)
	for _, r := range g.rows {
		cells := make([]string, len(r))
		for i, c := range r {
			cells[i] = escaped(c.joined(0))
			if c.label != "" {
				cells[i] = escaped(c.label)
			}
		}
		row(cells)
	}
}

func markdownList(out *bufio.Writer, l list) {
	bullet := "- "
	if l.heading != "" {
		fmt.Fprintf(out, "- **%s**\n", escaped(l.heading))
		bullet = "  - "
	}
	for _, i := range l.items {
		text := escaped(i.text)
		if i.code {
			text = code(i.text)
		}
		if i.key == "" {
			// Below the item it goes on with: a line of the same bullet.
			fmt.Fprintf(out, "%s<br>%s\n", strings.Repeat(" ", len(bullet)), text)
			continue
		}
		fmt.Fprintf(out, "%s**%s** %s\n", bullet, escaped(i.key), text)
	}
}

// markdownBlock is a fenced block whose fence is longer than any in its text.
func markdownBlock(out *bufio.Writer, b *block) {
	fence := "```"
	for _, line := range b.lines {
		for strings.Contains(line, fence) {
			fence += "`"
		}
	}
	fmt.Fprintf(out, "\n%s%s\n", fence, b.language)
	for _, line := range b.lines {
		fmt.Fprintf(out, "%s\n", term.Clean(line))
	}
	fmt.Fprintf(out, "%s\n", fence)
}

// code shows a command as it can be copied. One with characters that could end
// a code span or open something else is text.
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

// escaped is a text that Markdown shows and does not obey. Emphasis needs no
// escape where there are spaces on both sides, as in "100 * create".
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

// spaced tells whether the character has nothing but spaces beside it.
func spaced(s string, i int) bool {
	return (i == 0 || s[i-1] == ' ') && (i == len(s)-1 || s[i+1] == ' ')
}
