package option

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// FieldError is a mistake in an option, with its place.
type FieldError struct {
	Field   string // name in a plan file: "rounds", "limits.memory"; "" if there is none
	Place   Place
	Message string

	path string // path of the wrong value: "jobs.2.bs"
}

// Place is a flag or a position in a file. It is empty for options set by a program.
type Place struct {
	Flag         string // "--rounds"; "TARGET" for an argument
	File         string
	Line, Column int // starting at 1; columns in characters
}

// Error returns the message with its place in front: the flag, or the position in the form that
// editors and terminals make clickable.
func (e *FieldError) Error() string {
	switch {
	case e.Place.Flag != "":
		return e.Place.Flag + ": " + e.Message
	case e.Place.File != "":
		return fmt.Sprintf("%s:%d:%d: %s", e.Place.File, e.Place.Line, e.Place.Column, e.named())
	}
	return e.named()
}

func (e *FieldError) named() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// Wrongf returns a mistake in a field of a plan.
func Wrongf(field, format string, arguments ...any) *FieldError {
	return &FieldError{Field: field, path: field, Message: fmt.Sprintf(format, arguments...)}
}

// WrongFlag returns a mistake in a flag that plan files do not have.
func WrongFlag(flag, format string, arguments ...any) *FieldError {
	return &FieldError{Place: Place{Flag: "--" + flag}, Message: fmt.Sprintf(format, arguments...)}
}

// At narrows the mistake to an item of a list.
func (e *FieldError) At(index int) *FieldError {
	e.path += "." + strconv.Itoa(index)
	return e
}

// Of narrows the mistake to a part of the value.
func (e *FieldError) Of(part string) *FieldError {
	e.path += "." + part
	return e
}

// In converts the mistake in an item to a mistake in its list.
func (e *FieldError) In(list string, index int, name string) *FieldError {
	return &FieldError{Field: list, path: fmt.Sprintf("%s.%d.%s", list, index, e.path), Message: Quote(name) + ": " + e.named()}
}

// FieldErrors are all mistakes, in the order of the file or of the options.
type FieldErrors []*FieldError

func (all FieldErrors) sorted() FieldErrors {
	slices.SortStableFunc(all, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(a.Place.Line, b.Place.Line), cmp.Compare(a.Place.Column, b.Place.Column))
	})
	return all
}

const shownMistakes = 20

// Error returns one line per mistake.
func (all FieldErrors) Error() string {
	var lines []string
	for _, e := range all[:min(len(all), shownMistakes)] {
		lines = append(lines, e.Error())
	}
	if rest := len(all) - len(lines); rest > 0 {
		file := ""
		if all[0].Place.File != "" {
			file = all[0].Place.File + ": "
		}
		lines = append(lines, fmt.Sprintf("%sand %d more mistakes", file, rest))
	}
	return strings.Join(lines, "\n")
}

// Unwrap allows errors.As to find a *FieldError.
func (all FieldErrors) Unwrap() []error {
	var out []error
	for _, e := range all {
		out = append(out, e)
	}
	return out
}
