package engine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// Kept keeps the first bytes that are written to it.
type Kept = cli.Kept

// Unframe reads the output of a command to its end, in the frames of Docker's
// API, which Podman's has too: one byte that says which stream it is (0 and 1
// standard output, 2 standard error), three of zero, the length as 32 bits, the
// largest first, and so much text. The source is "Stream format" of
// https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
func Unframe(r io.Reader, stdout, stderr io.Writer) error {
	var header [8]byte
	for {
		switch _, err := io.ReadFull(r, header[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the output ends within a frame's header: %w", err)
		}
		to := stdout
		switch {
		case header[0] == 2:
			to = stderr
		case header[0] > 3 || header[1]|header[2]|header[3] != 0:
			return fmt.Errorf("the output is not in frames: one begins with % x", header)
		case header[0] == 3: // the daemon's own word
			to = stderr
		}
		if _, err := io.CopyN(to, r, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return fmt.Errorf("the output ends within a frame: %w", err)
		}
	}
}
