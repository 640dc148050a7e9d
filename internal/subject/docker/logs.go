package docker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/lane"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/record"
)

// reported waits until the workload's line is in the container's log, and takes
// the stamp in it. A container that ended meanwhile is not waited for.
func (s *session) reported(ctx context.Context, h *holding, sample *record.Sample) *record.Failure {
	for pause := time.Millisecond; !s.mute.Load(); pause = min(2*pause, 50*time.Millisecond) {
		log, err := s.log(ctx, h.name)
		if err != nil && ctx.Err() == nil && unreadable(err) {
			s.mute.Store(true)
			return nil
		}
		_, there := lane.ProbeTime(log, h.name)
		switch {
		case err == nil && there:
			f := batch.FirstFromLog(sample, log, h.name)
			if s.clock() != "host" && sample.First != 0 {
				sample.Guest, sample.First = sample.First, 0
			}
			return f
		case err != nil && ctx.Err() == nil:
			return unproven(ctx, fmt.Errorf("logs: %w", s.plain(err)))
		}
		if st, f := s.inspect(ctx, h); ctx.Err() == nil {
			if f == nil {
				f = s.runs(st)
			}
			if f != nil {
				return f
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return unproven(ctx, ctx.Err())
			}
			return batch.FirstFromLog(sample, log, h.name)
		case <-time.After(pause):
		}
	}
	return nil
}

// unreadable tells that the log driver keeps nothing that could be read. Docker
// answers 501, or 500 with these words before 20.10.
func unreadable(err error) bool {
	return err != nil && (cerrdefs.IsNotImplemented(err) || strings.Contains(err.Error(), "does not support reading"))
}

// log returns what the workload printed, at most 64 KiB of it.
func (s *session) log(ctx context.Context, id string) (string, error) {
	r, err := s.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true})
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, 64<<10))
	if err != nil {
		return "", err
	}
	return stdout(b), nil
}

// stdout takes the frames of standard output from a log: a byte that says which
// stream it is, three of zero, the length, and the text. What is cut off or
// unknown ends it.
func stdout(b []byte) string {
	const header = 8
	var out strings.Builder
	for len(b) >= header {
		stream, size := b[0], int(binary.BigEndian.Uint32(b[4:header]))
		b = b[header:]
		if stream > 2 || size > len(b) {
			break
		}
		if stream != 2 {
			out.Write(b[:size])
		}
		b = b[size:]
	}
	return out.String()
}
