// Package notes reads what tools said earlier out of any text that people kept:
// consoles, wiki pages, mails, log files. A text is scanned line by line in
// memory that does not grow with it. Commands give what follows them its block
// size, its direction and its cache, and lines such as "kata:" say whose it is;
// outputs of fio, dd and sysbench become results, and so do the figures of
// Markdown tables. Nothing is guessed: what the text does not say stays empty,
// and what looked like a result and could not be read is told of with its line.
package notes

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/record"
)

// MaxResults is how many results of one text are kept.
const MaxResults = 10_000

// maxUnread is how many of the lines that could not be read are named.
const maxUnread = 20

// The codes of the findings.
const (
	FoundUnread    = "import-unread"      // lines that look like results and could not be read
	FoundLimit     = "import-limit"       // more results than are kept
	FoundByOrder   = "import-by-order"    // results that were given their command by order
	FoundTable     = "import-table"       // results that were read from a table
	FoundTwice     = "import-twice"       // a table's figures whose output is in the text, too
	FoundUnnamed   = "import-unnamed"     // results of no label
	FoundName      = "import-name"        // lines that were taken for the name of a target
	FoundDoubt     = "import-doubt"       // lines that may be one and were not
	FoundDirection = "import-direction"   // of a dd without its command
	FoundUnknown   = "import-environment" // what an imported record cannot say
)

// Options say what the text does not, and win over what it does say.
type Options struct {
	Target string // whose all results are
	Volume string // a kind of volume, see record
	Cache  string // record.CacheDirect, record.CacheBuffered
}

// Result is one result of one tool.
type Result struct {
	Line    int // of the text, from 1
	Target  string
	Volume  string // "" where it is not known, likewise Cache
	Cache   string
	Job     plan.Job // as far as it is known; Name only where fio gave one
	Version string
	Command string
	Claim   record.Claim
	Failure string // what went wrong according to the tool; there is no claim then

	prepare bool    // sysbench's laying out of its files
	table   bool    // read from a table
	said    string  // the cache that its command asks for
	printed string  // the bandwidth as it stands there, "114.9MB/s"
	total   float64 // bytes/s of both directions where the text does not tell them apart
}

// Notes is what was found in one text.
type Notes struct {
	Name     string
	Results  []Result
	Findings []record.Finding
}

// Read scans a text. Its name is for people. An error is one of reading: what
// came before it is returned with it.
func Read(name string, in io.Reader, o Options) (*Notes, error) {
	s := newScanner(name, o)
	lines := newLines(in)
	for {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			return s.finish(), nil
		}
		if err != nil {
			return s.finish(), fmt.Errorf("read %s: %w; what came before was read", name, err)
		}
		s.line(line)
	}
}

// nameless is the target of results that no label names: what the file is
// called, since people keep kata.txt beside host.txt.
func nameless(name string) string {
	base := path.Base(name)
	base = strings.TrimSuffix(base, path.Ext(base))
	if base == "-" || base == "." || base == "/" || base == "" {
		return "notes"
	}
	return base
}

// IsTarget says whether a target can be called that.
func IsTarget(name string) bool { return targetName.MatchString(name) }
