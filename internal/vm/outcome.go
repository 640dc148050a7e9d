package vm

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// read takes the results apart. It is an error if a command has none.
func (o *Outcome) read(results []byte, commands []Command) error {
	o.Exits, o.Files = map[string]int{}, map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(results)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("its results of %d bytes are broken: %w", len(results), err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		text, err := io.ReadAll(r)
		if err != nil {
			return fmt.Errorf("its results of %d bytes are broken: %w", len(results), err)
		}
		o.Files[path.Clean(header.Name)] = text
	}
	for _, c := range commands {
		text, ok := o.Files[c.Name+".exit"]
		if !ok {
			return fmt.Errorf("the command %s has not ended", c.Name)
		}
		code, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return fmt.Errorf("the end of the command %s: %w", c.Name, err)
		}
		o.Exits[c.Name] = code
	}
	return nil
}

// Output is what a command wrote, for the message of a failed test.
func (o *Outcome) Output(name string) string {
	return fmt.Sprintf("%s exited with %d\n%s%s", name, o.Exits[name], tail(string(o.Files[name+".stdout"]), 8000), tail(string(o.Files[name+".stderr"]), 8000))
}
