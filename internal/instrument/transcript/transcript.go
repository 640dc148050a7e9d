// Package transcript extracts tool output from texts such as web pages, mails,
// consoles, and logs of containers and CI jobs. It separates the lines of each writer
// and removes what was added around them.
package transcript

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Stream has the lines of one writer.
type Stream struct {
	Label string // pod, container or job named by a prefix; "" without one
	Text  string // all lines with their line ends
	Lines []Line
	text  strings.Builder
}

// Line is a line without colors, tags, quotation marks and prefixes.
type Line struct {
	Number   int // line number in the text, from 1
	Text     string
	At       int  // offset in the stream's text
	Progress bool // a progress line that overwrote others
}

// maxLine is the maximum number of bytes considered per line.
const maxLine = 1 << 20

// stamp matches a date and time.
const stamp = `\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?Z| ?[+-]\d\d:?\d\d)?`

var (
	escapes = NewForm("\x1b", "\x1b\\[[0-?]*[ -/]*[@-~]|\x1b\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\x1b[@-Z\\\\-_]") // ECMA-48 CSI, and OSC
	tags    = NewForm("<", `</?[a-zA-Z!][^<>]{0,1000}>|^<[\w.:-]{1,100}> ?`)                                   // also matches the host name printed by fio --client
	breaks  = NewForm("<", `(?i)<br\s*/?>`)
	invalid = NewForm("", `[^\pL\pN._/+-]+`)
	stern   = NewForm(" ", `^([a-z][a-z0-9.-]*) ([a-z][a-z0-9.-]*)(?: |$)`)

	prefixes = []Form{
		NewForm("[pod/", `^\[pod/([^\]\s]+)\] ?`),                                                    // kubectl logs --prefix
		NewForm(".", `^([\w./-]+\.(?:log|txt|json)):(?:\d+:)?`),                                      // grep of several files
		NewForm("|", `^([\w.-]+[-_]\d+) +\| ?`),                                                      // docker compose
		NewForm("\t", `^([^\t]{1,200}\t[^\t]{1,200})\t\x{feff}?`+stamp+` ?`),                         // gh run view --log: job and step
		NewForm(":", `^\x{feff}?\[?`+stamp+`\]?(?: std(?:out|err) ([FP])(?: |$)| \d\d[OE][+ ]| |$)`), // kubectl logs --timestamps, CRI, Jenkins, GitLab
		NewForm(": ", `^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (\S+ [^\s\[:]+)(?:\[\d+\])?: `),         // journalctl
	}
)

// Form is a line format: a required text and a regular expression.
type Form struct {
	hint       string
	expression func() *regexp.Regexp
}

// NewForm returns a form. The expression is compiled when the first line contains
// hint.
func NewForm(hint, expression string) Form {
	return Form{hint, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// Find returns the match of a line and its groups, or nil.
func (f *Form) Find(line string) []string {
	if !strings.Contains(line, f.hint) {
		return nil
	}
	return f.expression().FindStringSubmatch(line)
}

// replace replaces all matches in a text.
func (f *Form) replace(text, by string) string {
	if !strings.Contains(text, f.hint) {
		return text
	}
	return f.expression().ReplaceAllString(text, by)
}

// wide replaces the Chinese punctuation in the output of dd.
var wide = strings.NewReplacer("，", ", ", "（", " (", "）", ") ")

// splitter is the state of Split.
type splitter struct {
	pods    map[string]int // number of lines that begin with two words, as in stern's "pod container"; a pod name contains a digit or a hyphen
	place   map[string]int
	streams []*Stream
	partial map[string]string // by label: incomplete text that the next line continues
}

// Split returns the streams of a text in order of their first lines. A single JSON
// document is returned unchanged.
func Split(text string) []*Stream {
	text = strings.TrimPrefix(text, "\ufeff")
	s := splitter{pods: map[string]int{}, place: map[string]int{}, partial: map[string]string{}}
	whole := json.Valid([]byte(text)) && !strings.HasPrefix(text, `{"log":"`)
	if !whole {
		for line := range strings.Lines(text) {
			if m := stern.Find(plain(line)); m != nil && (m[1] == m[2] || strings.ContainsAny(m[1], "-0123456789")) && len(s.pods) < maxStreams {
				s.pods[m[1]+" "+m[2]]++
			}
		}
		maps.DeleteFunc(s.pods, func(_ string, n int) bool { return n < 5 })
	}
	number := 0
	for line := range strings.Lines(text) {
		if number++; whole {
			s.add("", Line{Number: number, Text: strings.TrimSpace(line)})
			continue
		}
		line = html.UnescapeString(tags.replace(breaks.replace(strings.ToValidUTF8(plain(line), "\ufffd"), "\n"), ""))
		for line := range strings.SplitSeq(wide.Replace(line), "\n") { // also splits pages with &#10;
			s.line(number, line)
		}
	}
	for _, one := range s.streams {
		one.Text = one.text.String()
	}
	return s.streams
}

// plain returns a line without its line end and console colors.
func plain(line string) string {
	return strings.TrimRight(escapes.replace(line[:min(len(line), maxLine)], ""), "\r\n")
}

// blanks are the characters before quoted lines in mails and Markdown.
const blanks = "> \t\u00a0"

// line removes all prefixes from a line.
func (s *splitter) line(number int, line string) {
	var labels []string
	part := false
	for found := true; found; {
		line = strings.TrimLeft(line, blanks)
		var docker struct{ Log *string }
		if found = strings.HasPrefix(line, `{"log":"`) && json.Unmarshal([]byte(line), &docker) == nil; found { // docker's json-file
			line, part = plain(*docker.Log), !strings.HasSuffix(*docker.Log, "\n")
			continue
		}
		for i := range prefixes {
			m := prefixes[i].Find(line)
			if m == nil {
				continue
			}
			found, line = true, line[len(m[0]):]
			if part = m[1] == "P"; !part && m[1] != "" && m[1] != "F" {
				labels = append(labels, m[1])
			}
			break
		}
		if !found && labels == nil && len(s.pods) > 0 {
			if m := stern.Find(line); m != nil && s.pods[m[1]+" "+m[2]] > 0 {
				found, line, labels = true, line[len(m[0]):], m[1:]
			}
		}
	}
	label := strings.Join(labels, "/")
	line, s.partial[label] = s.partial[label]+line, ""
	if part && len(line) < maxLine {
		s.partial[label] = line
		return
	}
	line = strings.TrimRight(line, "\r")
	at := strings.LastIndexByte(line, '\r')
	if line = strings.TrimRight(strings.TrimLeft(line[at+1:], blanks), " \t\u00a0\r"); line != "" {
		s.add(label, Line{Number: number, Text: line, Progress: at >= 0})
	}
}

const (
	maxStreams = 1000 // maximum number of separate writers; further ones share the last stream
	maxLabel   = 64
)

func (s *splitter) add(label string, l Line) {
	i, met := s.place[label]
	if !met {
		i = min(len(s.streams), maxStreams-1)
		if s.place[label] = i; i == len(s.streams) {
			name := strings.Trim(invalid.replace(strings.TrimSuffix(label, "\tUNKNOWN STEP"), "-"), "._/+-")
			s.streams = append(s.streams, &Stream{Label: strings.TrimLeft(name[max(0, len(name)-maxLabel):], "._/+-")})
		}
	}
	to := s.streams[i]
	l.At = to.text.Len()
	to.text.WriteString(l.Text + "\n")
	to.Lines = append(to.Lines, l)
}

// From returns the text from one line up to but excluding another.
func (s *Stream) From(line, to int) string {
	if to >= len(s.Lines) {
		return s.Text[s.Lines[line].At:]
	}
	return s.Text[s.Lines[line].At:s.Lines[to].At]
}

// Object is a JSON object at the start of a line.
type Object struct {
	Line int // number of its first line
	JSON []byte
	Err  error // set if the object is incomplete
}

// maxJSON is the maximum size of an object.
const maxJSON = 16 << 20

// ObjectAt returns the object that starts at a line, and its number of lines. An incomplete object
// ends before the first line that is not JSON.
func (s *Stream) ObjectAt(line int) (o Object, lines int) {
	in := s.From(line, len(s.Lines))
	in = in[:min(len(in), maxJSON)]
	d := json.NewDecoder(strings.NewReader(in))
	var raw json.RawMessage
	end := len(in)
	if o.Err = d.Decode(&raw); o.Err == nil {
		end = int(d.InputOffset()) + 1 // the line's end
	} else if broken, ok := errors.AsType[*json.SyntaxError](o.Err); ok && broken.Offset > 0 {
		end = int(broken.Offset) - 1
	}
	if end = min(end, len(in)); o.Err != nil {
		raw, o.Err = []byte(in[:end]), fmt.Errorf("it breaks off or is longer than %d MiB", maxJSON>>20)
	}
	o.JSON, o.Line = raw, s.Lines[line].Number
	return o, max(strings.Count(in[:end], "\n"), 1)
}

// Objects returns all objects that start a line and are not nested in another.
func (s *Stream) Objects() (all []Object) {
	for i := 0; i < len(s.Lines); {
		n := 1
		if strings.HasPrefix(s.Lines[i].Text, "{") {
			var o Object
			o, n = s.ObjectAt(i)
			all = append(all, o)
		}
		i += n
	}
	return all
}

// Has reports whether all these keys are in the object, at any depth.
func (o *Object) Has(keys ...string) bool {
	return !slices.ContainsFunc(keys, func(key string) bool { return !bytes.Contains(o.JSON, []byte(`"`+key+`"`)) })
}
