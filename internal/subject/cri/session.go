package cri

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	api "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/tare-bench/tare/internal/mounts"
	"github.com/tare-bench/tare/internal/node/cgroup"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/batch"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/record"
)

// Open implements subject.Target.
func (t *Target) Open(ctx context.Context, env subject.Env) (subject.Session, error) {
	s := &session{Target: t, env: env, group: groupOf(env), logs: filepath.Join(env.Dir, "log"), held: make([]*held, env.Lanes)}
	for n := range s.held {
		s.held[n] = new(held)
	}
	if err := s.open(ctx); err != nil {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		return nil, t.failed("open", err, s.Close(clean))
	}
	return s, nil
}

type session struct {
	*Target
	env     subject.Env
	conn    *connection
	image   *imported
	pause   *imported // nil if the engine has its own way
	group   string    // cgroup of the target, below which pods have theirs
	logs    string    // folder of the containers' outputs
	volumes *engine.Volumes
	tmpfses *tmpfses
	device  engine.Device
	held    []*held  // by lane
	owed    []string // what calls that were given up may make later
	strays  []*held  // what was discarded since then
}

func (s *session) open(ctx context.Context) error {
	var err error
	if s.conn, err = connect(ctx, s.socket); err != nil {
		return err
	}
	if err := os.MkdirAll(s.logs, 0o755); err != nil {
		return fmt.Errorf("make the folder of the containers' outputs: %w", err)
	}
	if s.facts.cgroups == "cgroupfs" {
		if err := cgroup.Delegate(s.hs, s.group, delegated...); err != nil && !errors.Is(err, cgroup.ErrWithheld) {
			return err
		}
	}
	if err := s.openStorage(); err != nil {
		return err
	}
	if s.pause, err = s.ensurePause(ctx); err != nil {
		return err
	}
	probe, err := image.Probe(s.env.Workload.Files...)
	if err != nil {
		return err
	}
	s.image, err = s.ensure(ctx, probe, nil)
	return err
}

// openStorage makes ready what containers have of the host's.
func (s *session) openStorage() (err error) {
	p := s.program()
	if s.device, err = engine.FindDevice(s.env.Workload, s.handler, p.kind, p.path); err != nil {
		return err
	}
	if s.volumes, err = engine.OpenVolumes(s.env); err != nil {
		return err
	}
	s.tmpfses, err = openTmpfses(s.env, s.socket)
	return err
}

// Prepare implements subject.Session.
func (s *session) Prepare(ctx context.Context, op subject.Op, lanes []int) (subject.Batch, error) {
	if op == subject.RunPod || op == subject.Create || op == subject.Run {
		if err := s.renew(ctx); err != nil {
			return nil, s.failed(string(op), err)
		}
	}
	calls := make([]batch.Call, len(lanes))
	for i, n := range lanes {
		do, err := s.prepare(op, n)
		if err != nil {
			return nil, s.failed(string(op), err)
		}
		calls[i] = batch.Call{Lane: n, Timeout: s.env.Timeout, Command: s.command(op, n), Do: do}
		if op == subject.Stop {
			calls[i].Watch = s.held[n].pid
		}
	}
	b, err := batch.PrepareCalls(calls)
	if err != nil {
		return nil, s.failed(string(op), err)
	}
	b.Warm = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if _, err := s.conn.runtime.Version(ctx, &api.VersionRequest{}); err != nil {
			return s.failed(string(op), fmt.Errorf("the engine does not answer: %w", err))
		}
		return nil
	}
	b.Settle = func(ctx context.Context, samples []record.Sample) { s.settle(ctx, op, samples) }
	return b, nil
}

// Discard implements subject.Session.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	some := false
	for _, n := range lanes {
		if s.held[n].name != "" {
			some = true
			s.let(n)
		}
	}
	if !some {
		return nil
	}
	return s.failed("discard", s.clear(ctx))
}

// let takes from a lane what it holds.
func (s *session) let(n int) {
	if len(s.owed) > 0 {
		s.strays = append(s.strays, s.held[n])
	}
	s.held[n] = new(held)
}

// clear removes the run's pods that no lane holds, whatever is in them. A call
// that was given up may have succeeded late, or may yet: then they are looked
// for until nothing new appears.
func (s *session) clear(ctx context.Context) error {
	late := engine.Late(len(s.owed))
	ctx, cancel := context.WithTimeout(ctx, time.Minute+2*late)
	defer cancel()
	if len(s.owed) > 0 && s.engineName == crioEngine {
		s.reclaim(ctx)
	}
	s.strays = nil
	keep, logs, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, h := range s.held {
		keep[h.pod], logs[s.logFile(h.token)], names[h.name] = true, true, true
	}
	for quiet := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		left, err := s.conn.findOf(ctx, s.env.RunID, keep)
		if len(left.pods)+len(left.containers) > 0 {
			quiet = time.Now()
			err = errors.Join(err, left.remove(ctx, s.conn))
		}
		if err != nil {
			return engine.Owed(s.owed, err)
		}
		if len(s.owed) == 0 || time.Since(quiet) > late {
			s.owed = nil
			break
		}
	}
	there, _ := filepath.Glob(filepath.Join(s.logs, "*"))
	for _, l := range there {
		if !logs[l] {
			os.Remove(l)
		}
	}
	return errors.Join(s.tmpfses.unmountBut(names), s.removeGroups())
}

// reclaim asks CRI-O again for what it was asked for when the calls were given
// up, as a kubelet does: it keeps pods and containers that it had already made
// for that, and tells nobody about them for a minute or two.
func (s *session) reclaim(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 2*patience)
	defer cancel()
	_ = engine.Each(len(s.strays), func(i int) error {
		h := s.strays[i]
		if h.config == nil {
			return nil
		}
		if h.pod == "" {
			insist(ctx, func(ctx context.Context) error {
				reply, err := s.conn.runtime.RunPodSandbox(ctx, &api.RunPodSandboxRequest{Config: h.config, RuntimeHandler: s.handler})
				h.pod = reply.GetPodSandboxId()
				return err
			})
		}
		if h.pod != "" && h.token != "" && h.container == "" {
			insist(ctx, func(ctx context.Context) error {
				_, err := s.conn.runtime.CreateContainer(ctx, &api.CreateContainerRequest{PodSandboxId: h.pod, Config: s.containerConfig(h), SandboxConfig: h.config})
				return err
			})
		}
		return nil
	})
}

// insist asks again while there is no answer. While CRI-O is still at it, it
// answers only when the question is given up, and gives what it made to the
// next one. Its own clock may end the question a little before ours.
func insist(ctx context.Context, do func(ctx context.Context) error) {
	const one = time.Second
	for ctx.Err() == nil {
		try, cancel := context.WithTimeout(ctx, one)
		began := time.Now()
		err := do(try)
		cancel()
		if err == nil || time.Since(began) < one*9/10 {
			return // what it refuses, it has not made
		}
	}
}

// Close implements subject.Session.
func (s *session) Close(ctx context.Context) error {
	var errs []error
	if s.conn != nil {
		for n := range s.held {
			s.let(n)
		}
		errs = append(errs, s.clear(ctx))
		for _, i := range []*imported{s.image, s.pause} {
			if i != nil {
				errs = append(errs, i.release(ctx, s.conn))
			}
		}
		s.conn.close()
	}
	errs = append(errs, cgroup.Remove(s.hs, s.group), s.tmpfses.close(), s.volumes.Close(), mounts.RemoveTree(s.env.StateDir), mounts.RemoveTree(s.env.Dir))
	return s.failed("close", errs...)
}

// Processes implements subject.HelperProcesses.
func (s *session) Processes(context.Context) []subject.Process {
	var ids []string
	for _, h := range s.held {
		ids = append(ids, h.pod, h.container)
	}
	return engine.Helpers(engine.Listeners(s.socket), ids)
}
