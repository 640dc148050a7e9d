package page

import (
	"html"
	"strings"
)

// Address is a link from a served page.
type Address struct{ Text, URL string }

// Style returns the style sheet of HTML pages, for other pages that the server shows.
func Style() string { return asset("page.css") }

// Theme returns the script that applies the light or dark theme chosen on another page.
func Theme() string { return asset("theme.js") }

// PolicyOf returns the Content Security Policy in the head of an HTML page. The server also
// sends it as a header.
func PolicyOf(file string) string {
	_, rest, _ := strings.Cut(file, `<meta http-equiv="Content-Security-Policy" content="`)
	policy, _, _ := strings.Cut(rest, `"`)
	return html.UnescapeString(policy)
}
