package cli

import (
	"errors"
	"fmt"
	"math"

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
			var all []*record.Record
			err = s.newRecord(path, func(w *record.Writer, at string) error {
				for _, arg := range args {
					broken, err := w.Join(arg)
					if err != nil {
						return err
					}
					if broken {
						fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(fmt.Sprintf("%s: it breaks off within a line, or has one longer than %d MiB; what is there of that line is left out", arg, record.MaxLine>>20)))
					}
				}
				if err := w.Close(); err != nil {
					return err
				}
				all, err = s.lines().LoadAll(at) // what cannot be read again is not kept
				return err
			})
			if err != nil {
				return err
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
