package logs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Each form as its writers write it, and as a hostile one would.
func TestForms(t *testing.T) {
	const kataLine = `time="2026-11-21T02:45:27.5Z" level=info msg="Starting VM" name=containerd-shim-v2 pid=28664 sandbox=k1 source=virtcontainers subsystem=sandbox`
	shim := row{
		Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "Starting VM", Program: "containerd-shim-v2",
		Source: "virtcontainers", Subsystem: "sandbox", Sandbox: "k1", Pid: 28664,
	}
	journal := row{Form: Journal, Time: "2026-11-21T02:45:27Z", Message: "hello", Program: "kata", Pid: 7}
	tests := []struct {
		name string
		file string
		text string
		want []row
	}{
		// Prefixes
		{"a bare line", "", kataLine, []row{shim}},
		{"with Windows' line ends", "", kataLine + "\r", []row{shim}},
		{"classic syslog", "", `Nov 21 02:45:27 host kata[1]: ` + kataLine, []row{shim}},
		{"busybox's syslog", "", `Nov 21 02:45:27 vm kern.info kata[1]: ` + kataLine, []row{shim}},
		{"syslog with a priority", "", `<30>Nov  1 02:45:27 kata[1]: ` + kataLine, []row{shim}},
		{"RFC 5424", "", `<30>1 2026-11-21T02:45:27.500123+00:00 host kata 1 - [a b="c"] ` + kataLine, []row{shim}},
		{"journalctl -o short-iso", "", `2026-11-21T03:45:27+0100 host kata[1]: ` + kataLine, []row{shim}},
		{"journalctl -o short-unix", "", `1795229127.500123 host kata[1]: ` + kataLine, []row{shim}},
		{"journalctl -o short-full", "", `Sat 2026-11-21 02:45:27 UTC host kata[1]: ` + kataLine, []row{shim}},
		{"somebody's prose", "", `and then it says: ` + kataLine, []row{shim}},
		{"an indented line", "", "\t  " + kataLine, []row{shim}},
		// Prefixes of plain text
		{
			"plain text by syslog, in the year of the others", "",
			"Dec 31 23:59:59 host kata[7]: hello\n" + `time="2031-01-01T00:00:00Z" level=info msg=a`,
			[]row{
				{Form: Journal, Time: "2030-12-31T23:59:59Z", Message: "hello", Program: "kata", Pid: 7, Line: 1},
				{Form: Containerd, Time: "2031-01-01T00:00:00Z", Level: "info", Message: "a", Line: 2},
			},
		},
		{
			"plain text by syslog, in the zone of the others", "",
			"Nov 21 10:45:20 host kata[7]: hello\nNov 21 10:45:27 host kata[1]: " + kataLine,
			[]row{
				{Form: Journal, Time: "2026-11-21T02:45:20Z", Message: "hello", Program: "kata", Pid: 7, Line: 1},
				func() row { r := shim; r.Line = 2; return r }(),
			},
		},
		{"plain text by RFC 5424", "", `<27>1 2026-11-21T02:45:27Z host kata 7 - - hello`, []row{func() row { r := journal; r.Level = "error"; return r }()}},
		{"plain text by journalctl -o short-iso", "", `2026-11-21T02:45:27+00:00 host kata[7]: hello`, []row{journal}},
		{"plain text by journalctl -o short-unix", "", `1795229127.000000 host kata[7]: hello`, []row{journal}},
		{"a date and no program", "", `2026-11-21T02:45:27Z hello`, nil},
		{"a month that is none", "", `Nuv 21 02:46:31 host kata[7]: hello`, nil},
		{"a day that is none", "", `Feb 30 02:46:31 host kata[7]: hello`, nil},
		{"a date that is cut", "", `Nov 21 02:4`, nil},
		// Kata's logfmt
		{
			"keys with blanks, keys that are there twice, and an empty value", "",
			`time="2026-11-21T02:45:27.5Z" level=debug msg="static resources set" default cpu=1 default mem=512 req= source=virtcontainers source=other subsystem=oci workload cpu=0 workload mem in MB=0 vm path=/run`,
			[]row{{Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "debug", Message: "static resources set", Source: "virtcontainers", Subsystem: "oci"}},
		},
		{
			"no message", "", `time="2026-11-21T02:45:27.5Z" level=info name=containerd-shim-v2 path=/opt/v pid=1 source=katautils`,
			[]row{{Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "info", Program: "containerd-shim-v2", Source: "katautils", Pid: 1}},
		},
		{
			"a Go struct", "", `time="2026-11-21T02:45:27.5Z" level=info msg="map[a:b \"c=d\" {1 %!s(bool=true)}]" error="x \\ \"y\"" source=virtcontainers`,
			[]row{{Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: `map[a:b "c=d" {1 %!s(bool=true)}]`, Error: `x \ "y"`, Source: "virtcontainers"}},
		},
		{
			"cut in a message", "", `time="2026-11-21T02:45:27.5Z" level=info msg="launching /opt`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "launching /opt", Cut: true}},
		},
		{
			"cut in an escape", "", `time="2026-11-21T02:45:27.5Z" level=info msg="say \`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: `say \`, Cut: true}},
		},
		{
			"cut in an id, of which the half is another's", "", `time="2026-11-21T02:45:27.5Z" level=info msg=a name=containerd-shim-v2 pid=28664 sandbox=956b`,
			[]row{{Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "a", Program: "containerd-shim-v2", Pid: 28664, Cut: true}},
		},
		{
			"cut in a quoted id", "", `time="2026-11-21T02:45:27.5Z" level=info msg=a source=virtcontainers sandbox="956b`,
			[]row{{Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "a", Source: "virtcontainers", Cut: true}},
		},
		{
			"cut in a key", "", `time="2026-11-21T02:45:27.5Z" level=info msg=a source=virtcontainers subsy`,
			[]row{{Form: Kata, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "a", Source: "virtcontainers", Cut: true}},
		},
		{"cut in the time", "", `time="2026-11-21T02:45:2`, nil},
		{"cut before the message", "", `time="2026-11-21T02:45:27.5Z" lev`, nil},
		{"a time that is none", "", `time="2026-13-41T02:45:27Z" level=info msg=a`, nil},
		{"a time inside a value", "", `level=info msg="time=\"2026-11-21T02:45:27Z\" level=info"`, nil},
		{
			"the level in front of the time", "", `level=info msg="a b" time="2026-11-21T02:45:27.5Z"`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "a b"}},
		},
		{
			"two records and prose between them", "", kataLine + ` and later: time="2026-11-21T02:45:28Z" level=warning msg=b source=virtcontainers`,
			[]row{shim, {Form: Kata, Time: "2026-11-21T02:45:28Z", Level: "warning", Message: "b", Source: "virtcontainers"}},
		},
		// Inside others' lines
		{
			"a proxy's line and the agent's in it", "",
			`time="2018-08-10T16:38:11.4+08:00" level=info msg="time=\"2018-08-10T08:37:45.3Z\" level=info msg=\"say \\\"hi\\\"\" name=kata-agent pid=1 source=agent\n" name=kata-proxy pid=4823 sandbox=f8 source=agent`,
			[]row{
				{
					Form: KataProxy, Time: "2018-08-10T08:38:11.4Z", Level: "info", Program: "kata-proxy", Source: "agent", Sandbox: "f8", Pid: 4823,
					Message: `time="2018-08-10T08:37:45.3Z" level=info msg="say \"hi\"" name=kata-agent pid=1 source=agent` + "\n",
				},
				{
					Form: KataAgent, Time: "2018-08-10T08:37:45.3Z", Arrived: "2018-08-10T08:38:11.4Z", Level: "info",
					Message: `say "hi"`, Program: "kata-agent", Source: "agent", Sandbox: "f8", Pid: 1,
				},
			},
		},
		{
			"a proxy's line and the JSON of the agent in Rust", "",
			`time="2018-08-10T16:38:11.4+08:00" level=info msg="{\"msg\":\"announce\",\"level\":\"INFO\",\"ts\":\"2018-08-10T08:37:45.3Z\",\"source\":\"agent\",\"pid\":\"1\",\"name\":\"kata-agent\"}\n" name=kata-proxy pid=4823 sandbox=f8 source=agent`,
			[]row{
				{
					Form: KataProxy, Time: "2018-08-10T08:38:11.4Z", Level: "info", Program: "kata-proxy", Source: "agent", Sandbox: "f8", Pid: 4823,
					Message: `{"msg":"announce","level":"INFO","ts":"2018-08-10T08:37:45.3Z","source":"agent","pid":"1","name":"kata-agent"}` + "\n",
				},
				{
					Form: KataAgent, Time: "2018-08-10T08:37:45.3Z", Arrived: "2018-08-10T08:38:11.4Z", Level: "info",
					Message: "announce", Program: "kata-agent", Source: "agent", Sandbox: "f8", Pid: 1,
				},
			},
		},
		{
			"a proxy's own line", "", `time="2018-08-10T16:38:11.4+08:00" level=info msg="proxy accepts" name=kata-proxy pid=4823 sandbox=f8 source=proxy`,
			[]row{{Form: KataProxy, Time: "2018-08-10T08:38:11.4Z", Level: "info", Message: "proxy accepts", Program: "kata-proxy", Source: "proxy", Sandbox: "f8", Pid: 4823}},
		},
		{
			"a console's kernel", "", kataLine + ` vmconsole="[    3.065807] virtiofs: \"x\""`,
			[]row{{Form: Console, Arrived: "2026-11-21T02:45:27.5Z", Uptime: 3065807 * time.Microsecond, Message: `virtiofs: "x"`, Program: "kernel", Sandbox: "k1"}},
		},
		{
			"a console's text", "", kataLine + ` vmconsole="Welcome\r"`,
			[]row{{Form: Console, Arrived: "2026-11-21T02:45:27.5Z", Message: `Welcome`, Sandbox: "k1"}},
		},
		{
			"a console's kernel without a fraction is text", "", kataLine + ` vmconsole="[ 3] a"`,
			[]row{{Form: Console, Arrived: "2026-11-21T02:45:27.5Z", Message: `[ 3] a`, Sandbox: "k1"}},
		},
		{
			"the agent's JSON in a console", "",
			kataLine + ` vmconsole="{\"msg\":\"call \\\"x\\\"\",\"level\":\"INFO\",\"ts\":\"2026-11-21T02:45:26.1Z\",\"source\":\"agent\",\"pid\":\"1\",\"name\":\"kata-agent\",\"container\":\"c1\"}"`,
			[]row{{
				Form: KataAgent, Time: "2026-11-21T02:45:26.1Z", Arrived: "2026-11-21T02:45:27.5Z", Level: "info", Message: `call "x"`,
				Program: "kata-agent", Source: "agent", Sandbox: "k1", Container: "c1", Pid: 1,
			}},
		},
		{
			"the agent's JSON, cut behind its time", "", kataLine + ` vmconsole="{\"msg\":\"announce\",\"level\":\"INFO\",\"ts\":\"2026-11-21T02:45:26.1Z\",\"sou`,
			[]row{{Form: KataAgent, Time: "2026-11-21T02:45:26.1Z", Arrived: "2026-11-21T02:45:27.5Z", Level: "info", Message: `announce`, Sandbox: "k1", Cut: true}},
		},
		{
			"the agent's JSON, cut before its time", "", kataLine + ` vmconsole="{\"msg\":\"announ`,
			[]row{{Form: Console, Arrived: "2026-11-21T02:45:27.5Z", Message: `{"msg":"announ`, Sandbox: "k1", Cut: true}},
		},
		{
			"a console in a console", "", kataLine + ` vmconsole="time=\"2026-11-21T02:45:26Z\" level=info msg=a vmconsole=b"`,
			[]row{{Form: KataAgent, Time: "2026-11-21T02:45:26Z", Arrived: "2026-11-21T02:45:27.5Z", Level: "info", Message: "a", Sandbox: "k1"}},
		},
		// JSON
		{
			"runtime-rs", "", `{"msg":"start vm","level":"DEBG","ts":"2026-11-21T02:45:27.5+00:00","name":"kata-runtime","source":"k1","subsystem":"hypervisor","pid":"8150","version":"0.1.0"}`,
			[]row{{Form: KataRS, Time: "2026-11-21T02:45:27.5Z", Level: "debug", Message: "start vm", Program: "kata-runtime", Source: "k1", Subsystem: "hypervisor", Sandbox: "k1", Pid: 8150}},
		},
		{
			"containerd", "", `{"level":"warning","msg":"a \u00e9\ud83d\ude00\/","id":"c1","x":{"msg":"no","y":["]}"]},"pid":3,"z":null,"time":"2026-11-21T02:45:27.5Z"}`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27.5Z", Level: "warning", Message: "a é😀/", Container: "c1", Pid: 3}},
		},
		{
			"dockerd, told by its file's name", "var/log/dockerd.log", `{"level":"info","msg":"a","time":"2026-11-21T02:45:27.5Z"}`,
			[]row{{Form: Docker, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "a"}},
		},
		{
			"two objects on a line", "", `{"level":"info","msg":"a","time":"2026-11-21T02:45:27Z"} {"level":"info","msg":"b","time":"2026-11-21T02:45:28Z"}`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27Z", Level: "info", Message: "a"}, {Form: Containerd, Time: "2026-11-21T02:45:28Z", Level: "info", Message: "b"}},
		},
		{
			"JSON by syslog", "", `Nov 21 02:45:27 host containerd[9]: {"level":"info","msg":"a","time":"2026-11-21T02:45:27Z"}`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27Z", Level: "info", Message: "a", Program: "containerd", Pid: 9}},
		},
		{"an object that is none of a log", "", `{"a":1}`, nil},
		{"lists without an end", "", `{"a":` + strings.Repeat("[", 50_000), nil},
		{"an object without keys", "", `{{{{`, nil},
		// The others
		{
			"dockerd by syslog", "", `Nov 21 02:45:27 host dockerd[5]: time="2026-11-21T02:45:27Z" level=info msg="Starting up"`,
			[]row{{Form: Docker, Time: "2026-11-21T02:45:27Z", Level: "info", Message: "Starting up", Program: "dockerd", Pid: 5}},
		},
		{
			"dockerd's containerd module", "", `time="2026-11-21T02:45:27Z" level=info msg="ignoring event" container=c1 module=libcontainerd namespace=moby topic=/tasks/delete`,
			[]row{{Form: Docker, Time: "2026-11-21T02:45:27Z", Level: "info", Message: "ignoring event", Container: "c1", Subsystem: "/tasks/delete"}},
		},
		{
			"slog's text, without quotes", "", `time=2026-11-21T02:45:27.123+08:00 level=WARN msg=a`,
			[]row{{Form: Containerd, Time: "2026-11-20T18:45:27.123Z", Level: "warning", Message: "a"}},
		},
		{
			"containerd's network plugin", "", `time="2026-11-21T02:45:27Z" level=debug msg="begin cni setup" podsandboxid=p1`,
			[]row{{Form: Containerd, Time: "2026-11-21T02:45:27Z", Level: "debug", Message: "begin cni setup", Sandbox: "p1"}},
		},
		{
			"CRI-O's request", "", `time="2026-11-21T02:45:27Z" level=debug msg="Request: &RunPodSandboxRequest{}" file="server.go:1" id=u1 name=/runtime.v1alpha2.RuntimeService/RunPodSandbox`,
			[]row{{Form: CRIO, Time: "2026-11-21T02:45:27Z", Level: "debug", Message: "Request: &RunPodSandboxRequest{}", Program: "/runtime.v1alpha2.RuntimeService/RunPodSandbox", Request: "u1"}},
		},
		{"prose", "", "Almost no operation in between.\n\n  1. wait vm/agent to be fully up\nreal 0m2.776s user 0m0.044s", nil},
		{"a key and nothing", "", "time=\ntime=\"\ntime=\"2026-11-21\n=\n==\"\n\"", nil},
	}
	in2026(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, s := rows(t, test.file, test.text)
			for i := range got {
				if i < len(test.want) && test.want[i].Line == 0 {
					got[i].Line = 0
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
			if len(test.want) == 0 && s.Read != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestRunsc(t *testing.T) {
	const table = "I1121 02:27:17.423480       1 timing.go:866] ---- runsc boot timing information ----\n"
	moment := func(us int, message string, took int) row {
		return row{
			Form: Runsc, Time: stampText(time.Date(2026, 11, 21, 2, 27, 17, us*1000, time.UTC).UnixNano()),
			Took: time.Duration(took) * time.Microsecond, Level: "info", Message: message, Program: "boot timing",
		}
	}
	tests := []struct {
		name string
		text string
		want []row
	}{
		{"levels", "W1121 02:27:17.000001   32200 config.go:563] a\nD1121 02:27:17.000002 1 x] b", []row{
			{Form: Runsc, Time: "2026-11-21T02:27:17.000001Z", Level: "warning", Message: "a", Source: "config.go:563", Pid: 32200},
			{Form: Runsc, Time: "2026-11-21T02:27:17.000002Z", Level: "debug", Message: "b", Source: "x", Pid: 1},
		}},
		{"the beginning of a timeline", "[02:27:17.285925]\t                      \t╭─ runsc boot                        ", []row{moment(285925, "runsc boot", 0)}},
		{"digits in groups", "[02:27:17.291776]\t +5 851µs ▉▉          \t├─ Go code running: 5 851µs          ", []row{moment(291776, "Go code running", 5851)}},
		{"groups between no-break spaces", "[02:27:17.291776]\t +5\u00a0851µs\t├─ a: 1\u00a0005\u202f851µs", []row{moment(291776, "a", 1005851)}},
		{"the older form", "[02:27:17.000906] +906µs ├─ spec read: 906µs", []row{moment(906, "spec read", 906)}},
		{"a milestone and the beginning of another timeline", "[02:27:17.415723]\t +3µs\t├─ forked: 3µs                       \t╭─ root container", []row{moment(415723, "forked", 3), moment(415723, "root container", 0)}},
		{"another timeline meanwhile", "[02:27:17.421743]\t +22µs\t├─ root container created: 6 020µs   \t│ ... 22µs ...", []row{moment(421743, "root container created", 6020)}},
		{"the end", "[02:27:17.423107]\t +5µs\t│ ... 5µs ...\t╰─ END 1 385µs, total 7 384µs", []row{moment(423107, "END", 1385)}},
		{"a name with a colon", "[02:27:17.423107]\t├─ a: b: 5µs", []row{moment(423107, "a: b", 5)}},
		{"too many digits", "[02:27:17.423107]\t├─ a: " + strings.Repeat("9", 40) + "µs", []row{moment(423107, "a: "+strings.Repeat("9", 40)+"µs", 0)}},
		{"a time without a milestone", "[02:27:17.423107]\t +5µs", nil},
		{"a time of day that is none", "[27:27:17.423107]\t├─ a: 5µs", nil},
		{"a glyph that is cut", "[02:27:17.423107]\t\xe2\x94", nil},
	}
	in2026(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			text := test.text
			if text[0] == '[' {
				text = table + text
			}
			got, _ := rows(t, "", text)
			if text[0] == 'I' {
				got = got[1:]
			}
			for i := range got {
				got[i].Line = 0
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestYearsAndZonesComeFromOtherLines(t *testing.T) {
	in2026(t)
	const line = "I1231 23:59:59.000000 1 a.go:1] first\nI0101 00:00:01.000000 1 a.go:2] second\n"
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"the current year in UTC", line, []string{"2025-12-31T23:59:59Z", "2026-01-01T00:00:01Z"}},
		{"the year of a timer", line + "D0101 00:00:02.000000 1 timing.go:1] Timer for runsc boot: time 1546300802000000000 00:00:02.000000000 start runsc boot", []string{"2018-12-31T23:59:59Z", "2019-01-01T00:00:01Z"}},
		{"the zone of a timer", line + "D0101 00:00:02.000000 1 timing.go:1] Timer for runsc boot: reached x at 05:30:02.000000000 (unix nanos: 1546300802000000000)", []string{"2018-12-31T18:29:59Z", "2018-12-31T18:30:01Z"}},
		{"the zone of a line of another form", line + `time="2019-01-01T00:00:02-02:00" level=info msg=a`, []string{"2019-01-01T01:59:59Z", "2019-01-01T02:00:01Z"}},
		{"a leap day", "I0229 10:00:00.000000 1 a.go:1] a\n" + `time="2024-06-01T00:00:02Z" level=info msg=a`, []string{"2024-02-29T10:00:00Z"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, _ := rows(t, "", test.text)
			for i, want := range test.want {
				if got[i].Time != want {
					t.Errorf("line %d: %s, want %s", i+1, got[i].Time, want)
				}
			}
		})
	}
	t.Run("the same in all files", func(t *testing.T) {
		const glog, timer, syslog = "I0524 10:00:00.500000 1 a.go:1] a\n",
			"D0524 10:00:01.000000 1 timing.go:1] Timer for runsc boot: reached x at 10:00:01.000000000 (unix nanos: 1779597001000000000)\n", // 2026-05-24T04:30:01Z
			"May 20 10:00:00 host kata[7]: a\n"
		dated := func(stamp string) string { return "time=\"" + stamp + "\" level=info msg=a\n" }
		for name, test := range map[string]struct {
			texts []string
			want  []string
		}{
			"a zone that one of them knows":             {[]string{glog, timer, "I0524 10:00:00.700000 1 a.go:1] a\n"}, []string{"2026-05-24T04:30:00.5Z", "2026-05-24T04:30:00.7Z", "2026-05-24T04:30:01Z"}},
			"its own zone, where it has one":            {[]string{"I0524 10:00:00.500000 1 a.go:1] a\n" + dated("2026-05-24T10:00:02+01:00"), glog + dated("2026-05-24T10:00:02-03:00")}, []string{"2026-05-24T09:00:00.5Z", "2026-05-24T09:00:02Z", "2026-05-24T13:00:00.5Z", "2026-05-24T13:00:02Z"}},
			"years that lie around half a year back":    {[]string{"I0605 10:00:00.500000 1 a.go:1] a\n", syslog}, []string{"2026-05-20T10:00:00Z", "2026-06-05T10:00:00.5Z"}},
			"years half a year from a line with one":    {[]string{"I0605 10:00:00.500000 1 a.go:1] a\n", syslog, dated("2026-11-25T00:00:00Z")}, []string{"2026-05-20T10:00:00Z", "2026-06-05T10:00:00.5Z", "2026-11-25T00:00:00Z"}},
			"a zone that is told only later is no jump": {[]string{glog + strings.Repeat("x\n", block) + "I0524 10:00:01.500000 1 a.go:1] a\n" + dated("2026-05-24T10:00:02+01:00") + "I0524 10:00:03.500000 1 a.go:1] a\n"}, []string{"2026-05-24T10:00:00.5Z", "2026-05-24T10:00:01.5Z", "2026-05-24T09:00:02Z", "2026-05-24T10:00:03.5Z"}},
		} {
			var sources []Source
			for _, text := range test.texts {
				sources = append(sources, Source{Reader: strings.NewReader(text)})
			}
			var got []string
			if _, err := Read(t.Context(), sources, func(e *Event) error {
				got = append(got, stampText(e.Time))
				return nil
			}); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		}
	})
	t.Run("the year of another file", func(t *testing.T) {
		var got []string
		_, err := Read(t.Context(), []Source{
			{Reader: strings.NewReader(line)},
			{Reader: strings.NewReader(`time="2031-01-01T00:00:00Z" level=info msg=a`)},
		}, func(e *Event) error {
			got = append(got, stampText(e.Time))
			return nil
		})
		if want := []string{"2030-12-31T23:59:59Z", "2031-01-01T00:00:00Z", "2031-01-01T00:00:01Z"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
