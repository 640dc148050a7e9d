package plan

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
)

// places are where each field's value stands: the value itself, and behind it
// the items of a list. What a list's mappings hold is under [partKey].
type places map[string][]place

func (p places) of(c complaint, otherwise place) place {
	at := p[c.field]
	part := p[partKey(c.field, c.index, c.part)]
	switch {
	case len(part) > 0:
		return part[0]
	case c.index >= 0 && c.index+1 < len(at):
		return at[c.index+1]
	case len(at) > 0:
		return at[0]
	}
	return otherwise
}

// partKey names a field of a mapping in a list: "jobs.0.bs".
func partKey(field string, index int, part string) string {
	return fmt.Sprintf("%s.%d.%s", field, index, part)
}

// set keeps the default where a value cannot be read, so that one mistake is
// reported once.
func set[T any](at places, name string, node ast.Node, into *T, read func(string, ast.Node) (T, bool)) {
	if value, ok := read(name, node); ok {
		*into = value
		at[name] = []place{placeOf(node)}
	}
}

func setList[T any](r *reading, at places, name string, node ast.Node, into *[]T, read func(string, ast.Node) (T, bool)) {
	before := len(r.mistakes)
	values, where := []T{}, []place{placeOf(node)}
	r.items(name, node, func(item ast.Node) {
		if value, ok := read(name, item); ok {
			values, where = append(values, value), append(where, placeOf(item))
		}
	})
	if len(values) > 0 || len(r.mistakes) == before {
		*into, at[name] = values, where
	}
}

// setSome reads a list of texts that a record leaves out when it is empty.
func setSome(r *reading, at places, name string, node ast.Node, into *[]string) {
	if setList(r, at, name, node, into, r.text); len(*into) == 0 {
		*into = nil
	}
}
