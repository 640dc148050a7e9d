package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"
)

// Limits for pages that take long.
const (
	patience  = 10 * time.Second // of a request, before it gets the waiting page
	reload    = 2                // s between reloads of the waiting page
	forgotten = 30 * time.Second // cancel the page after the last request
	mostMade  = 64               // at once, most of them waiting
)

var (
	errMaking = errors.New("the page is being generated: this page reloads until it is ready")
	errBusy   = errors.New("too many pages are being generated: try again later")
)

// making is a page in progress. It continues after its request has timed out, so that the
// next request for the same address can use it.
type making struct {
	done chan struct{}
	text bytes.Buffer
	err  error
	idle *time.Timer // cancels it
}

// produce generates the page of a request's address. Pages of the same lane are generated
// one at a time. It returns errMaking if that takes longer than the site's patience.
func (s *site) produce(r *http.Request, lane chan struct{}, write func(context.Context, *bytes.Buffer) error) (*bytes.Buffer, error) {
	address := r.URL.String()
	s.mu.Lock()
	m := s.makings[address]
	if m == nil && len(s.makings) == mostMade {
		s.mu.Unlock()
		return nil, errBusy
	}
	if m == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
		m = &making{done: make(chan struct{})}
		m.idle = time.AfterFunc(forgotten, func() { cancel(); s.forget(address, m) })
		s.makings[address] = m
		go func() {
			defer cancel()
			defer close(m.done)
			defer func() {
				if p := recover(); p != nil {
					s.Log.Printf("%s: %v\n%s", r.URL.Path, p, debug.Stack())
					m.err = fmt.Errorf("internal error: %v", p)
				}
			}()
			select {
			case lane <- struct{}{}:
				defer func() { <-lane }()
				m.err = write(ctx, &m.text)
			case <-ctx.Done():
				m.err = ctx.Err()
			}
		}()
	}
	m.idle.Reset(forgotten)
	s.mu.Unlock()
	select {
	case <-m.done:
		m.idle.Stop()
		s.forget(address, m)
		return bytes.NewBuffer(m.text.Bytes()), m.err
	case <-time.After(s.patience):
		return nil, errMaking
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (s *site) forget(address string, m *making) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.makings[address] == m {
		delete(s.makings, address)
	}
}
