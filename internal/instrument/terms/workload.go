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

// Workload declares a program of the user's own, in place of the probe's sleep, of those
// that are weighed. Its flag --image is that of clusters, too, and is theirs where one is
// among the targets, unless it can only be a program's: an archive, or to be pulled.
func Workload(s *option.Set, whom *Whom, w *setting.Workload) {
	option.Var(s, w, "workload", "a program of your own in the probe's place: an image with the probe in front of its command", workloadKind, option.OmitEmpty)
	var f struct {
		pull                bool
		command, host, user string
		env, mounts         []string
	}
	many := option.Repeated(option.ListOf(option.TextOf[string]()))
	option.Bool(s, &f.pull, "", "pull the image of --image", option.Flag("pull"))
	option.Text(s, &f.command, "", "command of the workload, in place of its image's own; words may be quoted as for a shell", option.Flag("command"))
	option.Text(s, &f.host, "", "what runs on the host in place of the image (default: the host is left out)", option.Flag("host-command"))
	option.Var(s, &f.env, "", "a variable of the workload, NAME=VALUE, or NAME for the value that it has here; can be repeated. Records hold names only", many, option.Flag("env"))
	option.Var(s, &f.mounts, "", "a folder or file of this machine in every container, SOURCE:DESTINATION[:ro]; can be repeated", many, option.Flag("mount"))
	option.Text(s, &f.user, "", "who the workload runs as, USER[:GROUP], by names of the image or numbers", option.Flag("user"))
	s.Before(func(context.Context) error {
		if s.Given("image") && (!slices.ContainsFunc(whom.Targets, ofCluster) || s.Given("pull") || whom.isArchive()) {
			if w.Image == "" {
				w.Command, w.HostCommand = nil, nil // a plan's, of tare's own image
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

// isArchive tells whether what --image said of clusters is a file.
func (w *Whom) isArchive() bool {
	for name, e := range w.Engines {
		if info, err := os.Stat(e.Image); ofCluster(name) && err == nil && info.Mode().IsRegular() {
			return true
		}
	}
	return false
}

// takeImage takes back what --image said of clusters, and is a program's.
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

// workloadKind is a mapping, and the names alone of its variables in records.
var workloadKind = option.Kind[setting.Workload]{
	Read: func(n option.Node) (setting.Workload, bool) {
		var w workload
		ok := option.ReadPart(n, "the workload", &w)
		return setting.Workload(w), ok
	},
	Schema: option.Describe(option.Of(new(workload))),
}

// workload is what a plan says of one.
type workload setting.Workload

// Declare declares its fields.
func (w *workload) Declare(s *option.Set) {
	option.Text(s, &w.Image, "image", "an archive (docker save, OCI layout), or the name of an image that one of the engines has")
	option.Bool(s, &w.Pull, "pull", "whether the image is pulled")
	option.List(s, &w.Command, "command", "in place of the image's own; without an image, a command of tare's probe: [/probe, serve, \"8080\"]")
	option.List(s, &w.HostCommand, "host_command", "what runs on the host in place of the image")
	option.List(s, &w.Env, "env", "variables, NAME=VALUE, or NAME for the value that it has here")
	option.List(s, &w.Mounts, "mounts", "folders or files of this machine, SOURCE:DESTINATION[:ro]")
	option.Text(s, &w.User, "user", "USER[:GROUP], by names of the image or numbers")
}

// CheckWorkload says what is wrong with a workload.
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
			wrong(errors.New("there is a zero byte in it"))
		}
	}
	more := len(w.HostCommand) > 0 || len(w.Env) > 0 || len(w.Mounts) > 0 || w.User != "" || w.Pull
	switch {
	case more && !w.Is() && all == nil:
		wrong(errors.New("variables, mounts, a user, a command of the host and --pull are of a program of your own: name an image, or a command (--image, --command)"))
	case w.Pull && w.Image == "":
		wrong(errors.New("there is nothing to pull: name an image (--image)"))
	}
	return all
}
