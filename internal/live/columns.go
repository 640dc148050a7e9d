package live

import (
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/term"
)

var columnName = strings.NewReplacer("%", "", "/s", "", " ", "-")

// ColumnName returns the name of a column for flags: "io" for the title "IO/s".
func ColumnName(title string) string { return columnName.Replace(strings.ToLower(title)) }

// CheckColumns returns an error for the first name that is not a known column. It accepts "".
func CheckColumns(names, known []string) error {
	for _, name := range names {
		if name != "" && !slices.Contains(known, name) {
			return term.Unknown("column", name, known)
		}
	}
	return nil
}
