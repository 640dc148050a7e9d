package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/instrument/terms"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/find"
	"github.com/tare-bench/tare/internal/term"
	"github.com/tare-bench/tare/internal/workspace"
)

// trial is the timeout for starting one workload, including the load of its image.
const trial = time.Minute

// tryAll starts a workload on each available target and removes it. It returns the result
// of each target, or nil if none could be tried. The error lists leftovers.
func tryAll(ctx context.Context, s *app, found []find.Found, engines terms.Engines) (map[string]error, error) {
	targets := present(found)
	own, err := workspace.New(workspace.DefaultRoots())
	if err != nil {
		return nil, err
	}
	if err := keepEngines(own, targets, engines); err != nil {
		return nil, errors.Join(err, own.Close())
	}
	tried, left := map[string]error{}, error(nil)
	for _, t := range targets {
		if ctx.Err() != nil {
			break
		}
		name := t.Info().Name
		fmt.Fprintln(s.Err, "tare: trying "+term.Clean(name))
		var closed error
		tried[name], closed = tryOne(ctx, own, t)
		left = errors.Join(left, closed)
	}
	if left != nil {
		own.Leave()
		return tried, fmt.Errorf("%w; run: tare clean", left)
	}
	return tried, errors.Join(ctx.Err(), own.Close())
}

func tryOne(ctx context.Context, own *workspace.Run, t subject.Target) (ran, closed error) {
	info := t.Info()
	data, state, err := own.Dirs(info.Name)
	if err != nil {
		return err, nil
	}
	bounded, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	session, err := t.Open(bounded, subject.Env{RunID: own.ID, Dir: data, StateDir: state, Lanes: 1, Timeout: trial, Limits: subject.DefaultLimits})
	if err != nil {
		return err, nil
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*trial)
		defer cancel()
		closed = errors.Join(session.Discard(clean, []int{0}), session.Close(clean))
	}()
	samples, err := subject.Operate(bounded, session, subject.Run, []int{0})
	if err != nil {
		return err, nil
	}
	if f := samples[0].Failure; f != nil {
		return errors.New(strings.TrimSpace(f.Detail + "\n" + f.Output)), nil
	}
	return nil, nil
}
