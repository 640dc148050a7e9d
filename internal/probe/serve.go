package probe

import "strconv"

// ServeArgs is the command that answers HTTP requests on a port, for trials of what a
// server of the user's own would be. It takes further settings as NAME=NUMBER: delay
// (milliseconds before it listens), leak (bytes that it holds more with every request),
// work (microseconds of CPU time for each) and hang (requests, after which it answers none).
func ServeArgs(port int, settings ...string) []string {
	return append([]string{Name, "serve", strconv.Itoa(port)}, settings...)
}
