package child

import (
	"io"
	"os"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// stdio holds a command's standard input, output and error.
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
		f.Close() // nil if it was not opened
	}
}

// late is how long to wait for output after a command has ended, while a process that it left
// behind holds the pipes open.
const late = time.Second

// close returns the output.
func (s *stdio) close() (output, stderr string) {
	deadline := time.Now().Add(late)
	return s.out.close(deadline), s.err.close(deadline)
}

// pipe reads until the writers close it, so that they never block. It keeps only the beginning
// of the output.
type pipe struct {
	r, w *os.File
	kept cli.Kept
	done chan struct{}
}

func (p *pipe) open() (err error) {
	if p.r, p.w, err = os.Pipe(); err != nil {
		return err
	}
	p.kept.Most, p.done = subject.MaxOutput, make(chan struct{})
	go func() {
		defer close(p.done)
		_, _ = io.Copy(&p.kept, p.r) // to its end or the deadline
	}()
	return nil
}

func (p *pipe) close(deadline time.Time) string {
	if p.r == nil {
		return ""
	}
	_ = p.r.SetReadDeadline(deadline)
	<-p.done
	p.r.Close()
	return p.kept.String()
}
