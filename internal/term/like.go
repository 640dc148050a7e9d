package term

import (
	"fmt"
	"strings"
)

// Unknown returns the error for a word that is not among the known ones.
func Unknown(what, word string, known []string) error {
	return fmt.Errorf("unknown %s %q (supported: %s)%s", what, word, strings.Join(known, ", "), Like(word, known))
}

// Like returns the hint "; did you mean X?" for an unknown word, or "" if no known word is
// similar. Similar words differ in one letter, or in two but not in the first.
func Like(word string, known []string) string {
	best, least := "", 3
	for _, one := range known {
		if n := distance([]rune(word), []rune(one)); n < least && n < len(one) && (n < 2 || word[:1] == one[:1]) {
			best, least = one, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance returns the Levenshtein distance: the number of inserted, removed or replaced
// letters.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		left := row[0]
		row[0]++
		for j := range b {
			replaced := left
			if a[i] != b[j] {
				replaced++
			}
			left = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, replaced)
		}
	}
	return row[len(b)]
}
