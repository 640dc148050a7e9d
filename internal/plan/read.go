package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// reading walks a document, fills in values and collects what is wrong.
type reading struct {
	file     string
	mistakes Mistakes
}

func (r *reading) report(at place, format string, arguments ...any) {
	r.mistakes = append(r.mistakes, &Mistake{r.file, at.line, at.column, fmt.Sprintf(format, arguments...)})
}

// field is a key of a mapping and what is done with its value.
type field struct {
	name   string
	empty  bool // may be without a value
	hidden bool // is refused, with more to say than that it is not known
	read   func(ast.Node)
}

// fields reads a mapping and returns the keys that were there.
func (r *reading) fields(what string, node ast.Node, known []field) (found map[string]place) {
	found = make(map[string]place)
	mapping, ok := node.(ast.MapNode)
	if !ok {
		r.report(placeOf(node), "%s is %s: write its fields below it, each as name: value; the fields are %s", what, describe(node), names(known))
		return found
	}
	for entries := mapping.MapRange(); entries.Next(); {
		name, at := scalarText(entries.Key()), placeOf(entries.Key())
		if before, again := found[name]; again {
			r.report(at, "%s is there twice, first in line %d: keep one of them", quote(name), before.line)
			continue
		}
		found[name] = at
		r.field(what, name, at, entries.Value(), known)
	}
	return found
}

func (r *reading) field(what, name string, at place, value ast.Node, known []field) {
	for _, f := range known {
		if f.name != name {
			continue
		}
		if _, null := value.(*ast.NullNode); null && !f.empty {
			r.report(at, "%s has no value: write one, or leave the line out", name)
			return
		}
		f.read(value)
		return
	}
	r.report(at, "unknown field %s in %s: the fields are %s", quote(name), what, names(known))
}

// items calls read for each item of a list.
func (r *reading) items(what string, node ast.Node, read func(ast.Node)) {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		r.report(placeOf(node), "%s: %s is not a list: write [a, b], or a line with - for each", what, describe(node))
		return
	}
	for _, item := range list.Values {
		read(item)
	}
}

func (r *reading) text(what string, node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	r.report(placeOf(node), "%s: %s is not text: write text, in quotes if it looks like something else", what, describe(node))
	return "", false
}

// number reads a whole number. YAML's other forms of it (0x10, 010, 1_000)
// mean different things to different readers and are refused.
func number[T int | int64 | uint64](r *reading, what string, node ast.Node, parse func(string) (T, error)) (T, bool) {
	raw := scalarText(node)
	n, err := parse(raw)
	_, text := node.(*ast.StringNode)
	_, whole := node.(*ast.IntegerNode)
	digits := strings.TrimLeft(raw, "+-")
	leadingZero := len(digits) > 1 && digits[0] == '0'
	switch {
	case errors.Is(err, strconv.ErrRange): // to YAML, too many digits are text
		r.report(placeOf(node), "%s: %s is too large", what, shorten(raw))
	case text:
		r.report(placeOf(node), "%s: %s is text: write a whole number, without quotes", what, quote(raw))
	case err != nil && whole && raw[0] == '-':
		r.report(placeOf(node), "%s: %s is below 0", what, shorten(raw))
	case err != nil || !whole || leadingZero:
		r.report(placeOf(node), "%s: %s is not a whole number in decimal digits", what, describe(node))
	default:
		return n, true
	}
	return 0, false
}

func decimal(s string) (int64, error)        { return strconv.ParseInt(s, 10, 64) }
func naturalNumber(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

func (r *reading) duration(what string, node ast.Node) (time.Duration, bool) {
	return scalar(r, what, node, parseDuration)
}

// scalar reads a value that has a form of its own, whatever YAML takes it for.
func scalar[T any](r *reading, what string, node ast.Node, parse func(string) (T, error)) (T, bool) {
	var none T
	if _, ok := node.(ast.ScalarNode); !ok {
		r.report(placeOf(node), "%s: %s is not a single value", what, describe(node))
		return none, false
	}
	value, err := parse(scalarText(node))
	if err != nil {
		r.report(placeOf(node), "%s: %v", what, err)
		return none, false
	}
	return value, true
}

// scalarText is what was written, before YAML made a number of it.
func scalarText(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	}
	if t := node.GetToken(); t != nil {
		return t.Value
	}
	return ""
}

func describe(node ast.Node) string {
	switch node.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return quote(scalarText(node))
	}
	return shorten(scalarText(node))
}

func names(fields []field) string {
	var all []string
	for _, f := range fields {
		if !f.hidden {
			all = append(all, f.name)
		}
	}
	return strings.Join(all, ", ")
}
