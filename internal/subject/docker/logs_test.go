package docker

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/moby/moby/api/types/system"

	"github.com/tare-bench/tare/record"
)

func TestALogIsTakenApartStrictly(t *testing.T) {
	frame := func(stream byte, text string) string {
		return string([]byte{stream, 0, 0, 0, 0, 0, byte(len(text) >> 8), byte(len(text))}) + text
	}
	for log, want := range map[string]string{
		"":              "",
		"short":         "",
		frame(1, "a\n"): "a\n",
		frame(2, "e\n") + frame(1, "a\n") + frame(1, "b\n"): "a\nb\n",
		frame(1, "a") + frame(9, "b"):                       "a",
		frame(1, "a") + frame(1, "bcd")[:10]:                "a",
		"\x01\x00\x00\x00\xff\xff\xff\xffabc":               "",
	} {
		if got := stdout([]byte(log)); got != want {
			t.Errorf("%q gave %q, not %q", log, got, want)
		}
	}
}

func FuzzLog(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x02a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(stdout(b)) > len(b) {
			t.Error("it grew")
		}
	})
}

func TestALogDriverThatCannotBeReadIsTold(t *testing.T) {
	for driver, c := range map[string]struct {
		api  string
		want string
	}{
		"json-file": {"1.41", ""}, "local": {"1.41", ""}, "journald": {"1.41", ""},
		"none": {"1.41", "no log can be read"}, "syslog": {"1.40", "cannot be read before Docker 20.10"}, "fluentd": {"1.41", "own cache"},
	} {
		if got := logNote(system.Info{LoggingDriver: driver}, c.api); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q", driver, got)
		}
	}
}

func TestOneErrorOfALogSilencesNoOtherContainer(t *testing.T) {
	for driver, c := range map[string]struct {
		answer string
		mute   bool
	}{
		"fluentd": {`500 {"message":"too many open files"}`, false},
		"gelf":    {`501 {"message":"configured logging driver does not support reading"}`, true},
		"syslog":  {`500 {"message":"configured logging driver does not support reading"}`, true},
	} {
		e, f := serve(t, map[string]string{"GET /info": strings.Replace(goodInfo, "json-file", driver, 1)})
		f.answers["GET /info"] = strings.Replace(f.answers["GET /info"], "x86_64", map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch], 1)
		f.answers["GET /containers/a/json"] = `{"Id":"1","Name":"/a","State":{"Status":"running","Running":true,"Pid":7}}`
		s := &session{Target: weigh(t, e, "", ViaAPI)}
		line := "tare-probe/1 a 5\n"
		var second atomic.Bool
		f.log = func() string {
			if !second.Swap(true) {
				return c.answer
			}
			return "\x01\x00\x00\x00\x00\x00\x00" + string(rune(len(line))) + line
		}
		ask := func() (*record.Failure, record.Sample) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var x record.Sample
			return s.reported(ctx, &holding{name: "a"}, &x), x
		}
		first, _ := ask()
		again, x := ask()
		if s.mute.Load() != c.mute || (first == nil) != c.mute || again != nil || (x.Guest == 5) == c.mute {
			t.Errorf("%s: mute %v; %+v, then %+v and %+v", driver, s.mute.Load(), first, again, x)
		}
	}
}
