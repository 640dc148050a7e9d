package cargo

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/opencontainers/go-digest"
	oci "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/tare-bench/tare/internal/probe"
	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// derive writes the user's image with the probe in front of its command. From the image
// it also reads the settings that a container without an engine needs. All layers are
// written uncompressed: engines differ in the compressions that they support, and the
// digest of an uncompressed layer equals its diff ID.
func (c *Cargo) derive(ctx context.Context, img v1.Image, w *setting.Workload) error {
	config, err := img.ConfigFile()
	id, err2 := img.ConfigName()
	if err = cmp.Or(err, err2); err != nil {
		return fmt.Errorf("its configuration: %w", err)
	}
	c.Digest = id.String()
	seen, layers, err := c.takeLayers(ctx, img, config)
	if err != nil {
		return err
	}
	own := w.Image == "" // tare's own image, which has the probe
	if seen.probe && !own {
		return fmt.Errorf("it already has a file %s, where tare puts its probe", probe.Name)
	}
	if c.Process, err = process(&config.Config, w, c.HostEnv, seen.accounts); err != nil {
		return err
	}
	if !own {
		l, err := c.probeLayer(seen)
		if err != nil {
			return err
		}
		layers = append(layers, l)
	}
	c.Image = c.image(config, layers)
	return nil
}

// contents holds the facts about an image's files.
type contents struct {
	probe    bool
	top      map[string]bool // names at the root
	accounts accounts
	members  int
	room     room // for its layers
}

// takeLayers writes the layers to the folder, uncompressed, and examines them.
func (c *Cargo) takeLayers(ctx context.Context, img v1.Image, config *v1.ConfigFile) (*contents, []image.Part, error) {
	all, err := img.Layers()
	if err != nil {
		return nil, nil, fmt.Errorf("its layers: %w", err)
	}
	if len(all) > maxLayers || len(all) != len(config.RootFS.DiffIDs) {
		return nil, nil, fmt.Errorf("it has %d layers, but its configuration has %d: the numbers must be equal and at most %d", len(all), len(config.RootFS.DiffIDs), maxLayers)
	}
	seen := &contents{top: map[string]bool{}, room: roomIn(ctx, c.dir)}
	var parts []image.Part
	for i, l := range all {
		if media, err := l.MediaType(); err != nil || !media.IsDistributable() {
			return nil, nil, fmt.Errorf("its layer %d is missing (%v)", i+1, media)
		}
		p, err := c.takeLayer(l, seen, filepath.Join(c.dir, fmt.Sprintf("layer-%d.tar", i)))
		if err != nil {
			return nil, nil, fmt.Errorf("its layer %d: %w", i+1, err)
		}
		if want := config.RootFS.DiffIDs[i]; p.Digest.String() != want.String() {
			return nil, nil, fmt.Errorf("its layer %d is %s, but its configuration has %s", i+1, p.Digest, want)
		}
		parts = append(parts, p)
	}
	return seen, parts, nil
}

func (c *Cargo) takeLayer(l v1.Layer, seen *contents, file string) (image.Part, error) {
	in, err := l.Uncompressed()
	if err != nil {
		return image.Part{}, err
	}
	defer in.Close()
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return image.Part{}, err
	}
	sum := digest.Canonical.Digester()
	w := io.MultiWriter(&seen.room, sum.Hash(), out)
	err = seen.look(io.TeeReader(in, w))
	if err == nil {
		_, err = io.Copy(w, in) // data after the end of the archive belongs to the layer too
	}
	size, sought := out.Seek(0, io.SeekCurrent)
	if err = errors.Join(err, sought, out.Close()); err != nil {
		return image.Part{}, err
	}
	c.layers = append(c.layers, file)
	return image.Part{Digest: sum.Digest(), Size: size, File: file}, nil
}

// look reads a layer to its end.
func (s *contents) look(in io.Reader) error {
	return walk(s.room.ctx, in, func(h *tar.Header, content io.Reader) error {
		if s.members++; s.members > maxMembers {
			return fmt.Errorf("more than %d files", maxMembers)
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		s.top[strings.SplitN(name, "/", 2)[0]] = true
		switch name {
		case strings.TrimPrefix(probe.Name, "/"):
			s.probe = true
		case "etc/passwd", "etc/group":
			if h.Typeflag == tar.TypeReg {
				text, err := io.ReadAll(io.LimitReader(content, maxAccounts))
				if err != nil {
					return err
				}
				s.accounts.take(path.Base(name), text)
			}
		}
		return nil
	})
}

// probeLayer returns the layer on top of the image, with the probe and the runtimes' mount
// points that the image lacks.
func (c *Cargo) probeLayer(seen *contents) (image.Part, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, dir := range probe.Folders {
		if !seen.top[dir] {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: image.Created}); err != nil {
				return image.Part{}, err
			}
		}
	}
	err := errors.Join(image.WriteFile(w, probe.Name[1:], 0o755, probe.Program(), image.Created), w.Close())
	if err != nil {
		return image.Part{}, err
	}
	file := filepath.Join(c.dir, "layer-probe.tar")
	c.layers = append(c.layers, file)
	return image.Part{Digest: digest.FromBytes(b.Bytes()), Size: int64(b.Len()), File: file}, os.WriteFile(file, b.Bytes(), 0o600)
}

// image builds the derived image. It drops declared volumes, so that their data is in the
// container's root file system: engines differ in how they store volumes. The image's name
// contains the digest of its configuration, and so is the same in every run.
func (c *Cargo) image(base *v1.ConfigFile, layers []image.Part) *image.Image {
	config := oci.Image{
		Created:  &image.Created,
		Platform: oci.Platform{Architecture: platform.Architecture, OS: platform.OS},
		Config: oci.ImageConfig{
			Entrypoint: []string{probe.Name}, Cmd: append([]string{"pause"}, c.Args...), WorkingDir: c.Dir, Env: c.Env,
			User: fmt.Sprintf("%d:%d", c.UID, c.GID), StopSignal: base.Config.StopSignal,
			Labels: image.Labels(),
		},
		RootFS:  oci.RootFS{Type: "layers"},
		History: []oci.History{{Created: &image.Created, CreatedBy: "tare", Comment: "a workload of the user, with tare's probe in front of it"}},
	}
	// Engines require a history entry for every layer.
	config.History = slices.Repeat(config.History, len(layers))
	return image.Assemble(config, layers)
}
