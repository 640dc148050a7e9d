package load

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// The hidden arguments with which tare is executed again.
const (
	verbServer = "-load-server"
	verbClient = "-load-client"
)

const longestLine = 1 << 20 // bytes; a result with all bins has 200 KiB

// Main runs a client or a server if the first argument is a hidden one, and returns the exit
// code. Errors go to stderr. A program that calls Serve or Start must call Main first, before
// it parses flags.
func Main(args []string) (code int, handled bool) {
	if len(args) == 0 {
		return 0, false
	}
	verbs := map[string]func(*bufio.Reader, io.Writer) error{verbServer: serve, verbClient: send}
	verb, handled := verbs[args[0]]
	if !handled {
		return 0, false
	}
	in := bufio.NewReaderSize(os.Stdin, longestLine)
	if err := verb(in, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1, true
	}
	return 0, true
}

// rename sets the name of this process, which is "exe" otherwise.
func rename(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
}

// read reads one line of JSON without unknown fields.
func read(in *bufio.Reader, to any) error {
	line, err := in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return fmt.Errorf("a line of more than %d KiB", longestLine>>10)
	}
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something after the object")
	}
	return nil
}

// write writes one line of JSON.
func write(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}
