package terms

import (
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/tare-bench/tare/internal/core/option"
	"github.com/tare-bench/tare/internal/subject/setting"
)

// Workload declares the user's program, which replaces the probe's sleep. The flag --image is shared
// with clusters. With a cluster among the targets it sets the cluster's image, unless it is an archive
// or --pull is set.
func Workload(s *option.Set, whom *Whom, w *setting.Workload) {
	option.Var(s, w, "workload", "your own program instead of the probe: an image, with the probe in front of its command", workloadKind, option.OmitEmpty)
	var f struct {
		pull                bool
		command, host, user string
		env, mounts         []string
	}
	many := option.Repeated(option.ListOf(option.TextOf[string]()))
	option.Bool(s, &f.pull, "", "pull the image of --image", option.Flag("pull"))
	option.Text(s, &f.command, "", "command of the workload, instead of the image's; words may be quoted as in a shell", option.Flag("command"))
	option.Text(s, &f.host, "", "command to run on the host instead of the image (default: the host is skipped)", option.Flag("host-command"))
	option.Var(s, &f.env, "", "environment variable of the workload, NAME=VALUE, or NAME for its current value; can be repeated. Records contain names only", many, option.Flag("env"))
	option.Var(s, &f.mounts, "", "bind mount a directory or file into every container, SOURCE:DESTINATION[:ro]; can be repeated", many, option.Flag("mount"))
	option.Text(s, &f.user, "", "user of the workload, USER[:GROUP], as names in the image or numbers", option.Flag("user"))
	s.Before(func(context.Context) error {
		if s.Given("image") && (!slices.ContainsFunc(whom.Targets, ofCluster) || s.Given("pull") || whom.isArchive()) {
			if w.Image == "" {
				w.Command, w.HostCommand = nil, nil // remove the plan's command, which is for tare's own image
			}
			w.Image = whom.takeImage()
		}
		for flag, words := range map[string]struct {
			from string
			into *[]string
		}{"command": {f.command, &w.Command}, "host-command": {f.host, &w.HostCommand}} {
			if !s.Given(flag) {
				continue
			}
			split, err := setting.Words(words.from)
			if err != nil || len(split) == 0 {
				return option.WrongFlag(flag, "%s is no command: write a program and its arguments, such as 'nginx -g \"daemon off;\"'", option.Quote(words.from))
			}
			*words.into = split
		}
		if s.Given("pull") {
			w.Pull = f.pull
		}
		if s.Given("user") {
			w.User = f.user
		}
		for _, v := range f.env {
			w.Env = append(slices.Clip(w.Env), setting.Variable(v))
		}
		for _, m := range f.mounts {
			w.Mounts = append(slices.Clip(w.Mounts), setting.Mount(m))
		}
		return nil
	})
}

// isArchive reports whether a cluster's --image is a file.
func (w *Whom) isArchive() bool {
	for name, e := range w.Engines {
		if info, err := os.Stat(e.Image); ofCluster(name) && err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// takeImage returns and clears the --image of clusters, to use it for the workload.
func (w *Whom) takeImage() (image string) {
	for name, e := range w.Engines {
		if ofCluster(name) && e.Image != "" {
			image, e.Image = e.Image, ""
			w.Engines[name] = e
			if reflect.ValueOf(e).IsZero() {
				delete(w.Engines, name)
			}
		}
	}
	return image
}

// workloadKind is a mapping. Records contain only the names of its variables.
var workloadKind = option.Kind[setting.Workload]{
	Read: func(n option.Node) (setting.Workload, bool) {
		var w workload
		ok := option.ReadPart(n, "the workload", &w)
		return setting.Workload(w), ok
	},
	Schema: option.Describe(option.Of(new(workload))),
}

// workload is the plan's part for a workload.
type workload setting.Workload

// Declare declares the fields of a workload.
func (w *workload) Declare(s *option.Set) {
	option.Text(s, &w.Image, "image", "an archive (docker save, OCI layout), or the name of an image that one of the engines has")
	option.Bool(s, &w.Pull, "pull", "pull the image")
	option.List(s, &w.Command, "command", "command, instead of the image's; without an image, a command of tare's probe: [/probe, serve, \"8080\"]")
	option.List(s, &w.HostCommand, "host_command", "command to run on the host instead of the image")
	option.List(s, &w.Env, "env", "environment variables, NAME=VALUE, or NAME for its current value")
	option.List(s, &w.Mounts, "mounts", "bind mounts of directories or files, SOURCE:DESTINATION[:ro]")
	option.Text(s, &w.User, "user", "USER[:GROUP], as names in the image or numbers")
}

// CheckWorkload returns the errors of a workload.
func CheckWorkload(w *setting.Workload) (all option.FieldErrors) {
	wrong := func(err error) {
		if err != nil {
			all = append(all, option.Wrongf("workload", "%v", err))
		}
	}
	for _, v := range w.Env {
		wrong(v.Check())
	}
	for _, m := range w.Mounts {
		wrong(m.Check())
	}
	for _, word := range slices.Concat(w.Command, w.HostCommand, []string{w.Image, w.User}) {
		if strings.ContainsRune(word, 0) {
			wrong(errors.New("it contains a NUL byte"))
		}
	}
	more := len(w.HostCommand) > 0 || len(w.Env) > 0 || len(w.Mounts) > 0 || w.User != "" || w.Pull
	switch {
	case more && !w.Is() && all == nil:
		wrong(errors.New("variables, mounts, user, host command and --pull require a workload: set an image or a command (--image, --command)"))
	case w.Pull && w.Image == "":
		wrong(errors.New("there is nothing to pull: name an image (--image)"))
	}
	return all
}
