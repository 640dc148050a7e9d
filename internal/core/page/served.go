package page

import (
	"html"
	"strings"
)

// Address is where something beside a page is, where pages are served.
type Address struct{ Text, URL string }

// Style is the style sheet of pages of HTML, for what is shown beside them.
func Style() string { return asset("page.css") }

// Theme is the script that makes such a page light or dark, as was chosen on another.
func Theme() string { return asset("theme.js") }

// PolicyOf is the Content Security Policy in the head of a page of HTML, for whoever
// serves it to say it, too.
func PolicyOf(file string) string {
	_, rest, _ := strings.Cut(file, `<meta http-equiv="Content-Security-Policy" content="`)
	policy, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(policy)
}
