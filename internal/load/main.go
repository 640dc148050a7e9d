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

// longestLine is the most that is read in one line, in either direction: a result
// with every bin filled has 200 KiB.
const longestLine = 1 << 20

// Main is the part of tare's main that is the load's: where the first argument is
// one of the hidden ones, this process is a client or a server, and code is how it
// ends. It says its errors on stderr. Every program that calls Serve or Start has
// to call it first, before it reads flags.
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

// rename gives this process the name that tools show.
func rename(name string) {
	_ = os.WriteFile("/proc/self/comm", []byte(name), 0) // without it, it is "exe"
}

// read takes one line of JSON, and nothing that it shouldn't have.
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

// write puts one line of JSON.
func write(out io.Writer, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = out.Write(append(b, '\n'))
	return err
}
