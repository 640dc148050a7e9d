package cli

import (
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"
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
				err = errors.Join(err, w.Join(arg))
			}
			if err = errors.Join(err, w.Close()); err == nil {
				_, err = s.lines().LoadAll(path) // what cannot be read again is not kept
			}
			if err != nil {
				return errors.Join(err, os.Remove(path))
			}
			_, err = fmt.Fprintf(s.Out, "%s: %d files\n", path, len(args))
			return err
		},
	}
	c.Flags().StringVarP(&path, "output", "o", "", "file to write, .jsonl or .jsonl.zst")
	return c
}
