package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/tare-bench/tare/internal/core/run"
	"github.com/tare-bench/tare/internal/instrument/app"
	"github.com/tare-bench/tare/internal/instrument/overhead/ledger"
	"github.com/tare-bench/tare/internal/load"
	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/snapshot"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// visit is one target in one round, alone or with a neighbour.
type visit struct {
	*schedule
	turn
	window app.Window
	url    string
	net    *os.File // network namespace for requests; nil: tare's own
}

// failure ends a visit. Its window has no figures, but the run continues.
type failure struct{ record.Failure }

func (f *failure) Error() string { return f.Detail }

// visit executes one visit and always removes its sandboxes. An error ends the run.
func (s *schedule) visit(ctx context.Context, t turn) error {
	v := &visit{schedule: s, turn: t}
	v.window = app.Window{Type: app.TypeWindow, Round: t.Number, Order: t.Order, Target: t.Target.Info.Name, Neighbour: s.beside[t.Part].Name}
	err := v.do(ctx)
	cut := v.discard(ctx)
	if ctx.Err() != nil {
		return nil // the window is incomplete
	}
	if err != nil {
		v.window.Failure = failed(err)
	}
	if err := v.Line(v.window); err != nil {
		return err
	}
	if cut != nil {
		return v.GiveUp(v.Target, record.Finding{Message: fmt.Sprintf("given up in round %d: what it made could not be removed: %v", v.Number+1, cut)})
	}
	return nil
}

// failed converts an error to the form of a record.
func failed(err error) *record.Failure {
	var f *failure
	if errors.As(err, &f) {
		out := f.Failure
		out.Detail = err.Error()
		return &out
	}
	kind := record.FailError
	if errors.Is(err, context.DeadlineExceeded) {
		kind = record.FailTimeout
	}
	return &record.Failure{Kind: kind, Detail: err.Error()}
}

func (v *visit) discard(ctx context.Context) error {
	clean, cancel := run.CleaningUp(ctx, v.options.Plan.Timeout)
	defer cancel()
	err := ownOf(v.Target.Session).Discard(clean, []int{serving})
	if r := roomOf(v.turn); r != nil {
		err = errors.Join(err, r.Discard(clean, []int{r.lane}))
	}
	if v.net != nil {
		v.net.Close()
	}
	return err
}

func (v *visit) do(ctx context.Context) error {
	p := &v.options.Plan
	v.step(fmt.Sprintf("starting, then %v of warm-up and %v of load", p.Warm, p.Duration)) // the only line of the visit in a log
	own := ownOf(v.Target.Session)
	samples, err := subject.Operate(ctx, own, subject.Run, []int{serving})
	if err := started(samples, err); err != nil {
		return fmt.Errorf("the sandbox did not start: %w", err)
	}
	for _, s := range samples {
		v.window.Start, v.window.Unready, v.window.Ready, v.window.First = s.Start, s.Unready, s.Ready, s.Request
	}
	// Loopback in the workload's network namespace is up by now: the readiness check uses it.
	v.url, v.net, err = subject.Asked(own, serving, p.URL)
	if v.window.URL = v.url; err != nil {
		return err
	}
	var beside *noise
	if n := v.beside[v.Part]; n.Name != "" {
		v.step("starting the neighbour")
		if beside, err = v.disturb(ctx, n, neighbourly*(p.Warm+p.Duration+2*p.Answer)+p.Timeout); err != nil {
			return err
		}
		defer beside.end()
	}
	if p.Warm > 0 {
		v.step("warming up")
		if _, err := v.send(ctx, p.Warm); err != nil && !errors.Is(err, load.ErrNoAnswer) { // the window reports missing answers
			return fmt.Errorf("warm up: %w", err)
		}
	}
	v.step("loading")
	err = v.measure(ctx)
	if _, over := subject.Over(ctx, own, []int{serving}); over != nil {
		return &failure{*over} // the cause of any other error
	}
	if err != nil {
		return err
	}
	if beside != nil {
		return beside.over(ctx)
	}
	return nil
}

// neighbourly limits a neighbour's run time, as a multiple of warm-up plus window. A
// neighbour is normally stopped after the window.
const neighbourly = 3

// send runs the load for a duration.
func (v *visit) send(ctx context.Context, d time.Duration) (load.Result, error) {
	c, err := v.clients(ctx, d)
	if err != nil {
		return load.Result{}, err
	}
	result, err := c.Run(ctx)
	return result, errors.Join(err, c.Close())
}

func (v *visit) clients(ctx context.Context, d time.Duration) (*load.Clients, error) {
	p := v.options.Plan.Filled()
	return load.Start(ctx, load.ClientOptions{URL: v.url, Net: v.net, Connections: p.Connections, QPS: p.Rate, KeepAlive: !p.Anew, Duration: d, Timeout: p.Answer})
}

// measure runs the load between two readings of the node.
func (v *visit) measure(ctx context.Context) error {
	own := ownOf(v.Target.Session)
	boxes, err := subject.SandboxesOf(ctx, own)
	if err != nil {
		return err
	}
	var noisy []subject.Sandbox
	if r := roomOf(v.turn); r != nil {
		if noisy, err = subject.SandboxesOf(ctx, r.Session); err != nil {
			return err
		}
	}
	c, err := v.clients(ctx, v.options.Plan.Duration)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }() // the result is known by then
	daemons := subject.DaemonsOf(ctx, own)
	pressed := v.press(boxes, noisy)
	// Include the neighbour's sandboxes, otherwise their processes would count as
	// left behind by a bare runtime.
	all := slices.Concat(boxes, noisy)
	begin := v.options.Meter.Begin(ctx, all, daemons)
	v.window.Begun = machine.Now()
	result, loadErr := c.Run(ctx)
	v.window.Ended = machine.Now()
	if r := roomOf(v.turn); r != nil { // include processes started since; their usage is unknown, not 0
		if late, err := subject.SandboxesOf(ctx, r.Session); err == nil {
			all = slices.Concat(boxes, late)
		}
	}
	end := v.options.Meter.End(ctx, all, daemons)
	v.window.BesideCPU = used(those(begin, isNeighbours), those(end, isNeighbours))
	begin.Reading, end.Reading = *those(begin, isService), *those(end, isService)
	pressed(v.window.Ended - v.window.Begun)
	if loadErr != nil {
		return loadErr
	}
	seen := v.options.Meter.Seen(begin, end, "")
	roles, whole := ledger.CPU(&begin.Reading, &end.Reading)
	seen.CPU = append(seen.CPU, roles...)
	v.window.Sent, v.window.ClientCPU, v.window.CPUPartly, v.window.Seen = &result.Sent, result.CPU, !whole, &seen
	return nil
}

// used returns the CPU time of all of a neighbour's roles. It returns nil if a role is
// unknown or no process is known.
func used(begin, end *record.Reading) *int64 {
	theirs, whole := ledger.CPU(begin, end)
	if !whole || len(theirs) == 0 {
		return nil
	}
	var sum int64
	for _, r := range theirs {
		sum += r.NS
	}
	return &sum
}

// those returns a copy of the edge's reading, reduced to the lanes for which lane returns
// true.
func those(e *snapshot.Edge, lane func(int) bool) *record.Reading {
	r := e.Reading
	r.Processes = slices.DeleteFunc(slices.Clone(r.Processes), func(p record.Process) bool { return !lane(p.Lane) })
	r.Groups = slices.DeleteFunc(slices.Clone(r.Groups), func(g record.Group) bool { return !lane(g.Lane) })
	return &r
}

// Processes shared by all sandboxes, such as a daemon, have no lane and belong to the
// service.
func isService(lane int) bool    { return lane <= serving }
func isNeighbours(lane int) bool { return lane > serving }

// press starts measuring the pressure of the sandboxes' cgroups. The returned function
// ends the measurement: it stores the pressure in the window, or the reason why it is
// unknown. took is the elapsed time in ns.
func (v *visit) press(own, beside []subject.Sandbox) func(took int64) {
	type reading struct {
		pid   int
		total [3]int64
		err   error
	}
	read := func(boxes []subject.Sandbox) (r reading) {
		if len(boxes) == 0 || boxes[0].Workload == 0 || v.options.Pressure == nil {
			return reading{err: errors.New("the target does not report the workload's process")}
		}
		r.pid = boxes[0].Workload
		r.total[0], r.total[1], r.total[2], r.err = v.options.Pressure(r.pid)
		return r
	}
	since := func(boxes []subject.Sandbox, before reading, took int64) (*app.Pressure, string) {
		after := read(boxes)
		if err := cmp.Or(before.err, after.err); err != nil {
			return nil, err.Error()
		}
		share := func(i int) float64 {
			return min(max(float64(after.total[i]-before.total[i])*1000/float64(max(took, 1)), 0), 1)
		}
		return &app.Pressure{CPU: share(0), Memory: share(1), IO: share(2)}, ""
	}
	ownBefore, besideBefore := read(own), read(beside)
	return func(took int64) {
		v.window.Own, v.window.Unpressed = since(own, ownBefore, took)
		if v.window.Neighbour != "" {
			v.window.Beside, v.window.UnpressedBeside = since(beside, besideBefore, took)
		}
	}
}

func (v *visit) step(what string) {
	point := ""
	if n := v.window.Neighbour; n != "" {
		point = "beside " + n
	}
	v.Step(point, v.Target.Info.Name, what)
}
