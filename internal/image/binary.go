package image

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/opencontainers/go-digest"

	"github.com/tare-bench/tare/internal/node/machine"
	layout "github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/version"
)

const (
	module  = "github.com/tare-bench/tare"
	command = module + "/cmd/tare"
	largest = 512 << 20 // maximum size of a file in bytes
)

// architectures are the supported architectures.
var architectures = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}

// Binary is a tare program for one architecture.
type Binary struct {
	Arch    string // as Go names it
	path    string
	content []byte
	info    *debug.BuildInfo
}

// Open reads a tare program for an empty image. It checks the ELF headers and the build
// information, and rejects other programs and dynamically linked ones.
func Open(path string) (*Binary, error) {
	b := &Binary{path: path}
	var err error
	if b.content, err = read(path); err != nil {
		return nil, err
	}
	if err := b.identify(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// certificates reads a file of certificates, if one is given.
func certificates(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	content, err := read(path)
	if err == nil && bytes.Contains(content, []byte("PRIVATE KEY-----")) {
		return nil, fmt.Errorf("%s: it contains a private key, which everyone with the image could read: give a file with only certificates", path)
	}
	if err == nil && !x509.NewCertPool().AppendCertsFromPEM(content) {
		err = fmt.Errorf("%s: it contains no PEM certificate", path)
	}
	return content, err
}

func read(path string) ([]byte, error) {
	content, err := machine.ReadPlain(path, 0, largest+1)
	if err == nil && len(content) > largest {
		err = fmt.Errorf("%s is larger than %d MiB", path, largest>>20)
	}
	return content, err
}

func (b *Binary) identify() error {
	file, err := elf.NewFile(bytes.NewReader(b.content))
	if err != nil {
		return fmt.Errorf("not an ELF program: %w", err)
	}
	arch, known := architectures[file.Machine]
	if !known || file.Class != elf.ELFCLASS64 || file.Data != elf.ELFDATA2LSB {
		return fmt.Errorf("it is for %s (%s, %s); tare supports amd64 and arm64", file.Machine, file.Class, file.Data)
	}
	b.Arch = arch
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it is dynamically linked, but the image has no loader: build with CGO_ENABLED=0, as make does")
		}
	}
	if b.info, err = buildinfo.Read(bytes.NewReader(b.content)); err != nil {
		return fmt.Errorf("it has no Go build information: %w", err)
	}
	if b.info.Path != command {
		return fmt.Errorf("it is %s, not tare (%s)", b.info.Path, command)
	}
	if built := b.setting("GOOS") + "/" + b.setting("GOARCH"); built != "linux/"+arch {
		return fmt.Errorf("it was built for %s, but its ELF header is for %s", built, arch)
	}
	return nil
}

func (b *Binary) setting(key string) string {
	for _, s := range b.info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

// version returns the version of the source tree. If go build recorded none, as in an
// unpacked archive, it returns the version of the running tare.
func (b *Binary) version() string {
	if v := version.Of(b.info); v != version.Unknown {
		return v
	}
	return version.String()
}

// commit returns the version of a binary and, if recorded, its commit.
func (b *Binary) commit() string {
	s := b.version()
	if r := b.setting("vcs.revision"); r != "" {
		s += ", commit " + r
	}
	return s
}

// made returns the time of the commit, or a zero time if it is unknown.
func (b *Binary) made() time.Time {
	t, _ := time.Parse(time.RFC3339, b.setting("vcs.time"))
	return t
}

// layer returns the compressed root file system and the digest of its uncompressed form. It
// contains the program, a folder for temporary files, and the certificates, if any.
// Runtimes create the mount points.
func (b *Binary) layer(at time.Time, certificates []byte) (packed []byte, unpacked digest.Digest, err error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out) // not the standard library's, whose output may change between Go versions
	plain := digest.Canonical.Digester()
	w := tar.NewWriter(io.MultiWriter(zip, plain.Hash()))
	err = errors.Join(
		folder(w, "tmp/", 0o1777, at),
		layout.WriteFile(w, Program[1:], 0o755, b.content, at),
	)
	if certificates != nil {
		err = errors.Join(err, folder(w, "etc/", 0o755, at), folder(w, "etc/ssl/", 0o755, at), folder(w, "etc/ssl/certs/", 0o755, at),
			layout.WriteFile(w, "etc/ssl/certs/ca-certificates.crt", 0o644, certificates, at))
	}
	err = errors.Join(err, w.Close(), zip.Close())
	return out.Bytes(), plain.Digest(), err
}

func folder(w *tar.Writer, name string, mode int64, at time.Time) error {
	return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, ModTime: at})
}
