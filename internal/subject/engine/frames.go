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

// Unframe splits the output of a command into stdout and stderr. Docker's API, and Podman's,
// send frames: one byte for the stream (0 and 1 standard output, 2 standard error), three
// zero bytes, the length as 32 bits big-endian, and the text. See "Stream format" in
// https://docs.docker.com/reference/api/engine/version/v1.41/#tag/Container/operation/ContainerAttach
func Unframe(r io.Reader, stdout, stderr io.Writer) error {
	var header [8]byte
	for {
		switch _, err := io.ReadFull(r, header[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("output truncated in a frame header: %w", err)
		}
		to := stdout
		switch {
		case header[0] == 2:
			to = stderr
		case header[0] > 3 || header[1]|header[2]|header[3] != 0:
			return fmt.Errorf("output without frames: a header is % x", header)
		case header[0] == 3: // an error of the daemon
			to = stderr
		}
		if _, err := io.CopyN(to, r, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return fmt.Errorf("output truncated in a frame: %w", err)
		}
	}
}
