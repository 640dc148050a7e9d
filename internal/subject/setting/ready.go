package setting

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Ready is when a workload is ready, in the written form: tcp:8080, http:8080/PATH=200, log:REGEXP, exec:/PROGRAM ARG…
// (words quoted as in a shell) or file:/PATH; "" if not requested.
type Ready string

// The kinds of readiness.
const (
	ReadyTCP  = "tcp"  // accepts a connection
	ReadyHTTP = "http" // answers a request with the status
	ReadyLog  = "log"  // has printed a matching line
	ReadyExec = "exec" // a command in the container exits with 0
	ReadyFile = "file" // the file exists
)

// Readiness is a parsed [Ready]. Fields of other kinds are zero.
type Readiness struct {
	By      string
	Port    int            // of tcp and http
	Path    string         // of http with its query, of file; both absolute
	Status  int            // of http
	Pattern *regexp.Regexp // of log, for a line without its end
	Command []string       // of exec: an absolute path in the container and its arguments
}

// ReadyForms shows the forms of a Ready.
const ReadyForms = "tcp:8080, http:8080/healthz=200, log:REGEXP, exec:/PROGRAM ARG or file:/PATH"

// Limits of a Ready.
const (
	maxReady   = 4096 // bytes
	maxPattern = 1024
	maxWords   = 100
)

// Parse parses a Ready.
func (r Ready) Parse() (Readiness, error) {
	if len(r) > maxReady || strings.ContainsFunc(string(r), func(c rune) bool { return c < ' ' || c == 0x7f }) {
		return Readiness{}, fmt.Errorf("is longer than %d bytes or has control characters", maxReady)
	}
	by, what, found := strings.Cut(string(r), ":")
	is := Readiness{By: by}
	var err error
	switch {
	case !found:
		err = errors.New("has no kind")
	case by == ReadyTCP:
		is.Port, err = port(what)
	case by == ReadyHTTP:
		err = is.parseHTTP(what)
	case by == ReadyLog:
		is.Pattern, err = pattern(what)
	case by == ReadyExec:
		if is.Command, err = Words(what); err != nil || len(is.Command) == 0 || len(is.Command) > maxWords || !absolute(is.Command[0]) {
			err = fmt.Errorf("needs a program's absolute path in the container, at most %d words and closed quotes", maxWords)
		}
	case by == ReadyFile:
		if is.Path = what; !absolute(what) {
			err = errors.New("needs an absolute, clean path in the container")
		}
	default:
		err = fmt.Errorf("has the unknown kind %.20q", by)
	}
	if err != nil {
		return Readiness{}, err
	}
	return is, nil
}

// Check returns the error of an invalid Ready.
func (r Ready) Check() error {
	if _, err := r.Parse(); err != nil {
		return fmt.Errorf("%.60q %w: write %s", string(r), err, ReadyForms)
	}
	return nil
}

func port(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("has the port %.20q (1 to 65535)", text)
	}
	return int(n), nil
}

// parseHTTP parses PORT[/PATH][=STATUS]. The part after the last = is the status only if it has
// three digits, since a query may contain =.
func (is *Readiness) parseHTTP(what string) (err error) {
	is.Status = 200
	if i := strings.LastIndexByte(what, '='); i >= 0 && len(what)-i-1 == 3 {
		if n, err := strconv.ParseUint(what[i+1:], 10, 16); err == nil {
			if n < 100 || n > 599 {
				return fmt.Errorf("has the status %d (100 to 599)", n)
			}
			is.Status, what = int(n), what[:i]
		}
	}
	number, rest, _ := strings.Cut(what, "/")
	is.Path = "/" + rest
	if strings.ContainsAny(is.Path, " #") {
		return errors.New("has a space or # in its path: write %20 or %23")
	}
	is.Port, err = port(number)
	return err
}

// pattern compiles a regular expression of RE2, which matches in linear time.
func pattern(text string) (*regexp.Regexp, error) {
	if text == "" || len(text) > maxPattern {
		return nil, fmt.Errorf("needs a regular expression of at most %d bytes", maxPattern)
	}
	return regexp.Compile(text)
}

func absolute(p string) bool { return path.IsAbs(p) && path.Clean(p) == p }
