package cli

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/record"
)

func newJoin(s *app) *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "join RECORD... -o FILE",
		Short: "Put several records into one file, such as those of ten nodes",
		Long: `Put records behind each other, line by line as they stand there, of any versions and
experiments, plain or zstd. Reports of the file are those of all of them. Half a line
that a crash left is not taken.`,
		Example: "  tare join run.jsonl run.jsonl -o all.jsonl.zst",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if path == "" {
				return errors.New("join: name the file to write with -o")
			}
			if err := checkRecordName(path); err != nil {
				return err
			}
			w, err := s.lines().Create(path)
			if err != nil {
				return err
			}
			for _, arg := range args {
				var broken bool
				if broken, err = w.Join(arg); err != nil {
					break
				}
				if broken {
					fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(fmt.Sprintf("%s: it breaks off within a line, or has one longer than %d MiB; what is there of that line is left out", arg, record.MaxLine>>20)))
				}
			}
			if wrong := w.Close(); err == nil {
				err = wrong
			}
			var all []*record.Record
			if err == nil {
				all, err = s.lines().LoadAll(path) // what cannot be read again is not kept
			}
			if err != nil {
				return unkept(w, path, err)
			}
			met := map[string]bool{}
			for _, rec := range all {
				if id := rec.Header.RunID; met[id] {
					fmt.Fprintf(s.Err, "tare: the run %s is there more than once: reports count it once\n", cleanLines(id))
				}
				met[rec.Header.RunID] = true
			}
			_, err = fmt.Fprintf(s.Out, "%s: %d files\n", path, len(args))
			return err
		},
	}
	c.Flags().StringVarP(&path, "output", "o", "", "file to write, .jsonl or .jsonl.zst")
	return c
}

// unkept is why a file was not made, of which nothing is kept.
func unkept(w *record.Writer, path string, err error) error {
	if cause := errors.Unwrap(w.Err()); cause != nil {
		err = fmt.Errorf("%w; nothing of it is kept: free space, or name another file with -o", cause)
	}
	return errors.Join(err, removeFile(path))
}

// removeFile removes what was to be a record. A device or a pipe that was named for it is
// no file of ours.
func removeFile(path string) error {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return os.Remove(path)
}
