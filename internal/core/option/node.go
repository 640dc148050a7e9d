package option

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// reading collects the mistakes of one document.
type reading struct {
	file     string
	mistakes FieldErrors
}

// Node is a value in a plan file.
type Node struct {
	r      *reading
	yaml   ast.Node
	field  string // name in error messages
	path   string // key for places
	prefix string // prefix of the names of its fields in error messages
	places places
}

// places maps the paths of values to their positions: "jobs", "jobs.2", "jobs.2.bs".
type places map[string]Place

// of returns the place of a path or of its nearest known ancestor.
func (p places) of(path string, otherwise Place) Place {
	for path != "" {
		if at, ok := p[path]; ok {
			return at
		}
		path = path[:max(strings.LastIndexByte(path, '.'), 0)]
	}
	return otherwise
}

// Parse parses a single YAML or JSON document and passes it to read. It returns all mistakes as
// [FieldErrors], including those that read reports.
func Parse(file string, text []byte, read func(Node)) error {
	r := &reading{file: file}
	document, err := parseDocument(text)
	if err == nil {
		read(Node{r: r, yaml: document, places: places{}})
	}
	if one, ok := errors.AsType[*FieldError](err); ok {
		one.Place.File = file
		return FieldErrors{one}
	} else if err != nil || len(r.mistakes) == 0 {
		return err
	}
	return r.mistakes.sorted()
}

func (n Node) report(at Place, field, format string, arguments ...any) {
	at.File = n.r.file
	n.r.mistakes = append(n.r.mistakes, &FieldError{Field: field, Place: at, Message: fmt.Sprintf(format, arguments...)})
}

// Wrong reports a mistake in the value.
func (n Node) Wrong(format string, arguments ...any) {
	n.report(placeOf(n.yaml), n.field, format, arguments...)
}

// Plainly reports a mistake without the field name.
func (n Node) Plainly(format string, arguments ...any) {
	n.report(placeOf(n.yaml), "", format, arguments...)
}

// Null reports whether the node is null.
func (n Node) Null() bool { _, ok := n.yaml.(*ast.NullNode); return ok }

// Mapping reports whether the node is a mapping.
func (n Node) Mapping() bool { _, ok := n.yaml.(ast.MapNode); return ok }

// List reports whether the node is a list.
func (n Node) List() bool { _, ok := n.yaml.(*ast.SequenceNode); return ok }

// Clean reports whether read runs without reporting a mistake.
func (n Node) Clean(read func()) bool {
	before := len(n.r.mistakes)
	read()
	return len(n.r.mistakes) == before
}

// found stores the place of the value for later checks.
func (n Node) found() { n.places[n.path] = placeOf(n.yaml) }

// Entry is a key of a mapping with its value.
type Entry struct {
	Key   string
	Value Node
	key   ast.Node
}

// Wrong reports a mistake in the key.
func (e Entry) Wrong(format string, arguments ...any) {
	e.Value.report(placeOf(e.key), "", format, arguments...)
}

// Found stores the place of the key for a path.
func (e Entry) Found(path string) { e.Value.places[path] = placeOf(e.key) }

// Entries returns the entries of a mapping without duplicate keys. If the node is not a mapping,
// it reports a mistake with advice.
func (n Node) Entries(what, advice string) []Entry {
	mapping, ok := n.yaml.(ast.MapNode)
	if !ok {
		n.Plainly("%s is %s: %s", what, n.Describe(), advice)
		return nil
	}
	var all []Entry
	for entries := mapping.MapRange(); entries.Next(); {
		e := Entry{Key: scalarText(entries.Key()), key: entries.Key()}
		e.Value = Node{r: n.r, yaml: entries.Value(), field: e.Key, places: n.places}
		if before := slices.IndexFunc(all, func(b Entry) bool { return b.Key == e.Key }); before >= 0 {
			e.Wrong("%s is there twice, first in line %d: keep one of them", Quote(e.Key), placeOf(all[before].key).Line)
			continue
		}
		all = append(all, e)
	}
	return all
}

// Items returns the items of a list.
func (n Node) Items() (items []Node, ok bool) {
	list, ok := n.yaml.(*ast.SequenceNode)
	if !ok {
		n.Wrong("%s is not a list: write [a, b], or a line with - for each", n.Describe())
		return nil, false
	}
	for _, item := range list.Values {
		items = append(items, Node{r: n.r, yaml: item, field: n.field, path: n.path, places: n.places})
	}
	return items, true
}

// at returns a copy of the node with the path of an item.
func (n Node) at(index int) Node {
	n.path = fmt.Sprintf("%s.%d", n.path, index)
	return n
}

// text returns the value if its YAML type is text.
func (n Node) text() (string, bool) {
	switch v := n.yaml.(type) {
	case *ast.StringNode:
		return v.Value, true
	case *ast.LiteralNode:
		return v.Value.Value, true
	}
	n.Wrong("%s is not text: write text, in quotes if it looks like something else", n.Describe())
	return "", false
}

// Bool returns the value if it is a boolean.
func (n Node) Bool() (bool, bool) {
	if b, ok := n.yaml.(*ast.BoolNode); ok {
		return b.Value, true
	}
	n.Wrong("%s is neither true nor false", n.Describe())
	return false, false
}

// whole parses an integer. It rejects other YAML notations (0x10, 010, 1_000), because parsers
// disagree on their meaning.
func whole[T int | int64 | uint64](n Node, parse func(string) (T, error)) (T, bool) {
	raw := scalarText(n.yaml)
	value, err := parse(raw)
	_, text := n.yaml.(*ast.StringNode)
	_, integer := n.yaml.(*ast.IntegerNode)
	digits := strings.TrimLeft(raw, "+-")
	leadingZero := len(digits) > 1 && digits[0] == '0'
	switch {
	case errors.Is(err, strconv.ErrRange): // YAML parses a number with too many digits as text
		n.Wrong("%s is too large", Shorten(raw))
	case text:
		n.Wrong("%s is text: write a whole number, without quotes", Quote(raw))
	case err != nil && integer && raw[0] == '-':
		n.Wrong("%s is below 0", Shorten(raw))
	case err != nil || !integer || leadingZero:
		n.Wrong("%s is not a whole number in decimal digits", n.Describe())
	default:
		return value, true
	}
	return 0, false
}

// Scalar parses a value with its own syntax, independent of YAML types.
func Scalar[T any](n Node, parse func(string) (T, error)) (T, bool) {
	var none T
	if _, ok := n.yaml.(ast.ScalarNode); !ok {
		n.Wrong("%s is not a single value", n.Describe())
		return none, false
	}
	value, err := parse(scalarText(n.yaml))
	if err != nil {
		n.Wrong("%v", err)
		return none, false
	}
	return value, true
}

// scalarText returns the text of a value as written in the file.
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

// Describe describes the value for error messages.
func (n Node) Describe() string {
	switch n.yaml.(type) {
	case ast.MapNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "nothing"
	case *ast.StringNode, *ast.LiteralNode:
		return Quote(scalarText(n.yaml))
	}
	return Shorten(scalarText(n.yaml))
}
