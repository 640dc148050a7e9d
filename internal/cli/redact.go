package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/record"
)

func newRedact(s *app) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "redact RECORD -o FILE",
		Short: "Remove names, paths, commands, ids and addresses from a record",
		Long: `Write a copy of a record with pseudonyms for paths, command lines, ids, programs, images,
addresses, labels and all other free text, and print how many of each kind there were. The
same text always has the same pseudonym. Targets, operations, versions and the machine's
hardware and kernel stay. So does every number, such as a label commit=1840 that orders a
history. The figures of both records are compared, and the copy is only written if they are
identical. Unreadable lines and lines of unknown types are dropped.`,
		Example: "  tare redact run.jsonl -o shared.jsonl",
		Args:    takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			if path == "" {
				return errors.New("redact: missing output file: add -o FILE")
			}
			var r record.Redaction
			if err := s.redact(&r, args[0], path); err != nil {
				return err
			}
			for _, kind := range r.Removed() {
				fmt.Fprintf(s.Out, "%-8s  %d different, in %d places\n", kind.Kind, kind.Values, kind.Times)
			}
			_, err := fmt.Fprintf(s.Out, "written to %s; targets, versions, hardware and numeric labels are unchanged\n", path)
			return err
		},
	}
	c.Flags().StringVarP(&path, "output", "o", "", "file to write, .jsonl or .jsonl.zst")
	return c
}

// redact writes a record's lines with pseudonyms. It keeps the file only if its figures are
// those of the record.
func (s *app) redact(r *record.Redaction, from, to string) error {
	return s.newRecord(to, func(w *record.Writer, at string) error {
		in, err := s.lines().Open(from)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		in.Several()
		for more := true; more && err == nil; more = in.More() {
			w.Another()
			err = redactOne(r, in, w)
			if in.Truncated() {
				fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(from+": the last line is incomplete and is dropped"))
			}
			if n := in.ProblemCount(); n > 0 {
				fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(fmt.Sprintf("%s: dropped %d unreadable parts, the first: %s", from, n, in.Problems()[0])))
			}
		}
		if wrong := w.Close(); err == nil {
			err = wrong
		}
		if err != nil {
			return err
		}
		before, err := s.digits(from)
		if err != nil {
			return err
		}
		after, err := s.digits(at)
		if err == nil && !bytes.Equal(before, after) {
			err = errors.New("redact: the figures would change, so nothing is written; please report this bug")
		}
		return err
	})
}

func redactOne(r *record.Redaction, in *record.Reader, w *record.Writer) error {
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			line, err = r.Line(line)
		}
		if err == nil {
			err = w.Write(line)
		}
		if err != nil {
			return err
		}
	}
}

// digits returns the figures of all records of a file without labels and reasons.
func (s *app) digits(path string) ([]byte, error) {
	all, err := s.judged([]string{path}, "json")
	if err != nil {
		return nil, err
	}
	var figures []figure.Figure
	for _, one := range all {
		figures = append(figures, one.Figures()...)
	}
	for i := range figures {
		figures[i].Labels, figures[i].Reasons = nil, nil
	}
	return json.Marshal(figures)
}
