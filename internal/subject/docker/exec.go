package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/moby/moby/client"

	"github.com/tare-bench/tare/internal/node/machine"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

// execEnd bounds the wait for the end of a killed command, and for the exit code after its output
// is closed.
const execEnd = 5 * time.Second

// Exec implements subject.Executor through the API, also if the docker command drives the
// operations. The API cannot end a command. At the end of ctx tare kills the command's processes
// if they are on this machine. Otherwise the command runs as long as its container, and the error
// says so.
func (s *session) Exec(ctx context.Context, lane int, args []string) (subject.Executed, error) {
	x := subject.Executed{Exit: -1}
	c, err := s.Inside(lane, args)
	if err != nil {
		return x, err
	}
	if err = s.exec(ctx, c, args, &x); err != nil {
		err = fmt.Errorf("target %s: %s: %w", s.name, x.Command, err)
	}
	return x, err
}

func (s *session) exec(ctx context.Context, c engine.State, args []string, x *subject.Executed) error {
	at := "/v" + s.ClientVersion()
	cmd, _ := json.Marshal(args)
	x.Command = fmt.Sprintf(`POST %s/containers/%s/exec {"AttachStdout":true,"AttachStderr":true,"Cmd":%s}; POST %s/exec/ID/start`, at, c.Name, cmd, at)
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	made, err := s.ExecCreate(short, c.Name, client.ExecCreateOptions{AttachStdout: true, AttachStderr: true, Cmd: args})
	if err != nil {
		return s.plain(err)
	}
	out, said := engine.Kept{Most: subject.MaxOutput}, engine.Kept{Most: subject.MaxOutput}
	err = s.attach(ctx, made.ID, &out, &said)
	x.Output, x.Stderr = out.String(), said.String()
	if err = s.plain(err); ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil { // the command may be running
		return errors.Join(err, s.EndExec(c, func() bool { return s.hasEnded(context.WithoutCancel(ctx), made.ID) }))
	}
	e, err := s.execEnded(ctx, made.ID)
	if err != nil {
		return err
	}
	if e.PID == 0 && !s.podman || e.ExitCode >= 126 && e.ExitCode <= 127 && (strings.Contains(x.Output+x.Stderr, "OCI runtime exec failed") || s.podman && strings.Contains(x.Stderr, "OCI runtime attempted to invoke a command")) {
		return fmt.Errorf("the daemon could not start it: %s", strings.TrimSpace(x.Output+x.Stderr))
	}
	x.Exit = e.ExitCode
	return nil
}

// attach starts the command and reads its output to the end. Without an Upgrade header the daemon
// replies with a stream that ends with the connection, so any transport works.
func (s *session) attach(ctx context.Context, id string, stdout, stderr *engine.Kept) error {
	reply, err := s.request(ctx, http.MethodPost, "v"+s.ClientVersion()+"/exec/"+url.PathEscape(id)+"/start", `{"Detach":false,"Tty":false}`)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 1024))
		return fmt.Errorf("the daemon replied %s: %s", reply.Status, bytes.TrimSpace(text))
	}
	return engine.Unframe(reply.Body, stdout, stderr)
}

// execEnded waits until the daemon has noticed a command's end, which may be after its output is
// closed.
func (s *session) execEnded(ctx context.Context, id string) (client.ExecInspectResult, error) {
	ctx, cancel := context.WithTimeout(ctx, execEnd)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		e, err := s.ExecInspect(ctx, id, client.ExecInspectOptions{})
		if err != nil && ctx.Err() == nil {
			return e, fmt.Errorf("query the exit code: %w", s.plain(err))
		}
		if err == nil && !e.Running {
			return e, nil
		}
		if machine.Sleep(ctx, pause) != nil {
			return e, fmt.Errorf("no exit code %v after the output was closed", execEnd)
		}
	}
}

// hasEnded reports whether the daemon considers a command ended.
func (s *session) hasEnded(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	e, err := s.ExecInspect(ctx, id, client.ExecInspectOptions{})
	return err == nil && !e.Running
}
