package option

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Limits of a plan file. The YAML parser takes quadratic time in the number of keys and in the
// nesting, so both are checked before parsing.
const (
	maxSize   = 1 << 20
	maxTokens = 20_000
	maxNested = 32
)

var top = Place{Line: 1, Column: 1}

func misplace(at Place, format string, arguments ...any) error {
	return &FieldError{Place: at, Message: fmt.Sprintf(format, arguments...)}
}

// ReadFile returns the text of a plan file. It reads at most one byte more than the limit.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w; give the path of a plan file", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read the plan: %w; give the path of a plan file", err)
	}
	return text, nil
}

// parseDocument returns the single document of a YAML text. Errors are of type *FieldError.
func parseDocument(text []byte) (ast.Node, error) {
	if len(text) > maxSize {
		return nil, misplace(top, "the plan is larger than 1 MiB: split it, or check that it is a plan file")
	}
	text = bytes.TrimPrefix(text, []byte("\uFEFF"))
	if err := checkText(text); err != nil {
		return nil, err
	}
	tokens := lexer.Tokenize(string(text))
	if err := checkTokens(tokens); err != nil {
		return nil, err
	}
	// Duplicate keys are reported later, with a better message.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, syntaxError(err)
	}
	return onlyDocument(file)
}

func checkText(text []byte) error {
	for i, r := range string(text) {
		if r != 0 && (r != utf8.RuneError || bytes.HasPrefix(text[i:], []byte("\uFFFD"))) {
			continue
		}
		line := text[bytes.LastIndexByte(text[:i], '\n')+1 : i]
		at := Place{Line: 1 + bytes.Count(text[:i], []byte("\n")), Column: 1 + utf8.RuneCount(line)}
		return misplace(at, "the byte 0x%02x is not text: a plan is written in UTF-8", text[i])
	}
	return nil
}

// notPlan are the YAML features that plans do not use. Without them the parsed plan cannot be
// larger than its file.
var notPlan = map[token.Type]string{
	token.AnchorType:     "an anchor (&): write the value out where it is needed",
	token.AliasType:      "an alias (*): write the value out; quote text that begins with *",
	token.TagType:        "a tag (!): leave it out; quote text that begins with !",
	token.MergeKeyType:   "a merge key (<<): write the fields out",
	token.MappingKeyType: "an explicit key (?): write key: value",
	token.DirectiveType:  "a directive (%): leave it out; quote text that begins with %",
}

func checkTokens(tokens token.Tokens) error {
	count, nested, dashes, line := 0, 0, 0, 0
	for _, t := range tokens {
		at := tokenPlace(t)
		if what, ok := notPlan[t.Type]; ok {
			return misplace(at, "plans do not use %s", what)
		}
		if at.Line != line {
			dashes, line = 0, at.Line
		}
		switch t.Type {
		case token.CommentType:
			continue
		case token.SequenceStartType, token.MappingStartType:
			nested++
		case token.SequenceEndType, token.MappingEndType:
			nested--
		case token.SequenceEntryType:
			dashes++
		}
		if nested+dashes > maxNested {
			return misplace(at, "lists are nested more than %d deep here: a plan needs three", maxNested)
		}
		if count++; count > maxTokens {
			return misplace(at, "the plan has more than %d words and signs up to here: split it, or check that it is a plan file", maxTokens)
		}
	}
	return nil
}

// syntaxError converts an error of the parser. It keeps the position and the message, but not the
// excerpt of the file.
func syntaxError(err error) error {
	known, ok := errors.AsType[yaml.Error](err)
	if !ok || known.GetToken() == nil {
		return misplace(top, "the plan is not YAML: %v", err)
	}
	return misplace(tokenPlace(known.GetToken()), "the plan is not YAML here: %s; check the indentation and the signs before it", known.GetMessage())
}

func onlyDocument(file *ast.File) (ast.Node, error) {
	const begin = "a plan begins with version: 1 and has a list named measure"
	if len(file.Docs) == 0 || (len(file.Docs) == 1 && file.Docs[0].Body == nil) {
		return nil, misplace(top, "the plan is empty: %s", begin)
	}
	if len(file.Docs) > 1 {
		second := file.Docs[1]
		at := top
		if second.Start != nil {
			at = tokenPlace(second.Start)
		} else if second.Body != nil {
			at = placeOf(second.Body)
		}
		return nil, misplace(at, "a second document begins here: a file has one plan; move the other to another file")
	}
	return file.Docs[0].Body, nil
}

// placeOf returns the start of a value. The parser's token of a mapping is the colon after the
// first key.
func placeOf(node ast.Node) Place {
	switch n := node.(type) {
	case *ast.MappingNode:
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return placeOf(n.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return placeOf(n.Key)
	}
	return tokenPlace(node.GetToken())
}

func tokenPlace(t *token.Token) Place {
	if t == nil || t.Position == nil {
		return top
	}
	return Place{Line: max(t.Position.Line, 1), Column: max(t.Position.Column, 1)}
}
