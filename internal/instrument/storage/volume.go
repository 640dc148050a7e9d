package storage

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/tare-bench/tare/internal/core/option"

	"github.com/tare-bench/tare/record"
)

// maxSource is the maximum length of a path: PATH_MAX without its NUL.
const maxSource = 4095

var volumeKinds = []string{record.VolumeRootfs, record.VolumeBind, record.VolumeTmpfs, record.VolumeNFS, record.VolumeDevice}

// Volume is a parsed volume.
type Volume struct {
	Name   string // as written
	Kind   string // record.VolumeRootfs, …
	Source string // "server:/path" for nfs, the path of a device, a directory for bind; "" means tare's own
}

// serverName matches a host name or an IPv4 address.
var serverName = Pattern(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)

// ParseVolume parses "rootfs", "bind", "bind=/folder", "tmpfs", "nfs=server:/path" or
// "device=/dev/vdb". An IPv6 address is in brackets: "nfs=[fd00::1]:/path".
func ParseVolume(s string) (Volume, error) {
	kind, source, sourced := strings.Cut(s, "=")
	v := Volume{Name: s, Kind: kind, Source: source}
	var err error
	switch {
	case kind == record.VolumeNFS:
		err = checkExport(source)
	case kind == record.VolumeDevice:
		err = checkDevice(source)
	case kind == record.VolumeBind && sourced:
		err = checkPath(source, "/", "write the path of a directory on the disk, such as bind=/mnt/disk")
	case !slices.Contains(volumeKinds, kind):
		err = errors.New("write rootfs, bind, bind=/folder, tmpfs, nfs=server:/path or device=/dev/…")
	case sourced:
		err = fmt.Errorf("tare creates the %s itself: write %s", kind, kind)
	}
	if err != nil {
		return Volume{}, fmt.Errorf("%s is not a volume: %w", option.Quote(s), err)
	}
	return v, nil
}

func checkExport(source string) error {
	server, folder, ok := strings.Cut(source, ":/")
	if !ok {
		return errors.New("write the server and its export, nfs=server:/path")
	}
	if address, bracketed := strings.CutPrefix(server, "["); bracketed {
		a, err := netip.ParseAddr(strings.TrimSuffix(address, "]"))
		if err != nil || !strings.HasSuffix(address, "]") || !a.Is6() || a.Zone() != "" {
			return fmt.Errorf("%s is not an IPv6 address in brackets", option.Quote(server))
		}
	} else if !serverName().MatchString(server) {
		return fmt.Errorf("%s is not the name or address of a server", option.Quote(server))
	}
	return checkPath("/"+folder, "/", "")
}

// checkDestroyed rejects a name that cannot be that of a device of a volume.
func checkDestroyed(device string) error {
	if err := checkDevice(device); err != nil {
		return fmt.Errorf("%s is not a device: %w", option.Quote(device), err)
	}
	return nil
}

func checkDevice(source string) error {
	return checkPath(source, "/dev/", "write the path of a block device, device=/dev/vdb")
}

// checkPath accepts paths below a directory that fit in a list with commas and in one line
// of a report.
func checkPath(p, below, otherwise string) error {
	switch {
	case !strings.HasPrefix(p, below):
		return errors.New(otherwise)
	case len(p) > maxSource:
		return fmt.Errorf("its path is %d bytes long: at most %d are allowed", len(p), maxSource)
	case strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r == ',' || r > '~' }):
		return fmt.Errorf("the path %s contains a comma, a blank or a non-ASCII character", option.Quote(p))
	case path.Clean(p) != p:
		return fmt.Errorf("the path %s is not in its shortest form: write %s", option.Quote(p), option.Shorten(path.Clean(p)))
	}
	return nil
}

// parseVolumes returns the valid volumes, and the errors of the others.
func parseVolumes(names []string) (volumes []Volume, all option.FieldErrors) {
	for i, name := range names {
		v, err := ParseVolume(name)
		switch {
		case err != nil:
			all = append(all, option.Wrongf("volumes", "%v", err).At(i))
		case slices.ContainsFunc(volumes, func(b Volume) bool { return b.Kind == v.Kind && b.Source == v.Source }):
			all = append(all, option.Wrongf("volumes", "%s is there twice: each volume is measured once", option.Shorten(name)).At(i))
		default:
			volumes = append(volumes, v)
		}
	}
	return volumes, all
}

// Pattern returns a regular expression that is compiled on first use. Compiling the patterns
// of all tools would dominate the start of every command, and few commands need them.
func Pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
