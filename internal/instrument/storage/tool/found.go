package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/instrument/transcript"
	"github.com/tare-bench/tare/record"
)

// output is what one run of a tool printed, found in a text that somebody kept.
// Nothing is known of it but what it says itself.
type output struct {
	Line    int         // where it begins, from 1
	Job     storage.Job // as far as it says what was done
	Version string
	Cache   string // record.CacheDirect, record.CacheBuffered or "", not said
	Claim   record.Reported
	Err     error // why it cannot be used; it has no claim then
	Assumed bool  // dd's, whose direction nothing tells: taken for writing
	Prepare bool  // sysbench's, of the files that it made
	began   int64 // s since 1970, of a run of fio's by its JSON; 0 where it does not say
}

// How much of a text is read. Whoever sends a text decides what stands in it.
const (
	maxFound   = 10_000   // outputs, those that cannot be used among them
	maxReport  = 1 << 14  // lines of a report of sysbench's
	maxDDWords = 16 << 10 // bytes of a line with a command of dd's
)

// find returns the outputs in a text, in their order. What looks like one and cannot be
// read is among them, with its error; left is how many came after maxFound of them.
func find(text *transcript.Stream) (found []output, left int) {
	f := finder{Stream: text}
	for f.at < len(f.Lines) {
		f.at += f.next()
	}
	f.flush()
	return f.found, f.left
}

// finder is a text as far as it has been searched.
type finder struct {
	*transcript.Stream
	at    int
	fio   fioText
	dd    string // the operands of the last command of dd
	ddAt  int    // the line behind its last result, 0 before that
	made  string // the version of the sysbench that makes files, until it has
	found []output
	left  int
}

// next looks at one line, and returns how many it has used.
func (f *finder) next() int {
	for _, tool := range []func() int{f.fioJSON, f.sysbenchReport, f.sysbenchPrepared, f.ddEnd} {
		if n := tool(); n > 0 {
			return n
		}
	}
	f.fio.line(f)
	return 1
}

// take adds the output of a tool that begins at a line, or why there is none.
func (f *finder) take(what string, line int, o output, err error) {
	if o.Line = line; err != nil {
		o.Err = fmt.Errorf("%s: %w", what, err)
	}
	f.add(o)
}

// same says whether two outputs after each other are of one run of fio's: its states
// by --status-interval, or its JSON and the text that --output-format=json,normal prints after it.
func (o *output) same(next *output) bool {
	switch {
	case o.Err != nil || next.Err != nil || o.Job.Tool != storage.ToolFio || next.Job.Tool != storage.ToolFio:
		return false
	case o.began != 0 && next.began != 0:
		return max(o.began-next.began, next.began-o.began) <= 1 && o.Job.RW == next.Job.RW && o.Job.BS == next.Job.BS && o.Claim.Seconds <= next.Claim.Seconds
	case o.began == next.began: // two texts
		return false
	}
	alike := func(a, b *record.Flow) bool { return near(float64(a.Bytes), float64(b.Bytes), 0.01, 0) }
	return o.Claim.Seconds == next.Claim.Seconds && alike(&o.Claim.Read, &next.Claim.Read) && alike(&o.Claim.Write, &next.Claim.Write)
}

func (f *finder) add(o output) {
	if len(f.found) == maxFound {
		f.left++
		return
	}
	if o.Err != nil {
		o.Claim = record.Reported{}
	}
	if n := len(f.found); n > 0 && f.found[n-1].same(&o) {
		if o.began != 0 { // the later state of the run, or the one with all digits
			o.Line = f.found[n-1].Line
			f.found[n-1] = o
		}
		return
	}
	f.found = append(f.found, o)
}

// fioJSON is known by what it begins with, and ends where its outermost object
// does. Of JSON that breaks off, the line that is none is looked at again.
func (f *finder) fioJSON() int {
	head := f.Lines[f.at].Text
	if head == "{" && f.at+1 < len(f.Lines) {
		head += f.Lines[f.at+1].Text
	}
	if !strings.HasPrefix(head, "{") || !strings.HasPrefix(strings.TrimLeft(head[1:], " \t"), `"fio version"`) {
		return 0
	}
	f.flush()
	o, used := f.ObjectAt(f.at)
	line, err := f.Lines[f.at].Number, o.Err
	if err == nil {
		var out *fioOutput
		if out, err = decodeFio(string(o.JSON)); err == nil {
			for _, run := range out.runs() {
				o, err := run.result()
				f.take("fio's JSON", line, o, err)
			}
		}
	}
	if err != nil {
		f.take("fio's JSON", line, output{}, err)
	}
	return used
}

// fioRW has one word for reads and writes at random places, and one for those in
// order.
func fioRW(rw string) string {
	word, _, _ := strings.Cut(rw, ":")
	if word == "readwrite" {
		return "rw"
	}
	return word
}

func cacheOf(direct bool) string {
	if direct {
		return record.CacheDirect
	}
	return record.CacheBuffered
}

// sysbenchReport reads from sysbench's name, or the line after it, to the last line
// of every report. Other tests of sysbench's than fileio are passed over.
func (f *finder) sysbenchReport() int {
	if head := f.Lines[f.at].Text; !sysbenchBegins(head) && !sysbenchRuns(head) {
		return 0
	}
	text, n, files := f.sysbenchText()
	f.made = ""
	if m := sbVersion().FindStringSubmatch(f.Lines[f.at].Text); m != nil && strings.Contains(text, "Creating files for the test") {
		f.made = "sysbench " + m[1]
	}
	if !files {
		return 0
	}
	f.flush()
	out, err := parseSysbench(text)
	f.take("sysbench", f.Lines[f.at].Number, out, err)
	return n
}

// sysbenchPrepared reads the last line of sysbench's prepare, which may be all of it
// that was kept.
func (f *finder) sysbenchPrepared() int {
	m := sbWritten().FindStringSubmatch(f.Lines[f.at].Text)
	if m == nil {
		return 0
	}
	f.flush()
	o, err := parsePrepared(m)
	o.Version, f.made = f.made, ""
	f.take("sysbench prepare", f.Lines[f.at].Number, o, err)
	return 1
}

func sysbenchBegins(line string) bool { return sbVersion().MatchString(line) }

func sysbenchRuns(line string) bool {
	return strings.HasPrefix(line, "Running the test with following options")
}

// sysbenchText takes the lines of one report, of which a next one, or the output of
// another tool, is the end where the report was cut off, and tells whether it is one
// of files.
func (f *finder) sysbenchText() (text string, n int, files bool) {
	other := func(line string) bool {
		return fioCut().MatchString(line) || fioHead().MatchString(line) || ddCopied().MatchString(line) || ddLike().MatchString(line) || sbWritten().MatchString(line) || line == "{"
	}
	said := sysbenchRuns(f.Lines[f.at].Text)
	for _, l := range f.Lines[f.at:min(len(f.Lines), f.at+maxReport)] {
		if n > 0 && (sysbenchBegins(l.Text) || said && sysbenchRuns(l.Text) || other(l.Text)) || l.At-f.Lines[f.at].At+len(l.Text) > maxText {
			break
		}
		n, said = n+1, said || sysbenchRuns(l.Text)
		files = files || strings.HasPrefix(l.Text, "Operations performed") || strings.HasPrefix(l.Text, "File operations") || sbFsync().MatchString(l.Text)
		if strings.HasPrefix(l.Text, "execution time (avg/stddev)") {
			break
		}
	}
	return f.From(f.at, f.at+n), n, files
}

// ddCommandLine is dd with its operands, as typed on a console or quoted for a shell.
var ddCommandLine = storage.Pattern("(?:^|[\\s/;|&(`$#\"'])dd((?:\\s+[\"']?[a-z]{2,6}=[\"']?[^\\s\"'`;|&)]{1,400}[\"']?)+)")

// ddOperand is one of them, without its quotes.
var ddOperand = storage.Pattern(`([a-z]+)=["']?([^\s"']+)`)

// ddLike is its last line in English, which may be cut off.
var ddLike = storage.Pattern(`^\d+ bytes .*(?:copied,|transferred in) `)

// ddEnd reads dd's last line with the two before it. The direction is in the command only,
// which may have several results, as in a loop.
func (f *finder) ddEnd() int {
	l := f.Lines[f.at]
	if len(l.Text) <= maxDDWords {
		if m := ddCommandLine().FindStringSubmatch(l.Text); m != nil {
			f.dd, f.ddAt = m[1], 0
		}
	}
	if l.Progress || len(l.Text) > 400 || !ddCopied().MatchString(l.Text) && !ddLike().MatchString(l.Text) {
		return 0
	}
	f.flush()
	from := f.at
	for from > max(0, f.at-2) && ddRecordLine().MatchString(f.Lines[from-1].Text) {
		from--
	}
	if f.ddAt != 0 && f.ddAt != from { // something is between it and the command's last result
		f.dd = ""
	}
	f.ddAt = f.at + 1
	rw, cache, err := ddOf(f.dd)
	o, _, wrong := parseDD(f.From(from, f.at+1), rw)
	o.Cache, o.Assumed = cache, f.dd == ""
	f.take("dd", f.Lines[from].Number, o, errors.Join(wrong, err))
	return 1
}

// ddOf returns the direction and the cache of a command of dd. What is thrown away was
// read, of /dev/zero and the like nothing was.
func ddOf(operands string) (rw, cache string, err error) {
	of := map[string]string{}
	for _, m := range ddOperand().FindAllStringSubmatch(operands, -1) {
		of[m[1]] = m[2]
	}
	made := slices.Contains([]string{"/dev/zero", "/dev/urandom", "/dev/random"}, of["if"])
	thrown := slices.Contains([]string{"/dev/null", "/dev/zero", "/dev/full"}, of["of"])
	side := "oflag"
	switch rw = storage.RWWrite; {
	case operands == "":
		return rw, "", nil
	case made && thrown:
		err = fmt.Errorf("from %s to %s: no storage was in it", of["if"], of["of"])
	case thrown, !made && of["of"] == "":
		rw, side = storage.RWRead, "iflag"
	}
	return rw, cacheOf(slices.Contains(strings.Split(of[side], ","), "direct")), err
}
