package engines

import (
	"fmt"
	"path/filepath"
	"strings"
)

// wrapper returns a script that wraps an OCI runtime and changes a bundle's configuration
// before a container is created, or "" if none is needed. It also adds runtime arguments
// that the engine cannot set. The changes are:
//
//   - An older version of the specification: containerd 2 and CRI-O 1.34 write bundles of
//     a newer version than crun 1.8 accepts, although it supports everything in them.
//   - No negative oom_score_adj: CRI sets one for every sandbox, which requires
//     CAP_SYS_RESOURCE. containerd has a setting to avoid it, CRI-O has none.
func wrapper(r ociRuntime, oldSpec, oom bool) string {
	var edits []string
	if oldSpec {
		edits = append(edits, `s/"ociVersion": *"[^"]*"/"ociVersion":"1.0.2"/`)
	}
	if oom {
		edits = append(edits, `s/"oomScoreAdj": *-[0-9]*/"oomScoreAdj":0/`)
	}
	run := "exec " + quote(append([]string{r.path}, r.args...)) + ` "$@"` + "\n"
	switch {
	case len(edits) == 0 && len(r.args) == 0:
		return ""
	case len(edits) == 0:
		return "#!/bin/sh\n" + run
	}
	return fmt.Sprintf(`#!/bin/sh
create= bundle= last=
for arg; do
	case $last in --bundle | -b) bundle=$arg ;; esac
	case $arg in create) create=1 ;; --bundle=*) bundle=${arg#*=} ;; esac
	last=$arg
done
if [ "$create" ]; then sed -i -e %s "${bundle:-.}/config.json"; fi
%s`, quote([]string{strings.Join(edits, ";")}), run)
}

// wrapped writes the required wrappers to an engine's folder and returns the command of
// each runtime.
func wrapped(dir string, runtimes []ociRuntime, oldSpec, oom bool) ([]ociRuntime, error) {
	var out []ociRuntime
	files := map[string]string{}
	for _, r := range runtimes {
		if script := wrapper(r, oldSpec && r.name == "crun", oom); script != "" {
			files[filepath.Join("runtimes", r.name)] = script
			r = ociRuntime{name: r.name, path: filepath.Join(dir, "runtimes", r.name)}
		}
		out = append(out, r)
	}
	return out, write(dir, files)
}
