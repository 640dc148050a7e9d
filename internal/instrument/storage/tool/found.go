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

// output is the result of one tool run found in a text. Fields that the text does not contain are
// unset.
type output struct {
	Line    int         // first line, from 1
	Job     storage.Job // as far as the output describes it
	Version string
	Cache   string // record.CacheDirect, record.CacheBuffered or "" if unknown
	Claim   record.Reported
	Err     error // why it is unusable; Claim is empty then
	Assumed bool  // dd without a known direction: assumed to write
	Prepare bool  // sysbench prepare, which created the files
	began   int64 // start in s since 1970, from fio's JSON; 0 if unknown
}

// Limits on the input, which is untrusted.
const (
	maxFound   = 10_000   // outputs, including unusable ones
	maxReport  = 1 << 14  // lines of a sysbench report
	maxDDWords = 16 << 10 // bytes of a line with a dd command
)

// find returns the outputs in a text in order, including unreadable ones with their
// error. left is the number of outputs beyond maxFound.
func find(text *transcript.Stream) (found []output, left int) {
	f := finder{Stream: text}
	for f.at < len(f.Lines) {
		f.at += f.next()
	}
	f.flush()
	return f.found, f.left
}

// finder is the state of the search in a text.
type finder struct {
	*transcript.Stream
	at    int
	fio   fioText
	dd    string // operands of the last dd command
	ddAt  int    // the line after its last result; 0 if none yet
	made  string // version of the sysbench that creates files, until it is done
	found []output
	left  int
}

// next parses the output at the current line and returns the number of lines used.
func (f *finder) next() int {
	for _, tool := range []func() int{f.fioJSON, f.sysbenchReport, f.sysbenchPrepared, f.ddEnd} {
		if n := tool(); n > 0 {
			return n
		}
	}
	f.fio.line(f)
	return 1
}

// take adds an output that begins at a line, or its error.
func (f *finder) take(what string, line int, o output, err error) {
	if o.Line = line; err != nil {
		o.Err = fmt.Errorf("%s: %w", what, err)
	}
	f.add(o)
}

// same reports whether two consecutive outputs are of one fio run: states printed by
// --status-interval, or the JSON and the text of --output-format=json,normal.
func (o *output) same(next *output) bool {
	switch {
	case o.Err != nil || next.Err != nil || o.Job.Tool != storage.ToolFio || next.Job.Tool != storage.ToolFio:
		return false
	case o.began != 0 && next.began != 0:
		return max(o.began-next.began, next.began-o.began) <= 1 && o.Job.RW == next.Job.RW && o.Job.BS == next.Job.BS && o.Claim.Seconds <= next.Claim.Seconds
	case o.began == next.began: // both are text
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
		if o.began != 0 { // keep the later state, or the one with all digits
			o.Line = f.found[n-1].Line
			f.found[n-1] = o
		}
		return
	}
	f.found = append(f.found, o)
}

// fioJSON detects fio's JSON by its first lines, up to the end of the outermost object.
// If the JSON is truncated, the line that ends it is parsed again.
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

// fioRW returns the canonical name of an I/O pattern of fio, without its modifier.
func fioRW(rw string) string {
	word, _, _ := strings.Cut(rw, ":")
	if word == "readwrite" {
		return "rw"
	}
	return word
}

// cacheOf has the cache mode by whether I/O is direct.
var cacheOf = map[bool]string{true: record.CacheDirect, false: record.CacheBuffered}

// sysbenchReport parses a report from the line with sysbench's name, or the line after
// it, to its last line. It ignores tests other than fileio.
func (f *finder) sysbenchReport() int {
	if head := f.Lines[f.at].Text; !sbVersion().MatchString(head) && !sysbenchRuns(head) {
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

// sysbenchPrepared parses the last line of sysbench prepare. The text may contain no
// other line of it.
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

func sysbenchRuns(line string) bool {
	return strings.HasPrefix(line, "Running the test with following options")
}

// sysbenchText returns the lines of one report, and whether it is of fileio. A truncated
// report ends where another report or the output of another tool begins.
func (f *finder) sysbenchText() (text string, n int, files bool) {
	other := func(line string) bool {
		return fioCut().MatchString(line) || fioHead().MatchString(line) || ddCopied().MatchString(line) || ddLike().MatchString(line) || sbWritten().MatchString(line) || line == "{"
	}
	said := sysbenchRuns(f.Lines[f.at].Text)
	for _, l := range f.Lines[f.at:min(len(f.Lines), f.at+maxReport)] {
		if n > 0 && (sbVersion().MatchString(l.Text) || said && sysbenchRuns(l.Text) || other(l.Text)) || l.At-f.Lines[f.at].At+len(l.Text) > maxText {
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

// ddCommandLine matches dd with its operands, as typed or quoted for a shell.
var ddCommandLine = storage.Pattern("(?:^|[\\s/;|&(`$#\"'])dd((?:\\s+[\"']?[a-z]{2,6}=[\"']?[^\\s\"'`;|&)]{1,400}[\"']?)+)")

// ddOperand matches one operand, without its quotes.
var ddOperand = storage.Pattern(`([a-z]+)=["']?([^\s"']+)`)

// ddLike matches dd's last line in English, even if it is truncated.
var ddLike = storage.Pattern(`^\d+ bytes .*(?:copied,|transferred in) `)

// ddEnd parses dd's last line and up to two lines before it. Only the command shows the direction. A
// command may have several results, as in a loop.
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
	if f.ddAt != 0 && f.ddAt != from { // other lines separate this result from the command's last one
		f.dd = ""
	}
	f.ddAt = f.at + 1
	rw, cache, err := ddOf(f.dd)
	o, _, wrong := parseDD(f.From(from, f.at+1), rw)
	o.Cache, o.Assumed = cache, f.dd == ""
	f.take("dd", f.Lines[from].Number, o, errors.Join(wrong, err))
	return 1
}

// ddOf returns the direction and the cache mode of a dd command. Data sent to /dev/null
// and the like was read; data from /dev/zero and the like was written.
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
	return rw, cacheOf[slices.Contains(strings.Split(of[side], ","), "direct")], err
}
