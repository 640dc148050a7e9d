package podman

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/subject/engine"
)

func execVerb(name, variable string, args []string) []string {
	return slices.Concat([]string{"exec", "--env", variable, name}, args)
}

// refused goes by podman-exec(1): 125 is an error of podman's, 126 and 127 that
// the command could not be invoked or found. A command may end with these too; but
// podman says an error of its own on its last line.
func refused(exit int, stderr string) bool {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	return exit >= 125 && exit <= 127 && strings.HasPrefix(lines[len(lines)-1], "Error: ")
}

// ending is how long it may take until the service knows the exit code of a
// command whose output is closed.
const ending = 5 * time.Second

// Exec implements subject.Executor. The service cannot be told to end such a
// command: at ctx's end tare kills its processes, see cli.Session.EndExec.
func (s *served) Exec(ctx context.Context, n int, args []string) (subject.Executed, error) {
	c, err := s.Inside(n, args)
	x := subject.Executed{Exit: -1}
	if err != nil {
		return x, err
	}
	order := map[string]any{"Cmd": args, "AttachStdout": true, "AttachStderr": true}
	shown, _ := json.Marshal(order)
	at := "/v" + s.client.version + "/libpod"
	x.Command = fmt.Sprintf("POST %s/containers/%s/exec %s; POST %s/exec/ID/start", at, c.Name, shown, at)
	mark := engine.NewMark()
	order["Env"] = []string{mark}
	id, err := s.execCreate(ctx, c.Name, order)
	if err == nil {
		if err = s.execRun(ctx, id, &x); err != nil {
			// Its output may be lost and the command run all the same.
			over := func() bool {
				short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
				defer cancel()
				e, err := s.execInspect(short, id)
				return err == nil && !e.Running
			}
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			err = errors.Join(err, s.EndExec(c.ID, mark, over))
		}
	}
	if err == nil {
		err = s.execExit(ctx, id, &x)
	}
	if err != nil {
		err = fmt.Errorf("target %s: %s: %w", s.name, x.Command, err)
	}
	return x, err
}

func (s *served) execCreate(ctx context.Context, name string, order map[string]any) (id string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	body, err := json.Marshal(order)
	if err != nil {
		return "", err
	}
	out, err := s.client.do(ctx, request(ctx, http.MethodPost, s.client.path("/containers/"+name+"/exec"), body), http.StatusCreated)
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"Id"`
	}
	if err := json.Unmarshal(out, &made); err != nil || made.ID == "" || strings.Trim(made.ID, "0123456789abcdef") != "" {
		return "", fmt.Errorf("the service's reply names no exec session: %.100q", out)
	}
	return made.ID, nil
}

// execRun starts the command and reads its output to the end. Without a wish to
// upgrade the service replies with the stream as a body that ends with the
// connection.
func (s *served) execRun(ctx context.Context, id string, x *subject.Executed) error {
	r := request(ctx, http.MethodPost, s.client.path("/exec/"+id+"/start"), []byte(`{"Detach":false,"Tty":false}`))
	reply, err := s.client.http.RoundTrip(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(reply.Body, 4<<10))
		return &APIError{Request: named(r), Status: reply.StatusCode, Message: message(text)}
	}
	out, said := engine.Kept{Most: subject.MaxOutput}, engine.Kept{Most: subject.MaxOutput}
	err = engine.Unframe(reply.Body, &out, &said)
	x.Output, x.Stderr = out.String(), said.String()
	return err
}

// execSession is what matters of /libpod/exec/ID/json.
type execSession struct {
	Running  bool `json:"Running"`
	ExitCode *int `json:"ExitCode"`
}

func (s *served) execInspect(ctx context.Context, id string) (execSession, error) {
	var e execSession
	out, err := s.client.call(ctx, http.MethodGet, "/exec/"+id+"/json", nil)
	if err == nil {
		err = json.Unmarshal(out, &e)
	}
	return e, err
}

// execExit waits until the service knows how the command ended.
func (s *served) execExit(ctx context.Context, id string, x *subject.Executed) error {
	ctx, cancel := context.WithTimeout(ctx, ending)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		e, err := s.execInspect(ctx, id)
		switch {
		case err != nil && ctx.Err() == nil:
			return fmt.Errorf("ask for its exit code: %w", err)
		case err == nil && !e.Running && e.ExitCode != nil:
			if *e.ExitCode < 0 || *e.ExitCode > 255 {
				return fmt.Errorf("the service tells the impossible exit code %d", *e.ExitCode)
			}
			if refused(*e.ExitCode, x.Stderr) {
				return fmt.Errorf("exit code %d: %s", *e.ExitCode, strings.TrimSpace(x.Stderr))
			}
			x.Exit = *e.ExitCode
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the service does not tell its exit code, %v after its output was closed", ending)
		case <-time.After(pause):
		}
	}
}
