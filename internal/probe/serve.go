package probe

import "strconv"

// ServeArgs returns the command that answers HTTP requests on a port, instead of a user's
// server. Settings are NAME=NUMBER: delay (milliseconds before it listens), leak
// (additional bytes per request), work (microseconds of CPU time per request) and hang
// (number of requests after which it stops answering).
func ServeArgs(port int, settings ...string) []string {
	return append([]string{Name, "serve", strconv.Itoa(port)}, settings...)
}
