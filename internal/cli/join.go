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
		Short: "Concatenate records in one file, such as those of ten nodes",
		Long: `Concatenate records, unchanged line by line, of any versions and experiments, plain or
zstd. Reports of the file cover all of its records. A partial line that a crash left behind
is dropped.`,
		Example: "  tare join run.jsonl run.jsonl -o all.jsonl.zst",
		Args:    takes(1, math.MaxInt),
		RunE: func(_ *cobra.Command, args []string) (err error) {
			if path == "" {
				return errors.New("join: missing output file: add -o FILE")
			}
			var all []*record.Record
			err = s.newRecord(path, func(w *record.Writer, at string) error {
				for _, arg := range args {
					broken, err := w.Join(arg)
					if err != nil {
						return err
					}
					if broken {
						fmt.Fprintf(s.Err, "tare: %s\n", cleanLines(fmt.Sprintf("%s: a line is incomplete or longer than %d MiB and is dropped", arg, record.MaxLine>>20)))
					}
				}
				if err := w.Close(); err != nil {
					return err
				}
				all, err = s.lines().LoadAll(at) // do not keep a file that cannot be read back
				return err
			})
			if err != nil {
				return err
			}
			met := map[string]bool{}
			for _, rec := range all {
				if id := rec.Header.RunID; met[id] {
					fmt.Fprintf(s.Err, "tare: run %s occurs more than once: reports count it once\n", cleanLines(id))
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
