package fake

import (
	"context"
	"errors"
	"testing"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

func started(t *testing.T, tg *Target) subject.Session {
	t.Helper()
	tg.Script = func(subject.Op, int, int) (int64, *record.Failure) { return 1, nil }
	s := must.Get(tg.Open(t.Context(), subject.Env{Lanes: 3}))(t)
	b := must.Get(s.Prepare(t.Context(), subject.Run, []int{0, 2}))(t)
	_, _, err := b.Start(t.Context())
	must.OK(t, err)
	return s
}

func TestDefaultCommandsSucceedWithoutStatistics(t *testing.T) {
	s := started(t, &Target{Name: "x"})
	if e, err := s.(subject.Executor).Exec(t.Context(), 2, []string{"/probe", "a b"}); err != nil || e.Exit != 0 || e.Command != "fake exec ID /probe 'a b'" {
		t.Errorf("%+v, %v", e, err)
	}
	for _, n := range []int{-1, 1, 3} {
		_, err := s.(subject.Executor).Exec(t.Context(), n, []string{"/probe"})
		check.That(t, err != nil, "a command ran on the empty lane %d", n)
	}
	boxes, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	check.That(t, err == nil && len(boxes) == 2 && boxes[0].Lane == 0 && boxes[1].Lane == 2 && boxes[0].IDs[0] != boxes[1].IDs[0],
		"%+v, %v", boxes, err)
	list, err := s.(subject.Reporter).Statistics(t.Context())
	check.That(t, err == nil && list == nil, "%+v, %v", list, err)
}

func TestScriptDefinesTheInside(t *testing.T) {
	no := errors.New("no")
	s := started(t, &Target{
		Name: "x",
		OnExec: func(_ context.Context, lane int, _ []string) (subject.Executed, error) {
			return subject.Executed{Exit: lane}, nil
		},
		OnSandbox: func(b *subject.Sandbox) error {
			if b.Workload = 100 + b.Lane; b.Lane > 1 {
				return no
			}
			return nil
		},
		OnStatistics: func(_ context.Context, lanes []int) ([]record.Statistic, error) {
			return []record.Statistic{{Lane: lanes[1], Memory: 7}}, nil
		},
	})
	check.Equal(t, "exit", must.Get(s.(subject.Executor).Exec(t.Context(), 2, []string{"/probe"}))(t).Exit, 2)
	_, err := s.(subject.Sandboxed).Sandboxes(t.Context())
	check.Is(t, err, no)
	list, err := s.(subject.Reporter).Statistics(t.Context())
	check.That(t, err == nil && len(list) == 1 && list[0].Lane == 2 && list[0].Memory == 7, "%+v, %v", list, err)
}

func TestScriptDefinesTheVolumes(t *testing.T) {
	no := errors.New("no")
	tg := &Target{Name: "x", OnOpen: func(env subject.Env) error {
		if env.Workload.Device != "" {
			return no
		}
		return nil
	}}
	s, err := tg.Open(t.Context(), subject.Env{Workload: subject.Workload{Tmpfs: 1}})
	check.That(t, err == nil && s != nil, "%v, %v", s, err)
	s, err = tg.Open(t.Context(), subject.Env{Workload: subject.Workload{Device: "/dev/x"}})
	check.That(t, errors.Is(err, no) && s == nil, "%v, %v", s, err)
}
