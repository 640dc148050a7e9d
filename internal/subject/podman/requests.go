package podman

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
	"github.com/tare-bench/tare/internal/subject/engine/cli"
)

// requests is podman's API as a session uses it. It implements cli.Engine.
type requests struct {
	*Service
	image *image.Image // with the files that the run carries
	env   subject.Env
}

// several is how many requests that are not measured are under way at once.
const several = 8

func each(names []string, do func(i int, name string) error) error {
	errs := make([]error, len(names))
	var wait sync.WaitGroup
	slots := make(chan struct{}, several)
	for i, name := range names {
		slots <- struct{}{}
		wait.Go(func() {
			errs[i] = do(i, name)
			<-slots
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

// Look implements cli.Engine.
func (r *requests) Look(ctx context.Context, names []string) (map[string]cli.State, error) {
	states := make([]cli.State, len(names))
	err := each(names, func(i int, name string) error {
		out, err := r.client.call(ctx, http.MethodGet, "/containers/"+name+"/json", nil)
		if notFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		var c inspected
		if err := json.Unmarshal(out, &c); err != nil {
			return fmt.Errorf("the service describes container %s by no JSON object: %w", name, err)
		}
		states[i], err = c.state()
		return err
	})
	known := map[string]cli.State{}
	for _, s := range states {
		if slices.Contains(names, s.Name) {
			known[s.Name] = s
		}
	}
	return known, err
}

// Output implements cli.Engine. Files are read; what is kept elsewhere, the
// service is asked for.
func (r *requests) Output(ctx context.Context, containers []cli.State) (string, error) {
	var text strings.Builder
	var ask []string
	for _, s := range containers {
		if said, err := readLog(s.Log); err == nil {
			text.WriteString(said)
		} else {
			ask = append(ask, s.Name)
		}
	}
	said := make([]string, len(ask))
	err := each(ask, func(i int, name string) error {
		out, err := r.client.call(ctx, http.MethodGet, "/containers/"+name+"/logs", url.Values{"stdout": {"true"}, "stderr": {"true"}})
		said[i] = unframed(out)
		return err
	})
	text.WriteString(strings.Join(said, ""))
	return text.String(), err
}

// unframed takes the output out of frames; of one that is cut off, what is there.
func unframed(b []byte) string {
	var text strings.Builder
	_ = engine.Unframe(bytes.NewReader(b), &text, &text)
	return text.String()
}

// List implements cli.Engine, as that of commands.
func (r *requests) List(ctx context.Context) ([]string, error) {
	names, err := r.list(ctx, url.Values{"all": {"true"}, "external": {"true"}})
	return slices.DeleteFunc(names, func(name string) bool { return !engine.OfRun(name, r.env.RunID) }), err
}

// list names the containers that a query asks for.
func (s *Service) list(ctx context.Context, query url.Values) ([]string, error) {
	out, err := s.client.call(ctx, http.MethodGet, "/containers/json", query)
	if err != nil {
		return nil, err
	}
	var all []struct {
		Names []string `json:"Names"`
	}
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("the service lists its containers by no JSON list: %w", err)
	}
	var names []string
	for _, c := range all {
		names = append(names, c.Names...)
	}
	return names, nil
}

// Remove implements cli.Engine.
func (r *requests) Remove(ctx context.Context, names []string) error { return r.remove(ctx, names) }

func (s *Service) remove(ctx context.Context, names []string) error {
	ctx, cancel := context.WithTimeout(ctx, removing)
	defer cancel()
	return each(names, func(_ int, name string) error {
		_, err := s.client.call(ctx, http.MethodDelete, "/containers/"+name, url.Values{"force": {"true"}, "timeout": {"0"}})
		if notFound(err) {
			return nil
		}
		return err
	})
}

// Import implements cli.Engine.
func (r *requests) Import(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	switch id, err := r.imageID(ctx); {
	case err == nil && id == r.image.ID:
		return false, nil
	case err != nil && !notFound(err):
		return false, fmt.Errorf("look for the workload's image: %w", err)
	}
	load := request(ctx, http.MethodPost, r.client.path("/images/load"), r.image.Archive)
	load.Header.Set("Content-Type", "application/x-tar")
	if _, err := r.client.do(ctx, load, http.StatusOK); err != nil {
		return false, fmt.Errorf("import the workload's image: %w", err)
	}
	id, err := r.imageID(ctx)
	if err == nil && id != r.image.ID {
		err = fmt.Errorf("%s is image %s now, not %s", r.image.Ref, id, r.image.ID)
	}
	if err != nil {
		return true, fmt.Errorf("import the workload's image: the service reported success, but: %w", err)
	}
	return true, nil
}

func (r *requests) imageID(ctx context.Context) (string, error) {
	out, err := r.client.call(ctx, http.MethodGet, "/images/"+r.image.Ref+"/json", nil)
	if err != nil {
		return "", err
	}
	var i struct {
		ID string `json:"Id"`
	}
	err = json.Unmarshal(out, &i)
	return "sha256:" + strings.TrimPrefix(i.ID, "sha256:"), err
}

// Drop implements cli.Engine.
func (r *requests) Drop(ctx context.Context) error { return r.drop(ctx, r.image.Ref) }

func (r *requests) drop(ctx context.Context, ref string) error {
	_, err := r.client.call(ctx, http.MethodDelete, "/images/"+ref, nil)
	if err != nil && !notFound(err) {
		return fmt.Errorf("remove the workload's image: %w", err)
	}
	return nil
}
