package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing that is wrong with a plan file, and where.
type Mistake struct {
	File    string
	Line    int // from 1
	Column  int // from 1, in characters
	Message string
}

// Error is in the form that editors and terminals make a link of.
func (m *Mistake) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, m.Message)
}

// Mistakes are all that is wrong with a plan file, in the file's order.
type Mistakes []*Mistake

// shownMistakes is as many as help; a file of another kind has thousands.
const shownMistakes = 20

// Error has a line for each mistake.
func (m Mistakes) Error() string {
	var lines []string
	for _, mistake := range m[:min(len(m), shownMistakes)] {
		lines = append(lines, mistake.Error())
	}
	if rest := len(m) - len(lines); rest > 0 {
		lines = append(lines, fmt.Sprintf("%s: and %d more mistakes", m[0].File, rest))
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a *Mistake.
func (m Mistakes) Unwrap() []error {
	all := make([]error, len(m))
	for i, mistake := range m {
		all[i] = mistake
	}
	return all
}

func (m Mistakes) sort() {
	slices.SortStableFunc(m, func(a, b *Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
