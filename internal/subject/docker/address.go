package docker

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/docker/go-connections/tlsconfig"
	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/node/procs"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// address is the address of a daemon.
type address struct {
	host   string      // "unix:///var/run/docker.sock", "tcp://…"
	secure *tls.Config // nil for none
	from   string      // its source, for display
}

// find returns the address that the docker command would use: the given one, else DOCKER_HOST,
// the context's, or the default.
func find(e subject.Engine) (address, error) {
	host, context := procs.Flag(e.Args, "-H", "--host"), procs.Flag(e.Args, "-c", "--context")
	switch {
	case e.Address != "":
		return withCertificates(e, address{host: engine.WithScheme(e.Address), from: "as given"})
	case host != "":
		return withCertificates(e, address{host: engine.WithScheme(host), from: "the arguments"})
	case context != "":
		return fromContext(e, context, "the arguments")
	case e.Variable("DOCKER_HOST") != "":
		return withCertificates(e, address{host: engine.WithScheme(e.Variable("DOCKER_HOST")), from: "DOCKER_HOST"})
	case e.Variable("DOCKER_CONTEXT") != "":
		return fromContext(e, e.Variable("DOCKER_CONTEXT"), "DOCKER_CONTEXT")
	}
	name, err := currentContext(e)
	if err != nil {
		return address{}, err
	}
	return fromContext(e, name, "its configuration")
}

// withCertificates loads the certificates of DOCKER_CERT_PATH, as Docker's client does.
func withCertificates(e subject.Engine, a address) (address, error) {
	dir := e.Variable("DOCKER_CERT_PATH")
	if dir == "" || !strings.HasPrefix(a.host, "tcp://") {
		return a, nil
	}
	var err error
	a.secure, err = certificates(dir, e.Variable("DOCKER_TLS_VERIFY") == "")
	return a, err
}

// certificates loads ca.pem, cert.pem and key.pem from a folder. Missing files are omitted.
func certificates(dir string, unverified bool) (*tls.Config, error) {
	there := func(name string) string {
		if path := filepath.Join(dir, name); exists(path) {
			return path
		}
		return ""
	}
	o := tlsconfig.Options{CAFile: there("ca.pem"), CertFile: there("cert.pem"), InsecureSkipVerify: unverified, ExclusiveRootPools: true}
	if o.CertFile != "" {
		o.KeyFile = filepath.Join(dir, "key.pem")
	}
	c, err := tlsconfig.Client(o)
	if err != nil {
		return nil, fmt.Errorf("read the certificates of %s: %w", dir, err)
	}
	return c, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

func configDir(e subject.Engine) string {
	if dir := e.Variable("DOCKER_CONFIG"); dir != "" {
		return dir
	}
	home := e.Variable("HOME")
	if u, err := user.Current(); home == "" && err == nil { // as in a service; never relative to the working folder
		home = u.HomeDir
	}
	return filepath.Join("/", home, ".docker")
}

// currentContext returns the context that `docker context use` chose.
func currentContext(e subject.Engine) (string, error) {
	path := filepath.Join(configDir(e), "config.json")
	var c struct {
		CurrentContext string `json:"currentContext"`
	}
	if err := readJSON(path, &c); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return c.CurrentContext, nil
}

// fromContext reads the endpoint of a context from the docker command's store: contexts/meta and
// contexts/tls, with the SHA-256 of the name as folder.
func fromContext(e subject.Engine, name, from string) (address, error) {
	if name == "" || name == "default" {
		return withCertificates(e, address{host: client.DefaultDockerHost, from: "the default"})
	}
	sum := sha256.Sum256([]byte(name))
	folder := hex.EncodeToString(sum[:])
	path := filepath.Join(configDir(e), "contexts", "meta", folder, "meta.json")
	var c struct {
		Endpoints map[string]struct {
			Host          string
			SkipTLSVerify bool
		}
	}
	if err := readJSON(path, &c); err != nil {
		return address{}, fmt.Errorf("read the context %q (%s): %w", name, from, err)
	}
	end := c.Endpoints["docker"]
	a := address{host: cmp.Or(end.Host, client.DefaultDockerHost), from: fmt.Sprintf("the context %q", name)}
	dir := filepath.Join(configDir(e), "contexts", "tls", folder, "docker")
	if exists(dir) && strings.HasPrefix(a.host, "tcp://") {
		var err error
		a.secure, err = certificates(dir, end.SkipTLSVerify)
		return a, err
	}
	return a, nil
}

// readJSON reads a file of up to 1 MiB.
func readJSON(path string, into any) error {
	text, err := machine.Root("").Read(path, 1<<20)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}
