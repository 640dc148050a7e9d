package cli

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tare-bench/tare/internal/core/page"
	"github.com/tare-bench/tare/internal/serve"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/workspace"
	"github.com/tare-bench/tare/record"
)

func newRecords(s *app) *cobra.Command {
	var format, filter string
	var rows int
	c := &cobra.Command{
		Use:   "records [DIR]",
		Short: "List stored records: run id, when, what, targets, status",
		Long: `List the records below a folder (default: the one where runs store them), newest first.
Every command that reads a record accepts, instead of its path,

  kjphc36x       the run id, or its first letters
  last, last~2   the newest record, or the one two before it

of those in the default folder.`,
		Example: "  tare records\n  tare records --filter 'lifecycle runc' --format json",
		Args:    takes(0, 1),
		RunE: func(c *cobra.Command, args []string) error {
			o, err := s.serving(args)
			if err != nil {
				return err
			}
			all, bounded, err := serve.Records(c.Context(), o, filter)
			if err != nil {
				return err
			}
			if bounded != "" {
				fmt.Fprintf(s.Err, "tare: %s\n", bounded)
			}
			if rows > 0 && rows < len(all) {
				all = all[:rows]
			}
			if format == "json" {
				return term.WriteJSON(s.Out, all, true)
			}
			t := page.Names("RUN", "BEGAN (UTC)", "WHAT", "TARGETS", "STATUS", "RECORD")
			for _, r := range all {
				t.Row(page.Texts(r.Run, r.Began.Format("2006-01-02 15:04"), r.Instrument, r.Targets, cmp.Or(r.Wrong, r.State), r.Name)...)
			}
			return t.Write(s.Out, s.pageOptions(outputFlags{}))
		},
	}
	formatFlag(c, &format, "text", "json")
	c.Flags().StringVar(&filter, "filter", "", "only list records that contain all these words")
	c.Flags().IntVarP(&rows, "rows", "n", 0, "maximum number of records, 0: all")
	return c
}

// serving returns the options for reading the records of a folder.
func (s *app) serving(args []string) (o serve.Options, err error) {
	roots := workspace.DefaultRoots()
	o = serve.Options{Instruments: s.instruments, Lines: s.lines(), Alive: func(id string) bool { return workspace.Alive(roots, id) }, Marks: roots.State}
	if o.Dir, err = recordsFolder(); len(args) > 0 {
		o.Dir, err = args[0], nil
	}
	if err != nil {
		err = fmt.Errorf("find the records folder: %w; name one", err)
	}
	return o, err
}

// storedRun is a run in the default folder.
type storedRun struct {
	path string
	*record.Header
}

// storedRuns returns the first run of each file in the default folder, newest first.
func (s *app) storedRuns() (dir string, all []storedRun) {
	dir, err := recordsFolder()
	if err != nil {
		return dir, nil
	}
	there, _ := record.Walk(os.DirFS(dir))
	for run := range inOrder(slices.Sorted(maps.Keys(there)), func(name string) storedRun {
		path := filepath.Join(dir, name)
		r, err := s.lines().Open(path)
		if err != nil {
			return storedRun{}
		}
		defer func() { _ = r.Close() }() // nothing was written
		line, _ := r.Next()
		header, _ := line.(*record.Header)
		return storedRun{path, header}
	}) {
		if run.Header != nil {
			all = append(all, run)
		}
	}
	slices.SortStableFunc(all, func(a, b storedRun) int { return b.Started.Compare(a.Started) })
	return dir, all
}

var (
	lastRun  = regexp.MustCompile(`^last(?:~([0-9]{1,6}))?$`)
	runStart = regexp.MustCompile(`^[a-z2-7]{1,8}$`) // see workspace.NewID
)

// locate returns the path of a record named by its path, last, last~2 or the first letters
// of its run id. A NAME= prefix is kept.
func (s *app) locate(arg string) (string, error) {
	name, of, named := strings.Cut(arg, "=")
	if !named {
		name, of = "", arg
	} else {
		name += "="
	}
	back := lastRun.FindStringSubmatch(of)
	if _, err := os.Lstat(arg); err == nil || back == nil && !runStart.MatchString(of) {
		return arg, nil
	}
	if _, err := os.Lstat(of); err == nil {
		return arg, nil
	}
	dir, all := s.storedRuns()
	if back != nil {
		if n, _ := strconv.Atoi(back[1]); n < len(all) { // "" is 0
			return name + all[n].path, nil
		}
		return "", fmt.Errorf("no record %q: there are %s in %s", of, page.Amount(len(all), "record"), dir)
	}
	var ids []string
	path := ""
	for _, run := range all {
		if strings.HasPrefix(run.RunID, of) && !slices.Contains(ids, run.RunID) {
			ids, path = append(ids, run.RunID), run.path
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("no record %q: no such file, and no run id in %s starts with it; tare records lists them", of, dir)
	case 1:
		return name + path, nil
	}
	return "", fmt.Errorf("%q is ambiguous: it matches %s; add more letters", of, page.Listed(ids))
}

// located runs a command after resolving the records in its arguments to paths.
func (s *app) located(c *cobra.Command, args []string, do func(*cobra.Command, []string) error) (err error) {
	most, is := readers[c.Name()]
	if !is || c.Name() == "gate" && (len(args) == 1 || c.Flags().Changed("interleave")) { // the arguments are targets
		return do(c, args)
	}
	args = slices.Clone(args)
	for i := range args[:min(len(args), most)] {
		if args[i], err = s.locate(args[i]); err != nil {
			return err
		}
	}
	if f := c.Flags().Lookup("earlier"); f != nil && f.Changed {
		list := f.Value.(pflag.SliceValue)
		earlier := list.GetSlice()
		for i := range earlier {
			if earlier[i], err = s.locate(earlier[i]); err != nil {
				return err
			}
		}
		if err := list.Replace(earlier); err != nil {
			return err
		}
	}
	if c.Name() == "label" { // a label on a downloaded copy would be lost
		return do(c, args)
	}
	return s.fetching(c, args, do)
}

// recordNames returns the record names for shell completion.
func (s *app) recordNames() (names []cobra.Completion) {
	_, all := s.storedRuns()
	for i, run := range all {
		about := fmt.Sprintf("%s %s", page.Heading(run.Experiment), run.Started.UTC().Format("2006-01-02 15:04"))
		if i == 0 {
			names = append(names, cobra.CompletionWithDesc("last", about))
		}
		names = append(names, cobra.CompletionWithDesc(run.RunID, about))
	}
	return names
}
