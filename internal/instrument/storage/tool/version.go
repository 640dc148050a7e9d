package tool

import (
	"regexp"
	"strings"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/term"
)

// busybox is in the first line of the usage that it prints instead of a version.
var busybox = regexp.MustCompile(`BusyBox v[0-9][0-9A-Za-z.+-]{0,40}`)

// Version is what a tool says that was called with --version, in one line; ""
// where it says nothing that is one.
func Version(e subject.Executed) string {
	if name := busybox.FindString(e.Output + "\n" + e.Stderr); name != "" {
		return name
	}
	line, _, _ := strings.Cut(strings.TrimSpace(e.Output), "\n")
	if line = term.Clean(strings.TrimSpace(line)); e.Exit != 0 || len(line) > 100 || !strings.ContainsAny(line, "0123456789") {
		return ""
	}
	return line
}
