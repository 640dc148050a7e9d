package attribution

import "path"

// upwards calls f for a path and those above it, the root left out, until f
// says false.
func upwards(where string, f func(string) bool) {
	for where != "/" && where != "." && where != "" && f(where) {
		where = path.Dir(where)
	}
}
