package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/tare-bench/tare/internal/node/machine"
	"golang.org/x/sys/unix"
)

// maxLog bounds the bytes read from a log. The workload writes one line.
const maxLog = 64 << 10

// OpenLog opens the file of a container's output. File and path are foreign: anything but a
// regular file is refused.
func OpenLog(path string) (*os.File, error) {
	if path == "" {
		return nil, errors.New("no log file")
	}
	return machine.OpenPlain(path, unix.O_NOFOLLOW)
}

// Within reports whether a path relative to a folder leads to a file in it, without links.
func Within(folder, below string) bool {
	dir, err := os.Open(folder)
	if err != nil {
		return false
	}
	defer func() { _ = dir.Close() }()
	fd, err := unix.Openat2(int(dir.Fd()), below, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// ReadLog reads the beginning of a log file.
func ReadLog(path string) ([]byte, error) {
	f, err := OpenLog(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxLog))
}

// maxTail bounds the last output of a workload that is reported.
const maxTail = 4 << 10

// Last returns the end of text that is reported, up to 4 KiB.
func Last(text string) string { return text[max(0, len(text)-maxTail):] }

// tail returns the end of a log, from the beginning of a line, or "" if it cannot be read.
// plain means that the log has no engine's format.
func tail(path string, plain bool) string {
	f, err := OpenLog(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	from := int64(0)
	if info, err := f.Stat(); err == nil {
		from = max(0, info.Size()-maxTail)
	}
	text, _ := io.ReadAll(io.NewSectionReader(f, from, maxTail))
	if i := bytes.IndexByte(text, '\n'); from > 0 && i >= 0 {
		text = text[i+1:]
	}
	return ParseLog(text, plain)
}

// ReadLogs returns the output of containers so far, from their log files. plain means that
// the logs have no engine's format.
func ReadLogs(containers []State, plain bool) (string, error) {
	var text strings.Builder
	var errs []error
	for _, c := range containers {
		log, err := ReadLog(c.Log)
		text.WriteString(ParseLog(log, plain))
		errs = append(errs, err)
	}
	return text.String(), errors.Join(errs...)
}

// ParseLog extracts the output from a container's log. It reads Kubernetes' format, "TIME
// STREAM F|P TEXT" where P is a partial line, and Docker's, {"log":"TEXT\n",…}. Other and
// incomplete lines are skipped. plain means that the log has no engine's format.
func ParseLog(log []byte, plain bool) string {
	if plain {
		return string(log)
	}
	var text strings.Builder
	for line := range bytes.Lines(log) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // still being written
		}
		if line[0] == '{' {
			var entry struct {
				Log string `json:"log"`
			}
			if json.Unmarshal(line, &entry) == nil {
				text.WriteString(entry.Log)
			}
			continue
		}
		parts := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 4)
		if len(parts) != 4 || parts[1] != "stdout" && parts[1] != "stderr" {
			continue
		}
		switch tag, _, _ := strings.Cut(parts[2], ":"); tag {
		case "F":
			text.WriteString(parts[3] + "\n")
		case "P":
			text.WriteString(parts[3])
		}
	}
	return text.String()
}
