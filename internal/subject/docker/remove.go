package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// A container that somebody asked for who did not wait for the answer is waited
// for: the daemon goes on making it, and many of them one after the other.
const (
	lateness     = 3 * time.Second
	lateForEach  = 100 * time.Millisecond
	mostLateness = 20 * time.Second
)

// removal is how long the forced removal of a batch's containers may take: a
// daemon on a busy machine takes some 100 ms for each.
const (
	removal  = 2 * time.Minute
	stubborn = 30 * time.Second // after which one that stays is not tried again
)

// Discard implements subject.Session. A container is known by the run's label
// and a name that this session gave: one of another owner that has the name is
// let be.
func (s *session) Discard(ctx context.Context, lanes []int) error {
	wanted := map[string]bool{}
	late := 0
	for name, d := range s.owed {
		if slices.Contains(lanes, d.lane) {
			wanted[name] = true
			if d.late && !d.waited {
				late++
			}
		}
	}
	for _, n := range lanes {
		s.holds[n] = holding{}
	}
	if len(wanted) == 0 {
		return nil
	}
	if err := s.discard(ctx, wanted, late); err != nil {
		return fmt.Errorf("target %s: %w", s.name, err)
	}
	return nil
}

// discard removes what is wanted. With late ones, that many, it waits for those
// that are not there yet.
func (s *session) discard(ctx context.Context, wanted map[string]bool, late int) error {
	deadline := time.Now().Add(min(lateness+time.Duration(late)*lateForEach, mostLateness))
	for {
		found, err := s.list(ctx, s.env.RunID)
		if err != nil {
			return err
		}
		maps.DeleteFunc(found, func(name string, _ container.Summary) bool { return !wanted[name] })
		if err := s.remove(ctx, s.env.RunID, found); err != nil {
			return err
		}
		for name := range wanted {
			if _, was := found[name]; was || !s.owed[name].late {
				delete(s.owed, name)
				delete(wanted, name)
			}
		}
		if len(wanted) == 0 || late == 0 || time.Now().After(deadline) {
			for name := range wanted { // Close looks for it again
				s.owed[name].waited = true
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// remove removes containers by force and makes sure that they are gone. One
// whose start is still under way is refused for as long: it is tried again.
func (c *connection) remove(ctx context.Context, runID string, found map[string]container.Summary) error {
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	left := slices.Sorted(maps.Keys(found))
	for began := time.Now(); len(left) > 0; {
		errs := make([]error, len(left))
		each(len(left), func(i int) {
			_, err := c.ContainerRemove(ctx, found[left[i]].ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
			if err != nil && !cerrdefs.IsNotFound(err) {
				errs[i] = fmt.Errorf("remove %s: %w", left[i], c.plain(err))
			}
		})
		now, err := c.list(ctx, runID)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		left = slices.DeleteFunc(left, func(name string) bool { return now[name].ID != found[name].ID })
		if len(left) > 0 && (time.Since(began) > stubborn || ctx.Err() != nil) {
			return errors.Join(fmt.Errorf("still there: %s; remove them with docker rm -f", strings.Join(left, ", ")), errors.Join(errs...), ctx.Err())
		}
		if len(left) > 0 {
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

// overdue is an error that names the containers which the daemon may yet make. A
// docker command that was ended may never have asked for one: what has not come
// of it by now is not expected.
func (s *session) overdue() error {
	if s.command != nil {
		return nil
	}
	var names []string
	for name, d := range s.owed {
		if d.late {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	const most = 10
	list := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		list += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Errorf("target %s: nobody waited for the daemon's answer, so that it may yet make %s; tare clean removes what comes", s.name, list)
}

// Close implements subject.Session. That a container may come into being after
// it is an error.
func (s *session) Close(ctx context.Context) error {
	lanes := make([]int, len(s.holds))
	for i := range lanes {
		lanes[i] = i
	}
	err := s.Discard(ctx, lanes)
	err = errors.Join(err, s.overdue())
	if s.pool != nil {
		s.pool.Close()
		s.pool = nil
	}
	if s.loaded {
		err = errors.Join(err, s.dropImage(ctx, s.image.Ref))
		s.loaded = false
	}
	err = errors.Join(err, s.places.Close())
	s.http.CloseIdleConnections()
	return err
}

// Clean implements subject.Cleaner. The image is removed when no container uses
// it, whichever run loaded it: a run that goes on loads it again.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	defer t.http.CloseIdleConnections()
	found, err := t.list(ctx, runID)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", t.name, err)
	}
	var what []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		what = append(what, "container "+name)
	}
	idle, err := t.idleImages(ctx, found)
	for _, ref := range idle {
		what = append(what, "image "+ref)
	}
	if err == nil && !dryRun {
		err = t.remove(ctx, runID, found)
		for _, ref := range idle {
			if err == nil {
				err = t.dropImage(ctx, ref)
			}
		}
	}
	if err != nil {
		return what, fmt.Errorf("target %s: %w", t.name, err)
	}
	return what, nil
}

// idleImages are the workload's images, that of the probe alone and those with
// files beside it, which no other containers use than those that are about to be
// removed.
func (t *Target) idleImages(ctx context.Context, leaving map[string]container.Summary) ([]string, error) {
	refs, err := t.ownImages(ctx)
	if err != nil || len(refs) == 0 {
		return nil, err
	}
	goes := map[string]bool{}
	for _, c := range leaving {
		goes[c.ID] = true
	}
	var idle []string
	for _, ref := range refs {
		bounded, cancel := context.WithTimeout(ctx, patience)
		users, err := t.ContainerList(bounded, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("ancestor", ref)})
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list the users of %s: %w", ref, t.plain(err))
		}
		if !slices.ContainsFunc(users.Items, func(c container.Summary) bool { return !goes[c.ID] }) {
			idle = append(idle, ref)
		}
	}
	return idle, nil
}
