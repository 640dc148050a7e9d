package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// driver implements engine.Driver through the API.
type driver struct {
	*Target
	image *image.Image // with the files that the run carries
	env   subject.Env
}

// Look implements engine.Driver.
func (d *driver) Look(ctx context.Context, names []string) (map[string]engine.State, error) {
	known := map[string]engine.State{}
	var mu sync.Mutex
	err := engine.Each(len(names), func(i int) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		found, err := d.ContainerInspect(ctx, names[i], client.ContainerInspectOptions{})
		c := found.Container
		switch {
		case cerrdefs.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("inspect: %w", d.plain(err))
		case strings.TrimPrefix(c.Name, "/") != names[i] || c.ID == "" || c.State == nil:
			return fmt.Errorf("inspect of %s answered for container %q", names[i], c.Name)
		}
		mu.Lock()
		defer mu.Unlock()
		known[names[i]] = d.state(names[i], &c)
		return nil
	})
	return known, err
}

func (d *driver) state(name string, c *container.InspectResponse) engine.State {
	s := engine.State{
		Name: name, ID: c.ID, Said: string(c.State.Status), Pid: c.State.Pid, Exit: c.State.ExitCode,
		Why: c.State.Error, OOMKilled: c.State.OOMKilled, Remote: !d.local, Status: engine.Other,
	}
	if c.HostConfig != nil {
		s.Runtime = c.HostConfig.Runtime
	}
	if c.HostConfig != nil && c.HostConfig.LogConfig.Type == "json-file" && d.local {
		s.Log = c.LogPath
	}
	if c.NetworkSettings != nil {
		for _, n := range c.NetworkSettings.Networks {
			if n != nil && n.IPAddress.IsValid() {
				s.Address = n.IPAddress.String()
			}
		}
	}
	switch {
	case c.State.Status == container.StateRunning && c.State.Running:
		s.Status = engine.Running
	case c.State.Status == container.StateCreated:
		s.Status = engine.Created
	case c.State.Status == container.StateExited && !c.State.Running:
		s.Status = engine.Exited
	}
	return s
}

// Output implements engine.Driver.
func (d *driver) Output(ctx context.Context, containers []engine.State) (string, error) {
	said := make([]string, len(containers))
	err := engine.Each(len(containers), func(i int) (err error) {
		said[i], err = d.log(ctx, containers[i].ID)
		return err
	})
	return strings.Join(said, ""), err
}

// log returns up to 64 KiB of a container's output. If the log driver keeps no readable log, Docker
// answers 501; before 20.10 it answered 500 with the text that is compared here.
func (d *driver) log(ctx context.Context, id string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := d.ContainerLogs(ctx, id, client.ContainerLogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil && (cerrdefs.IsNotImplemented(err) || strings.Contains(err.Error(), "does not support reading")) {
		return "", fmt.Errorf("%w: %w", subject.ErrUnsupported, err)
	}
	if err != nil {
		return "", fmt.Errorf("logs: %w", d.plain(err))
	}
	defer r.Close()
	var text strings.Builder
	_ = engine.Unframe(io.LimitReader(r, 64<<10), &text, &text) // the log may be cut off
	return text.String(), nil
}

// list returns the daemon's containers of the run, by name.
func (d *driver) list(ctx context.Context) (map[string]container.Summary, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := d.ContainerList(ctx, client.ContainerListOptions{All: true,
		Filters: client.Filters{}.Add("label", engine.RunLabel+"="+d.env.RunID)})
	if err != nil {
		return nil, fmt.Errorf("list the run's containers: %w", d.plain(err))
	}
	out := make(map[string]container.Summary, len(found.Items))
	for _, item := range found.Items {
		if item.Labels[engine.RunLabel] != d.env.RunID { // the filter was ignored
			continue
		}
		for _, name := range item.Names {
			if name = strings.TrimPrefix(name, "/"); engine.OfRun(name, d.env.RunID) {
				out[name] = item
			}
		}
	}
	return out, nil
}

// List implements engine.Driver. It returns containers that have both the run's label and one of
// the run's names.
func (d *driver) List(ctx context.Context) ([]string, error) {
	found, err := d.list(ctx)
	return slices.Collect(maps.Keys(found)), err
}

// removeTimeout bounds the forced removal of a batch's containers. A daemon on a busy machine takes
// about 100 ms for each.
const removeTimeout = 2 * time.Minute

// Remove implements engine.Driver. The daemon refuses while a container is starting.
func (d *driver) Remove(ctx context.Context, names []string) error {
	found, err := d.list(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removeTimeout)
	defer cancel()
	return engine.Each(len(names), func(i int) error {
		c, there := found[names[i]]
		if !there {
			return nil
		}
		_, err := d.ContainerRemove(ctx, c.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return fmt.Errorf("remove %s: %w", names[i], d.plain(err))
		}
		return nil
	})
}

// imagePatience bounds the removal of an image.
const imagePatience = time.Minute

// Import implements engine.Driver. It pulls nothing: any other image under the name is an error.
func (d *driver) Import(ctx context.Context) (made bool, err error) {
	has, err := d.hasImage(ctx)
	if has || err != nil {
		return false, err
	}
	ctx, cancel := engine.Loading(ctx)
	defer cancel()
	archive, err := d.image.Open()
	if err != nil {
		return false, fmt.Errorf("read the image %s: %w", d.image.Ref, err)
	}
	defer archive.Close()
	reply, err := d.ImageLoad(ctx, archive, client.ImageLoadWithQuiet(true))
	if err != nil {
		return true, fmt.Errorf("load the image %s: %w", d.image.Ref, d.plain(err))
	}
	defer reply.Close()
	said, err := loadReply(reply)
	if err == nil {
		has, err = d.hasImage(ctx)
	}
	if err == nil && !has {
		err = fmt.Errorf("the daemon does not list it after the load, which reported %q", said)
	}
	if err != nil {
		return true, fmt.Errorf("load the image %s: %w", d.image.Ref, err)
	}
	return true, nil
}

// hasImage reports whether the image is there. Another image with its name is an error.
func (d *driver) hasImage(ctx context.Context) (bool, error) {
	i := d.image
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := d.ImageInspect(ctx, i.Ref)
	id := "sha256:" + strings.TrimPrefix(found.ID, "sha256:") // Podman omits the prefix
	switch {
	case cerrdefs.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the image %s: %w", i.Ref, d.plain(err))
	// The id is that of the configuration in the classic store, and of the manifest in
	// containerd's.
	case id != i.ID && id != i.Digest:
		return false, fmt.Errorf("%s is another image (%s, expected %s): docker rmi %s", i.Ref, found.ID, i.ID, i.Ref)
	}
	return true, nil
}

// loadReply reads the messages of a load. The status 200 may be followed by an error message.
func loadReply(r io.Reader) (said string, err error) {
	messages := json.NewDecoder(io.LimitReader(r, 1<<20))
	for {
		var m struct {
			Stream string `json:"stream"`
			Error  string `json:"error"`
		}
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return said, nil
		case err != nil:
			return said, fmt.Errorf("unreadable reply: %w", err)
		case m.Error != "":
			return said, errors.New(m.Error)
		}
		if said += m.Stream; len(said) > 1024 {
			said = said[:1024]
		}
	}
}

// Drop implements engine.Driver.
func (d *driver) Drop(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, imagePatience)
	defer cancel()
	_, err := d.ImageRemove(ctx, ref, client.ImageRemoveOptions{PruneChildren: true})
	if err == nil || cerrdefs.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("remove the image %s: %w", ref, d.plain(err))
}

// Images implements engine.Driver.
func (d *driver) Images(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	found, err := d.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("label", engine.ImageFilter)})
	if err != nil {
		return nil, fmt.Errorf("list the workload's images: %w", d.plain(err))
	}
	var refs []string
	for _, i := range found.Items {
		refs = append(refs, engine.OwnImages(i.RepoTags, d.env.RunID)...)
	}
	slices.Sort(refs)
	return slices.Compact(refs), nil
}

// Clean implements subject.Cleaner.
func (t *Target) Clean(ctx context.Context, runID string, dryRun bool) ([]string, error) {
	defer t.http.CloseIdleConnections()
	return engine.Clean(ctx, &driver{Target: t, env: subject.Env{RunID: runID}}, t.name, "container", runID, dryRun)
}
