package engines

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// network configures a bridge in the engine's network namespace, for pods that use the
// network, followed by the requested plugins. It returns the configuration files and the
// folder of the plugins.
func (o options) network(dir string) (files map[string]string, bin string, err error) {
	bin = cniPlugins
	var more strings.Builder
	for _, p := range o.plugins {
		fmt.Fprintf(&more, ", {\"type\": %q}", p.name)
	}
	if len(o.plugins) > 0 {
		if bin, err = o.beside(dir); err != nil {
			return nil, "", err
		}
	}
	return map[string]string{"cni/10-tare.conflist": fmt.Sprintf(`{
  "cniVersion": "0.4.0",
  "name": "tare",
  "plugins": [{
    "type": "bridge",
    "bridge": "tare0",
    "isGateway": true,
    "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.85.0.0/16"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": %q}
  }%s]
}
`, filepath.Join(dir, "ipam"), &more)}, bin, nil
}

// beside creates a folder of the machine's plugins and the requested ones, because an
// engine accepts only one folder.
func (o options) beside(dir string) (string, error) {
	all, err := filepath.Glob(filepath.Join(cniPlugins, "*"))
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "plugins")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return "", err
	}
	for _, p := range o.plugins {
		all = append(all, p.path)
	}
	for i, path := range all {
		name := filepath.Base(path)
		if own := i - (len(all) - len(o.plugins)); own >= 0 {
			name = o.plugins[own].name
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			return "", err
		}
	}
	return bin, nil
}
