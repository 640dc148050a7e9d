package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tare-bench/tare/internal/probe/image"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/internal/testing/check"
	"github.com/tare-bench/tare/internal/testing/enginetest"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// fake is a daemon with fixed answers. It imitates broken daemons. A key of answers has no
// API version, for example "POST /images/load".
type fake struct {
	answers map[string]string // a status and a body, or only a body
	headers http.Header
	asked   atomic.Int64
	name    string        // the last requested container, NAME in paths and answers
	load    func()        // called for each loaded image; may be nil
	list    func() string // if set, answers GET /containers/json
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked.Add(1)
	maps.Copy(w.Header(), f.headers)
	path := r.URL.Path
	if parts := strings.SplitN(path, "/", 3); len(parts) == 3 && strings.HasPrefix(parts[1], "v1.") {
		path = "/" + parts[2]
	}
	if name := r.URL.Query().Get("name"); name != "" {
		f.name = name
	}
	if f.name != "" {
		path = strings.Replace(path, f.name, "NAME", 1)
	}
	if f.load != nil && path == "/images/load" {
		f.load()
	}
	answer, ok := f.answers[r.Method+" "+path]
	switch {
	case f.list != nil && path == "/containers/json":
		answer, ok = f.list(), true
	}
	if !ok {
		answer = map[string]string{"GET /version": `{"ApiVersion":"1.41"}`, "GET /_ping": "OK", "HEAD /_ping": ""}[r.Method+" "+path]
		if path != "/version" && path != "/_ping" {
			answer = `404 {"message":"page not found"}`
		}
	}
	if answer == "hang" {
		<-r.Context().Done()
		return
	}
	status := http.StatusOK
	if _, err := fmt.Sscanf(answer, "%3d ", &status); err == nil {
		answer = answer[4:]
	}
	if strings.HasPrefix(answer, "{") {
		w.Header().Set("Content-Type", "application/json")
	}
	line := "tare-probe/1 " + f.name + " 5\n"
	answer = strings.NewReplacer("NAME", f.name, "SIZE", string(rune(len(line))), "LINE", line).Replace(answer)
	w.WriteHeader(status)
	_, _ = w.Write([]byte(answer))
}

const goodInfo = `{"OSType":"linux","Architecture":"x86_64","DefaultRuntime":"runc","LoggingDriver":"json-file","ServerVersion":"27.0.1",` +
	`"Runtimes":{"io.containerd.runc.v2":{"path":"runc"},"runc":{"path":"runc"},"gv":{"path":"/x/runsc"}}}`

func serve(t *testing.T, answers map[string]string) (subject.Engine, *fake) {
	t.Helper()
	f := &fake{answers: answers, headers: http.Header{"Api-Version": {"1.41"}}}
	if _, ok := answers["GET /info"]; !ok {
		answers["GET /info"] = strings.Replace(goodInfo, "x86_64", map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch], 1)
	}
	socket := filepath.Join(t.TempDir(), "s")
	l := must.Get(net.Listen("unix", socket))(t)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: f}}
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return subject.Engine{Address: socket}, f
}

func TestUnavailableHasReasonAndAdvice(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	must.OK(t, os.WriteFile(plain, nil, 0o600))
	stand := filepath.Join(t.TempDir(), "docker")
	must.OK(t, os.WriteFile(stand, []byte("#!/bin/sh\necho podman version 4.3.1\n"), 0o755))
	old := filepath.Join(t.TempDir(), "docker")
	must.OK(t, os.WriteFile(old, []byte("#!/bin/sh\necho Docker version 19.03.15, build 1\n"), 0o755))
	for name, c := range map[string]struct {
		answers map[string]string
		api     string
		runtime string
		via     string
		engine  subject.Engine
		want    string
	}{
		"no daemon":                    {engine: subject.Engine{Address: "/no/such.sock"}, want: "no Docker daemon at unix:///no/such.sock"},
		"regular file":                 {engine: subject.Engine{Address: plain}, want: "the Docker daemon at unix://" + plain},
		"unsupported address":          {engine: subject.Engine{Address: "npipe:////./pipe/docker"}, want: "unsupported address"},
		"daemon behind ssh":            {engine: subject.Engine{Address: "ssh://h"}, want: "run tare on the daemon's machine"},
		"old API":                      {api: "1.39", want: "1.39 is not supported"},
		"Windows containers":           {answers: map[string]string{"GET /info": `{"OSType":"windows"}`}, want: `"windows" containers`},
		"other architecture":           {answers: map[string]string{"GET /info": `{"OSType":"linux","Architecture":"s390x"}`}, want: "s390x"},
		"no JSON":                      {answers: map[string]string{"GET /info": "<html>"}, want: "the Docker daemon at"},
		"error":                        {answers: map[string]string{"GET /version": `500 {"message":"no disk"}`}, want: "no disk"},
		"missing runtime":              {runtime: "kata", want: `no runtime "kata" (registered: runc, gv)`},
		"unknown network":              {engine: subject.Engine{Network: "mine"}, want: `unknown network "mine"`},
		"no docker command":            {via: viaCLI, engine: subject.Engine{Command: "/no/docker"}, want: "no docker command"},
		"other program as the command": {via: viaCLI, engine: subject.Engine{Command: stand}, want: "is not Docker's"},
		"old command":                  {via: viaCLI, engine: subject.Engine{Command: old}, want: "19.03.15"},
	} {
		t.Run(name, func(t *testing.T) {
			e := c.engine
			if e.Address == "" {
				answers := map[string]string{}
				maps.Copy(answers, c.answers)
				at, f := serve(t, answers)
				e.Address = at.Address
				if c.api != "" {
					f.headers.Set("Api-Version", c.api)
				}
			}
			via := c.via
			if via == "" {
				via = viaAPI
			}
			_, err := New(t.Context(), "docker/x", c.runtime, via, e)
			u, ok := errors.AsType[*subject.Unavailable](err)
			check.That(t, ok && strings.Contains(u.Reason, c.want) && u.Advice != "" && u.Name == "docker/x", "got %v, want %q", err, c.want)
		})
	}
}

func TestHangingDaemonTimesOut(t *testing.T) {
	e, _ := serve(t, map[string]string{"GET /info": "hang"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second) // shorter than the timeout of tare
	defer cancel()
	began := time.Now()
	_, err := Runtimes(ctx, e)
	var u *subject.Unavailable
	took := time.Since(began)
	check.That(t, errors.As(err, &u) && strings.Contains(u.Reason, "did not answer within") && took <= patience, "after %v: %v", took, err)
}

func TestImportChecksTheImageAndNeverPulls(t *testing.T) {
	i := must.Get(image.Probe())(t)
	here := "GET /images/" + i.Ref + "/json"
	for name, c := range map[string]struct {
		answers map[string]string
		want    string // "" for none
	}{
		"image exists":                   {map[string]string{here: fmt.Sprintf(`{"Id":%q}`, i.ID)}, ""},
		"image in the containerd store":  {map[string]string{here: fmt.Sprintf(`{"Id":%q}`, i.Digest)}, ""},
		"other image with the same name": {map[string]string{here: `{"Id":"sha256:0"}`}, "is another image"},
		"failed load":                    {map[string]string{"POST /images/load": `500 {"message":"no space"}`}, "no space"},
		"failed load with status 200":    {map[string]string{"POST /images/load": `{"stream":"x"}` + "\n" + `{"errorDetail":{},"error":"no space"}`}, i.Ref + ": no space"},
		"reply is not JSON":              {map[string]string{"POST /images/load": `<html>`}, "unreadable reply"},
		"endless reply":                  {map[string]string{"POST /images/load": strings.Repeat(`{"stream":"x"}`, 1<<17)}, "unreadable reply"},
		"load without effect":            {map[string]string{"POST /images/load": `{"stream":"Loaded image: other\n"}`}, "does not list it after the load"},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := serve(t, c.answers)
			_, err := (&driver{Target: weigh(t, e, "runc", viaAPI), image: i}).Import(t.Context())
			check.Error(t, err, c.want)
		})
	}
}

func TestInterruptedRunAwaitsItsLoad(t *testing.T) {
	i := must.Get(image.Probe())(t)
	e, f := serve(t, map[string]string{"POST /images/load": `{"stream":"Loaded image: ` + i.Ref + `\n"}`})
	target := weigh(t, e, "runc", viaAPI)
	ctx, cancel := context.WithCancel(t.Context())
	f.load = func() {
		cancel()
		f.answers["GET /images/"+i.Ref+"/json"] = fmt.Sprintf(`{"Id":%q}`, i.ID)
	}
	made, err := (&driver{Target: target, image: i}).Import(ctx)
	check.That(t, made && err == nil, "made %v, %v", made, err)
}

// An input has the operation, the result of inspect (rm: of the list), and the log.
func TestSuccessWithoutEffectIsAFailure(t *testing.T) {
	i := must.Get(image.Probe())(t)
	golden.Cases(t, "testdata/states.txt", func(t *testing.T, input string) string {
		parts := strings.SplitN(input+"\n\n", "\n", 4)
		op, logs := subject.Op(parts[0]), ""
		if parts[2] != "" {
			logs = must.Get(strconv.Unquote(parts[2]))(t)
		}
		env := enginetest.Environment(t, 1)
		if op == subject.Start && !strings.Contains(logs, "SIZELINE") {
			env.Timeout = 3 * time.Second // the time limit for the first line
		}
		answers := map[string]string{
			"GET /images/" + i.Of(env.RunID).Ref + "/json": fmt.Sprintf(`{"Id":%q}`, i.ID), "GET /containers/json": "[]",
			"POST /containers/create": `201 {"Id":"1"}`, "DELETE /containers/NAME": "204 ",
			"POST /containers/NAME/start": "204 ", "POST /containers/NAME/stop": "204 ", "GET /containers/1/logs": logs,
		}
		e, _ := serve(t, answers)
		s := enginetest.Open(t, weigh(t, e, "", viaAPI), env)
		state := func(state string) {
			answers["GET /containers/NAME/json"] = state
			if strings.HasPrefix(state, `{"Status`) {
				answers["GET /containers/NAME/json"] = `{"Id":"1","Name":"/NAME","State":` + state + `}`
			}
		}
		if state(`{"Status":"created"}`); op != subject.Create {
			enginetest.Must(t, s, subject.Create, 1)
		}
		if state(parts[1]); op == subject.Remove {
			answers["GET /containers/json"] = strings.ReplaceAll(parts[1], "RUN", env.RunID)
		}
		f := enginetest.Do(t, s, op, 1)[0].Failure
		answers["GET /containers/json"] = "[]"
		if f == nil {
			return "success"
		}
		check.That(t, f.Command != "", "the failure has no command")
		return f.Kind + ": " + f.Detail
	})
}
