package live

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

var columnName = strings.NewReplacer("%", "", "/s", "", " ", "-")

// Title is the title of a column, such as "IO/s".
type Title string

// Name returns the name of the column for flags, such as "io".
func (t Title) Name() string { return columnName.Replace(strings.ToLower(string(t))) }

// Names returns the names of columns for flags.
func Names[C any](columns []C, title func(*C) Title) (names []string) {
	for i := range columns {
		names = append(names, title(&columns[i]).Name())
	}
	return names
}

// CheckColumns returns an error for the first name that is not a known column. It accepts "".
func CheckColumns(names, known []string) error {
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			return term.Unknown("column", name, known)
		}
	}
	return nil
}
