package podman

import (
	"strings"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// readLog reads the output that is kept in a file, in the format of Kubernetes'
// container logs.
func readLog(path string) (string, error) {
	b, err := cli.ReadLog(path)
	return parseLog(string(b)), err
}

// parseLog takes the output out of lines "TIME STREAM F|P TEXT"; P is a part of
// a line. What has another form, a cut line for instance, is passed over.
func parseLog(log string) string {
	var text strings.Builder
	for line := range strings.Lines(log) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		if len(parts) != 4 || parts[1] != "stdout" && parts[1] != "stderr" {
			continue
		}
		switch parts[2] {
		case "F":
			text.WriteString(parts[3] + "\n")
		case "P":
			text.WriteString(parts[3])
		}
	}
	return text.String()
}

// unprefixed takes the container's id off each line of `podman logs` of several
// containers.
func unprefixed(log string, several bool) string {
	if !several {
		return log
	}
	var text strings.Builder
	for line := range strings.Lines(log) {
		if _, said, ok := strings.Cut(line, " "); ok {
			text.WriteString(said)
		}
	}
	return text.String()
}
