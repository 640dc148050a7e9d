package isula

import (
	"context"
	"regexp"
	"slices"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// commands returns isula's command lines. isula takes no options before the verb.
func (t *Target) commands(env subject.Env, i *image.Image) *engine.Commands {
	c := &engine.Commands{
		Called: "iSulad", Program: t.isula, Always: t.options, Env: env, Image: i,
		OfRun:   []string{"--filter", "label=" + engine.RunLabel + "=" + env.RunID},
		Inspect: []string{"inspect"},
		Removal: []string{"rm", "-f"},
		Load:    []string{"load", "-i"}, // the daemon reads the file
		Listing: []string{"images"}, ParseImages: ownImages,
		Stats: []string{"stats", "--no-stream"}, Usage: parseUsage,
		Refused: refused,
	}
	c.Making = func(name string, place engine.Place) []string { return t.making(env, name, place) }
	// The name is sufficient: its tag is a digest of the image.
	c.ImageID = func(ctx context.Context) (string, error) {
		has, err := c.Images(ctx)
		if !slices.Contains(has, i.Ref) {
			return "", err
		}
		return i.ID, err
	}
	return c
}

func (t *Target) making(env subject.Env, name string, place engine.Place) []string {
	line := []string{"--name", name, "--label", engine.RunLabel + "=" + env.RunID, "--net", t.network}
	if t.runtime != "" {
		line = append(line, "--runtime", t.runtime)
	}
	if t.takes("--pull") {
		line = append(line, "--pull", "never")
	}
	if t.takes("--log-driver") {
		line = append(line, "--log-driver", jsonFile)
	}
	return append(append(line, engine.LimitFlags(env.Limits)...), place.Flags()...)
}

// ownError matches the messages of client_print_error in iSulad's src/cmd/isula.
var ownError = regexp.MustCompile(`(?m)^(Error response from daemon:|Inspect error:|Can not connect with server|Unknown flag found)`)

// refused reports an error of isula's own, by its message. The exit status does not show it: it is
// 1, or the daemon's choice.
func refused(exit int, stderr string) bool { return exit != 0 && ownError.MatchString(stderr) }
