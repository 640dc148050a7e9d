package child

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/subject"
)

// stdio is what a command has for standard input, output and error.
type stdio struct {
	null     *os.File
	out, err pipe
}

func open() (*stdio, error) {
	s := &stdio{}
	var err error
	s.null, err = os.Open(os.DevNull)
	if err == nil {
		err = s.out.open()
	}
	if err == nil {
		err = s.err.open()
	}
	if err != nil {
		s.started()
		s.close()
		return nil, err
	}
	return s, nil
}

// started closes the command's ends.
func (s *stdio) started() {
	for _, f := range []*os.File{s.null, s.out.w, s.err.w} {
		if f != nil {
			f.Close()
		}
	}
}

// late is how long is waited for output after a command's end, when something
// that it left behind still has its pipes.
const late = time.Second

// close returns what was read.
func (s *stdio) close() (output, stderr string) {
	deadline := time.Now().Add(late)
	return s.out.close(deadline), s.err.close(deadline)
}

// pipe is read from until it is closed.
type pipe struct {
	r, w *os.File
	kept []byte
	done chan struct{}
}

func (p *pipe) open() (err error) {
	if p.r, p.w, err = os.Pipe(); err != nil {
		return err
	}
	p.done = make(chan struct{})
	go p.read()
	return nil
}

// read keeps the first of it and swallows the rest, so that nobody who writes
// has to wait.
func (p *pipe) read() {
	defer close(p.done)
	b := make([]byte, 32<<10)
	for {
		n, err := p.r.Read(b)
		p.kept = append(p.kept, b[:min(n, subject.MaxOutput-len(p.kept))]...)
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrDeadlineExceeded) {
				p.kept = append(p.kept, "\n(the rest could not be read: "+err.Error()+")"...)
			}
			return
		}
	}
}

func (p *pipe) close(deadline time.Time) string {
	if p.r == nil {
		return ""
	}
	_ = p.r.SetReadDeadline(deadline)
	<-p.done
	p.r.Close()
	return string(p.kept)
}
