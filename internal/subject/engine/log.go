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

// maxLog is how much of a log is read. The workload says one line.
const maxLog = 64 << 10

// OpenLog opens the file in which an engine keeps a container's output. The file is
// foreign, and its path too: what is no plain file is refused.
func OpenLog(path string) (*os.File, error) {
	if path == "" {
		return nil, errors.New("the log is not in a file")
	}
	return machine.OpenPlain(path, unix.O_NOFOLLOW)
}

// Within reports whether a path below a folder leads to a file there, through no link.
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

// ReadLog reads the beginning of such a file.
func ReadLog(path string) ([]byte, error) {
	f, err := OpenLog(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxLog))
}

// maxTail is how much is told of what a workload said last.
const maxTail = 4 << 10

// Last is as much of the end of what a workload said as is told of it.
func Last(text string) string { return text[max(0, len(text)-maxTail):] }

// tail is the end of what is in a log, from the beginning of a line; "" where it cannot
// be read. plain: it is there as it was written.
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
	text, _ := io.ReadAll(io.NewSectionReader(f, from, maxTail)) // of what cannot be read, what there is
	if i := bytes.IndexByte(text, '\n'); from > 0 && i >= 0 {
		text = text[i+1:]
	}
	if plain {
		return string(text)
	}
	return ParseLog(text)
}

// ReadLogs is what containers have said so far, out of the files in which an
// engine keeps that; plain: as it was written.
func ReadLogs(containers []State, plain bool) (string, error) {
	var text strings.Builder
	var errs []error
	for _, c := range containers {
		log, err := ReadLog(c.Log)
		if plain {
			text.Write(log)
		} else {
			text.WriteString(ParseLog(log))
		}
		errs = append(errs, err)
	}
	return text.String(), errors.Join(errs...)
}

// ParseLog takes the output out of a container's log, in whichever form the
// engine keeps it: Kubernetes' lines "TIME STREAM F|P TEXT", where P is a part of
// a line, or Docker's, {"log":"TEXT\n",…}. What has another form, or is not
// complete yet, is passed over.
func ParseLog(log []byte) string {
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
