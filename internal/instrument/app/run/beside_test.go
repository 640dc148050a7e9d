package run

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/cargo"
	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/minder"
	"github.com/tare-bench/tare/internal/subject/setting"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/must"
	"github.com/tare-bench/tare/record"
)

// choosy is a target that takes no image but its own; what runs there is a process of
// the test's, whose output comes into a file.
type choosy struct {
	name, takes string
	pid         int
	log         string
}

func (c *choosy) Info() record.Target { return record.Target{Name: c.name, Kind: "fake"} }
func (c *choosy) Refuses(w *setting.Workload) *subject.Unavailable {
	if w.Image == c.takes {
		return nil
	}
	return &subject.Unavailable{Name: c.name, Reason: "it has an image of its own"}
}
func (c *choosy) Open(context.Context, subject.Env) (subject.Session, error) { return c, nil }
func (c *choosy) Prepare(context.Context, subject.Op, []int) (subject.Batch, error) {
	return c, nil
}
func (c *choosy) Start(context.Context) (int64, []record.Sample, error) {
	return 1, []record.Sample{{Lane: 1}}, nil
}
func (c *choosy) Discard(context.Context, []int) error { return nil }
func (c *choosy) Close(context.Context) error          { return nil }
func (c *choosy) Reach(int) subject.Reached {
	return subject.Reached{Pid: c.pid, Log: c.log, Plain: true, Own: func(pid int) bool { return pid == c.pid }}
}
func (c *choosy) Ended(context.Context, int) subject.Ended {
	return subject.Ended{Exit: 137, Known: true}
}

func neighbour(t *testing.T, text string) app.Neighbour {
	t.Helper()
	n := must.Get(app.ParseNeighbour(text))(t)
	return n
}

func TestATargetThatTakesNoImageHasNoRoomForANeighboursAndSaysSo(t *testing.T) {
	all := []subject.Target{&choosy{name: "takes", takes: "redis:7"}, &choosy{name: "none", takes: "x"}}
	found := homeless(neighbour(t, "redis:7"), all)
	if len(found) != 1 || found[0].Target != "none" || !strings.HasSuffix(found[0].Message, ": it has an image of its own") {
		t.Errorf("%+v", found)
	}
	if found := homeless(neighbour(t, "spin 1cpu"), all); found != nil {
		t.Errorf("the probe's neighbour: %+v", found)
	}
	for i, want := range []bool{true, false} {
		s, err := besides(t.Context(), all[i].(*choosy), all[i], subject.Env{}, []app.Neighbour{neighbour(t, "redis:7")}, []subject.Workload{{Cargo: &cargo.Cargo{}}})
		must.OK(t, err)
		if is := s.(*shared).rooms[0] != nil; is != want {
			t.Errorf("%s: a room is %v", all[i].Info().Name, is)
		}
		check.Error(t, s.Close(t.Context()), "")
	}
}

func TestANeighbourThatFloodsItsLogIsEndedAndTheCauseIsSaid(t *testing.T) {
	c := exec.Command("sleep", "1000")
	must.OK(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	in := &choosy{name: "a", pid: c.Process.Pid, log: filepath.Join(t.TempDir(), "log")}
	must.OK(t, os.WriteFile(in.log, nil, 0o600))
	r := must.Get(newRoom(t.Context(), in, subject.Env{}, subject.Workload{Cargo: &cargo.Cargo{}}, 1))(t)
	defer r.Close(t.Context())
	must.OK(t, started(subject.Operate(t.Context(), r, subject.Run, []int{1})))
	x := &noise{in: r}
	must.OK(t, x.over(t.Context()))
	must.OK(t, os.Truncate(in.log, minder.Most(1)))
	_ = c.Wait()
	check.Error(t, x.over(t.Context()), "ended before the window did: its output grew beyond 256 MiB")
}

// filing is a target in which commands are executed: those that lay out end as told, others
// with their context.
type filing struct {
	choosy
	exit int
	ran  chan string
}

func (f *filing) Exec(ctx context.Context, _ int, args []string) (subject.Executed, error) {
	f.ran <- strings.Join(args, " ")
	if !slices.Contains(args, "--create_only=1") {
		<-ctx.Done()
	}
	return subject.Executed{Exit: f.exit}, ctx.Err()
}

func TestANeighboursFileIsLaidOutBeforeItWorks(t *testing.T) {
	for _, exit := range []int{0, 1} {
		in := &filing{exit: exit, ran: make(chan string, 2)}
		s := &schedule{options: Options{FioPath: "/fio", Plan: app.Options{Timeout: time.Minute}}}
		v := &visit{schedule: s, turn: turn{Part: 1, Target: &run.Target[subject.Session]{Session: &shared{Session: in, rooms: []*room{{in, 1}}}}}}
		x, err := v.disturb(t.Context(), neighbour(t, "storage randread"), time.Hour)
		if first := <-in.ran; !strings.Contains(first, " --rw=randread ") || !strings.HasSuffix(first, " --create_only=1") {
			t.Errorf("first it runs %s", first)
		}
		if exit != 0 {
			if err == nil || err.Error() != "the neighbour's file was not laid out: exit status 1" || len(in.ran) > 0 {
				t.Errorf("%v, then %d commands more", err, len(in.ran))
			}
			continue
		}
		must.OK(t, err)
		if then := <-in.ran; strings.Contains(then, "create_only") || !strings.Contains(then, " --direct=1 ") {
			t.Errorf("then it runs %s", then)
		}
		x.end()
	}
}
