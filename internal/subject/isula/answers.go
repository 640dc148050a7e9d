package isula

import (
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine"
)

// versions parses the output of `isula version`: sections with a line "  Version:\t2.1.5" each.
func versions(text string) (client, server string) {
	first, second, _ := strings.Cut(text, "\nServer:")
	second, _, _ = strings.Cut(second, "\n\n") // the next section
	return facts(first)["Version"], facts(second)["Version"]
}

// facts parses the output of `isula info`: "Storage Driver: overlay".
func facts(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(line, ":")
		if ok {
			out[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return out
}

// ownImages returns a run's images from the output of `isula images`: a table with columns padded by
// spaces, repository and tag first.
func ownImages(table []byte, runID string) ([]string, error) {
	var names []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) >= 3 {
			names = append(names, fields[0]+":"+fields[1])
		}
	}
	return engine.OwnImages(names, runID), nil
}
