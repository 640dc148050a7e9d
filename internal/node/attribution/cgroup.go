package attribution

import (
	"iter"
	"path"
)

// upwards iterates over a path and its ancestors without the root.
func upwards(where string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for where != "/" && where != "." && where != "" && yield(where) {
			where = path.Dir(where)
		}
	}
}
