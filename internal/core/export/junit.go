package export

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/tare-bench/tare/internal/core/figure"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/record"
)

// suites, suite and testCase are the JUnit XML elements that CI systems read.
type suites struct {
	XMLName xml.Name `xml:"testsuites"`
	Suites  []suite  `xml:"testsuite"`
}

type suite struct {
	Name       string     `xml:"name,attr"`
	Tests      int        `xml:"tests,attr"`
	Failures   int        `xml:"failures,attr"`
	Errors     int        `xml:"errors,attr"`
	Skipped    int        `xml:"skipped,attr"`
	Timestamp  string     `xml:"timestamp,attr,omitempty"`
	Time       string     `xml:"time,attr"` // s
	Properties []property `xml:"properties>property"`
	Cases      []testCase `xml:"testcase"`
	Out        string     `xml:"system-out,omitempty"`
}

type property struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type testCase struct {
	Class      string      `xml:"classname,attr"`
	Name       string      `xml:"name,attr"`
	Time       string      `xml:"time,attr"` // s
	Properties *properties `xml:"properties"`
	Failure    *outcome    `xml:"failure"`
	Error      *outcome    `xml:"error"`
	Skipped    *outcome    `xml:"skipped"`
}

type properties struct {
	All []property `xml:"property"`
}

type outcome struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes a suite for each run. It has a case for the outcome of the run, one for each
// finding of level error, and one for each figure. The number of failures and errors agrees
// with the exit status. A run without an end also counts as an error.
func JUnit(w io.Writer, all []Document) error {
	var out suites
	for i, figures := range naming(all) {
		out.Suites = append(out.Suites, newSuite(&all[i], figures))
	}
	text, err := xml.MarshalIndent(out, "", "  ")
	if err != nil {
		return fmt.Errorf("write the report as JUnit: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s%s\n", xml.Header, text)
	return err
}

func newSuite(d *Document, figures []named) suite {
	h := headOf(d.Record)
	s := suite{Name: "tare " + h.Experiment + " " + term.Clean(h.RunID), Time: number(float64(h.Elapsed) / 1e9)}
	if !h.Started.IsZero() {
		s.Timestamp = h.Started.UTC().Format("2006-01-02T15:04:05")
	}
	for _, l := range about(d.Record) {
		s.Properties = append(s.Properties, property{term.Clean(l.Key), term.Clean(l.Value)})
	}
	s.add(theRun(d, h))
	var told []string
	for _, f := range d.Findings {
		told = append(told, term.Clean(f.Level+" "+f.Code+": "+f.Message+"; "+f.Advice))
		if f.Level == "error" {
			s.add(testCase{Class: h.Experiment + ".finding", Name: term.Clean(said(f)), Time: "0", Failure: &outcome{Message: told[len(told)-1]}})
		}
	}
	s.Out = strings.Join(told, "\n")
	for i := range figures {
		s.add(caseOf(&figures[i]))
	}
	return s
}

func (s *suite) add(c testCase) {
	s.Tests++
	switch {
	case c.Failure != nil:
		s.Failures++
	case c.Error != nil:
		s.Errors++
	case c.Skipped != nil:
		s.Skipped++
	}
	s.Cases = append(s.Cases, c)
}

// theRun returns the case for the outcome of the run.
func theRun(d *Document, h head) testCase {
	c := testCase{Class: h.Experiment, Name: "run", Time: number(float64(h.Elapsed) / 1e9)}
	switch {
	case h.Status == "interrupted" || h.Status == "failed" || h.Status == "cut off":
		c.Error = &outcome{Message: term.Clean("run status: " + h.Status + " " + h.Why)}
	case d.Failed > 0:
		c.Failure = &outcome{Message: fmt.Sprintf("%d of %d attempts failed", d.Failed, d.Total)}
	}
	return c
}

// said returns a finding's code, target and operation.
func said(f record.Finding) string {
	return strings.TrimSpace(f.Code + " " + figure.Of("target", f.Target, "op", f.Op).String())
}

// caseOf returns the case of a figure. It fails if attempts failed and is skipped without a
// value. A figure that is a time sets the time of the case.
func caseOf(n *named) testCase {
	c := testCase{Class: n.Experiment + "." + n.Quantity, Name: n.labels.String(), Time: "0"}
	p := &properties{[]property{{"unit", string(n.Unit)}}}
	add := func(name, value string) {
		if value != "" {
			p.All = append(p.All, property{name, value})
		}
	}
	if n.known() {
		add("value", number(n.Value))
		add("n", fmt.Sprint(n.N))
		if n.Unit == figure.Nanoseconds {
			c.Time = number(n.Value / 1e9)
		}
	}
	if n.bounded() {
		add("lo", number(n.Lo))
		add("hi", number(n.Hi))
	}
	bound, isBound := n.atMost()
	if isBound {
		add("hi", number(bound))
	}
	add("better", string(n.Better))
	add("verdict", term.Clean(n.Verdict))
	c.Properties = p
	reasons := term.Clean(strings.Join(n.Reasons, "; "))
	switch {
	case n.Failed > 0:
		c.Failure = &outcome{Message: fmt.Sprintf("%d of %d attempts failed", n.Failed, n.Total), Text: reasons}
	case !n.known() && !isBound:
		c.Skipped = &outcome{Message: "no value", Text: reasons}
	}
	return c
}
