package attribution

import "path"

// upwards calls f for a path and its ancestors without the root until f returns false.
func upwards(where string, f func(string) bool) {
	for where != "/" && where != "." && where != "" && f(where) {
		where = path.Dir(where)
	}
}
