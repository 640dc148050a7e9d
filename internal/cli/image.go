package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tare-bench/tare/internal/image"
	probeimage "github.com/tare-bench/tare/internal/probe/image"
)

// imageFlags are the flags of tare image.
type imageFlags struct {
	output, name, certificates string
	binaries                   []string
	push, probe                bool
}

func newImage(s *app) *cobra.Command {
	var f imageFlags
	c := &cobra.Command{
		Use:   "image -o FILE.tar|FOLDER",
		Short: "Build tare's own container image, without Docker",
		Long: `Build tare's own container image: FROM scratch, with this program as its entry point,
an empty /tmp, and nothing else. -o FOLDER writes an OCI image layout, with a bill of
materials (CycloneDX) for each program that refers to the image. -o FILE.tar writes an
archive for docker load, podman load and ctr images import. --push pushes everything to the
registry of --name, with the credentials of docker login or podman login.

This program is for one architecture. --binary adds the program for the other, which must
be of the same commit; make image builds both. The same programs give the same digests,
since all timestamps are those of the commit or of SOURCE_DATE_EPOCH. The first line of the
output has the digest of the index, which is what cosign signs.

--probe writes the image of the measured workload instead of tare's own, for this
machine's architecture. Nodes of a cluster on which tare does not run need it.`,
		Example: "  tare image -o tare.tar --binary linux/amd64=tare-amd64 --binary linux/arm64=tare-arm64",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.probe {
				return f.writeProbe(s.Out)
			}
			i, err := f.make(s.Err)
			if err != nil {
				return err
			}
			if err := f.write(i); err != nil {
				return err
			}
			fmt.Fprintf(s.Out, "index        %s  %s\n", i.Index.Digest, i.Name)
			for _, m := range i.Platforms {
				fmt.Fprintf(s.Out, "%-11s  %s\n", m.Platform.OS+"/"+m.Platform.Architecture, m.Digest)
			}
			if f.push {
				if err := i.Push(c.Context()); err != nil {
					return err
				}
				fmt.Fprintf(s.Out, "pushed; to sign it: cosign sign %s\n", i.Signed)
			}
			return nil
		},
	}
	flags := c.Flags()
	flags.StringVarP(&f.output, "output", "o", "", "FILE.tar or a FOLDER to write")
	flags.StringArrayVar(&f.binaries, "binary", nil, "linux/ARCH=FILE: program for an architecture, amd64 or arm64 (default: this program)")
	flags.StringVar(&f.name, "name", "", "name of the image, REGISTRY/REPOSITORY:TAG (default localhost/tare:VERSION)")
	flags.StringVar(&f.certificates, "ca-certificates", "", "file with trusted certificates (PEM), such as /etc/ssl/certs/ca-certificates.crt, for HTTPS outside the cluster")
	flags.BoolVar(&f.push, "push", false, "push it to the registry of --name")
	flags.BoolVar(&f.probe, "probe", false, "write the workload's image instead of tare's own")
	return c
}

// writeProbe writes the image of the workload and prints its name.
func (f *imageFlags) writeProbe(out io.Writer) error {
	if !strings.HasSuffix(f.output, ".tar") || f.push || f.name != "" || f.binaries != nil || f.certificates != "" {
		return errors.New("image: --probe needs -o FILE.tar and accepts no other flag")
	}
	i, err := probeimage.Probe()
	if err != nil {
		return err
	}
	content, err := i.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if err := f.save(func(w io.Writer) error {
		_, err := io.Copy(w, content)
		return err
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, i.Ref)
	return nil
}

// make builds the image and warns about missing architectures.
func (f *imageFlags) make(warn io.Writer) (*image.Image, error) {
	switch {
	case f.output == "" && !f.push:
		return nil, errors.New("image: missing output: add -o FILE.tar, -o FOLDER or --push")
	case f.push && f.name == "":
		return nil, errors.New("image: --push needs --name REGISTRY/REPOSITORY:TAG")
	}
	o := image.Options{Name: f.name, Certificates: f.certificates}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseUint(epoch, 10, 33)
		if err != nil {
			return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %q is not a number of seconds since 1970", epoch)
		}
		o.Created = time.Unix(int64(seconds), 0)
	}
	binaries, err := f.open()
	if err != nil {
		return nil, err
	}
	if len(binaries) == 1 {
		other := map[string]string{"amd64": "arm64", "arm64": "amd64"}[binaries[0].Arch]
		fmt.Fprintf(warn, "only for %s: for %s nodes, build tare (GOARCH=%s CGO_ENABLED=0 go build ./cmd/tare) and add --binary linux/%s=FILE, or run make image\n",
			binaries[0].Arch, other, other, other)
	}
	return image.New(o, binaries...)
}

// open opens the given binaries, and this program if no binary has its architecture.
func (f *imageFlags) open() ([]*image.Binary, error) {
	var all []*image.Binary
	own := true
	for _, given := range f.binaries {
		platform, path, found := strings.Cut(given, "=")
		arch, linux := strings.CutPrefix(platform, "linux/")
		if !found || !linux || path == "" {
			return nil, fmt.Errorf("--binary %s: write linux/amd64=FILE or linux/arm64=FILE", given)
		}
		b, err := image.Open(path)
		if err != nil {
			return nil, fmt.Errorf("--binary %s: %w", given, err)
		}
		if b.Arch != arch {
			return nil, fmt.Errorf("--binary %s: its ELF header is for linux/%s", given, b.Arch)
		}
		own = own && arch != runtime.GOARCH
		all = append(all, b)
	}
	if !own {
		return all, nil
	}
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	self, err := image.Open(path)
	if err != nil {
		return nil, fmt.Errorf("this program: %w; add another with --binary linux/%s=FILE", err, runtime.GOARCH)
	}
	return append(all, self), nil
}

func (f *imageFlags) write(i *image.Image) error {
	if f.output == "" {
		return nil
	}
	if err := refuseForeignLink(f.output); err != nil {
		return err
	}
	if !strings.HasSuffix(f.output, ".tar") {
		return i.WriteFolder(f.output)
	}
	return f.save(i.WriteTar)
}

// save writes the image's file and never replaces one.
func (f *imageFlags) save(write func(io.Writer) error) error {
	err := makeWhole(f.output, 0o644, renameNew, write)
	if errors.Is(err, os.ErrExist) {
		err = fmt.Errorf("%s exists and is not overwritten; move it away or give another path", f.output)
	}
	return err
}
