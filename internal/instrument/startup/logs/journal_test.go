package logs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

const (
	entryTimes = `"__REALTIME_TIMESTAMP":"1795229127600000","_SOURCE_REALTIME_TIMESTAMP":"1795229127500000",`
	inJournal  = `time="2026-11-21T02:45:27.4Z" level=info msg="Starting VM" name=containerd-shim-v2 pid=28664 sandbox=k1 source=virtcontainers subsystem=sandbox`
)

// binaryField is a field as `journalctl -o export` writes what is not printable.
func binaryField(key, value string) string {
	return key + "\n" + string(binary.LittleEndian.AppendUint64(nil, uint64(len(value)))) + value + "\n"
}

func TestTheJournal(t *testing.T) {
	shim := row{
		Form: Kata, Time: "2026-11-21T02:45:27.4Z", Level: "info", Message: "Starting VM", Program: "containerd-shim-v2",
		Source: "virtcontainers", Subsystem: "sandbox", Sandbox: "k1", Pid: 28664,
	}
	native := row{
		Form: KataRS, Time: "2026-11-21T02:45:27.5Z", Level: "info", Message: "start vm", Program: "kata-runtime",
		Source: "k1", Subsystem: "hypervisor", Sandbox: "k1", Pid: 8150,
	}
	text := row{Form: Journal, Time: "2026-11-21T02:45:27.5Z", Level: "warning", Message: "hello", Program: "kata", Pid: 7}
	tests := []struct {
		name       string
		text       string
		want       []row
		suppressed int64
	}{
		{"JSON whose message is logfmt", `{"__CURSOR":"s=1",` + entryTimes + `"_PID":"7","SYSLOG_IDENTIFIER":"kata","MESSAGE":` + fmt.Sprintf("%q", inJournal) + `}`, []row{shim}, 0},
		{"JSON whose message comes first", `{"MESSAGE":` + fmt.Sprintf("%q", inJournal) + `,` + entryTimes + `"_PID":"7"}`, []row{shim}, 0},
		{"JSON with blanks", `{ "__REALTIME_TIMESTAMP" : "1795229127500000", "_PID" : "7", "PRIORITY" : "4", "SYSLOG_IDENTIFIER" : "kata", "MESSAGE" : "hello" }`, []row{text}, 0},
		{"journalctl -o json-pretty, twice", strings.Repeat("{\n\t\"__CURSOR\" : \"s=1\",\n\t\"__REALTIME_TIMESTAMP\" : \"1795229127500000\",\n\t\"_PID\" : \"7\",\n\t\"PRIORITY\" : \"4\",\n\t\"SYSLOG_IDENTIFIER\" : \"kata\",\n\t\"MESSAGE\" : \"hello\"\n}\n", 2), []row{text, text}, 0},
		{"journalctl -o verbose, twice", strings.Repeat("Sat 2026-11-21 02:45:27.500000 UTC [s=1;i=2;b=3;m=4;t=660c05a6f60e0;x=5]\n    _PID=7\n    PRIORITY=4\n    SYSLOG_IDENTIFIER=kata\n    MESSAGE=hello\n", 2), []row{text, text}, 0},
		{"JSON whose message is JSON", `{` + entryTimes + `"SYSLOG_IDENTIFIER":"containerd","_PID":"9","MESSAGE":"{\"level\":\"info\",\"msg\":\"a\",\"time\":\"2026-11-21T02:45:27Z\"}"}`, []row{
			{Form: Containerd, Time: "2026-11-21T02:45:27Z", Level: "info", Message: "a", Program: "containerd", Pid: 9},
		}, 0},
		{"a message in bytes", `{` + entryTimes + `"PRIORITY":"4","SYSLOG_IDENTIFIER":"kata","_PID":"7","MESSAGE":[104,101, 108,108,111]}`, []row{text}, 0},
		{"numbers that are no bytes", `{` + entryTimes + `"PRIORITY":"4","SYSLOG_IDENTIFIER":"kata","_PID":"7","MESSAGE":[104,101,256,108,-1,108,111,x]}`, []row{text}, 0},
		{"a field that was sent twice", `{` + entryTimes + `"PRIORITY":["4","5"],"SYSLOG_IDENTIFIER":"kata","_PID":"7","MESSAGE":["hello","other"]}`, []row{text}, 0},
		{"a message that is too long for journalctl", `{` + entryTimes + `"PRIORITY":"4","SYSLOG_IDENTIFIER":"kata","_PID":"7","MESSAGE":null}`, []row{func() row { r := text; r.Message = ""; return r }()}, 0},
		{"a message of lines", `{` + entryTimes + `"_PID":"7","MESSAGE":` + fmt.Sprintf("%q", "first\n"+inJournal+"\n") + `}`, []row{shim}, 0},
		{"runtime-rs", `{` + entryTimes + `"SYSLOG_IDENTIFIER":"kata","_PID":"7","PRIORITY":"6","CODE_FILE":"src/sandbox.rs","NAME":"kata-runtime","SOURCE":"k1","SUBSYSTEM":"hypervisor","PID":"8150","MESSAGE":"start vm"}`, []row{native}, 0},
		{"JSON without a time", `{"MESSAGE":"hello","SYSLOG_IDENTIFIER":"kata"}`, nil, 0},
		{"JSON with a time that is none", `{"MESSAGE":"hello","__REALTIME_TIMESTAMP":"99999999999999999999"}`, nil, 0},
		{"what journald dropped", `{` + entryTimes + `"PRIORITY":"4","SYSLOG_IDENTIFIER":"systemd-journald","_PID":"1","MESSAGE":"Suppressed 152 messages from kata.service"}`, []row{
			{Form: Journal, Time: "2026-11-21T02:45:27.5Z", Level: "warning", Message: "Suppressed 152 messages from kata.service", Program: "systemd-journald", Pid: 1},
		}, 152},
		{"what journald dropped, by journalctl -o short", "Nov 21 02:45:27 host systemd-journald[1]: Suppressed 3 messages from kata.service", []row{
			{Form: Journal, Time: "2026-11-21T02:45:27Z", Message: "Suppressed 3 messages from kata.service", Program: "systemd-journald", Pid: 1},
		}, 3},
		{"what rsyslog dropped", "Nov 21 02:45:27 host rsyslogd[1]: imjournal: 20 messages lost due to rate-limiting", []row{
			{Form: Journal, Time: "2026-11-21T02:45:27Z", Message: "imjournal: 20 messages lost due to rate-limiting", Program: "rsyslogd", Pid: 1},
		}, 20},
		{"more than journald can have dropped", "Nov 21 02:45:27 host systemd-journald[1]: Suppressed 9000000000000000000 messages from kata.service", []row{
			{Form: Journal, Time: "2026-11-21T02:45:27Z", Message: "Suppressed 9000000000000000000 messages from kata.service", Program: "systemd-journald", Pid: 1},
		}, 0},
		{"what journald dropped, by journalctl -o cat", inJournal + "\nSuppressed 9 messages from kata.service", []row{
			shim, {Form: Journal, Time: "2026-11-21T02:45:27.4Z", Message: "Suppressed 9 messages from kata.service"},
		}, 9},
		{"journalctl -o json-seq", "\x1e" + `{"__REALTIME_TIMESTAMP":"1795229127500000","PRIORITY":"4","SYSLOG_IDENTIFIER":"kata","_PID":"7","MESSAGE":"hello"}`, []row{text}, 0},
		{
			"an export", "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795229127600000\n_SOURCE_REALTIME_TIMESTAMP=1795229127500000\n_PID=7\nSYSLOG_IDENTIFIER=kata\nMESSAGE=" + inJournal + "\n\n" +
				"__CURSOR=s=2\n__REALTIME_TIMESTAMP=1795229127500000\nSYSLOG_IDENTIFIER=kata\n_PID=7\nPRIORITY=4\nMESSAGE=hello\n\n",
			[]row{shim, text}, 0,
		},
		{
			"an export with binary values", "__REALTIME_TIMESTAMP=1795229127500000\n" + binaryField("COREDUMP", "a\n\nb\x00") + binaryField("MESSAGE", "hello") + "SYSLOG_IDENTIFIER=kata\n_PID=7\nPRIORITY=4\n\n",
			[]row{text}, 0,
		},
		{"an export of runtime-rs", "__REALTIME_TIMESTAMP=1795229127500000\nSYSLOG_IDENTIFIER=kata\nNAME=kata-runtime\nSOURCE=k1\nSUBSYSTEM=hypervisor\nPID=8150\nPRIORITY=6\nMESSAGE=start vm\n", []row{native}, 0},
		{"an export that ends in a binary length", "__REALTIME_TIMESTAMP=1795229127500000\nMESSAGE\n\xff\xff", []row{{Form: Journal, Time: "2026-11-21T02:45:27.5Z"}}, 0},
		{"an export with a length that is none", "__REALTIME_TIMESTAMP=1795229127500000\nMESSAGE\n\xff\xff\xff\xff\xff\xff\xff\xff\n\n", []row{{Form: Journal, Time: "2026-11-21T02:45:27.5Z"}}, 0},
		{"an export without a time", "__CURSOR=a\nMESSAGE=hello\n\n", nil, 0},
	}
	in2026(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, s := rows(t, "", test.text)
			for i := range got {
				got[i].Line = 0
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%+v\nwant %+v", got, test.want)
			}
			if s.Suppressed != test.suppressed {
				t.Errorf("%d suppressed, want %d", s.Suppressed, test.suppressed)
			}
		})
	}
}

func TestAnyNumberOfLinesThatTellOfDroppedMessagesIsASum(t *testing.T) {
	s := source{stats: &Stats{}}
	s.stats.Suppressed = math.MaxInt64 - 1
	s.plain([]byte("Suppressed 3 messages from kata.service"), &carrier{}, nil, false)
	if s.stats.Suppressed != math.MaxInt64 {
		t.Errorf("%d", s.stats.Suppressed)
	}
}

func TestAnEntryIsCountedWhereItBegins(t *testing.T) {
	text := "__CURSOR=1\n__REALTIME_TIMESTAMP=1795229127500000\nMESSAGE=a\n\n__CURSOR=2\n__REALTIME_TIMESTAMP=1795229127500000\nMESSAGE=b\n"
	all, s := rows(t, "", text)
	if len(all) != 2 || all[0].Line != 1 || all[1].Line != 5 || s.Lines != 7 || s.Read != 7 {
		t.Errorf("%+v %+v", all, s)
	}
}

func TestAJournalThatIsToldToBeOneNeedsNoCursor(t *testing.T) {
	text := "_PID=7\n_SOURCE_REALTIME_TIMESTAMP=1795229127500000\nMESSAGE=hello\n\n"
	for _, told := range []bool{false, true} {
		n := 0
		_, err := Read(context.Background(), []Source{{Reader: strings.NewReader(text), Journal: told}}, func(*Event) error {
			n++
			return nil
		})
		if err != nil || n != int(b2i(told)) {
			t.Errorf("told %v: %d events, %v", told, n, err)
		}
	}
}

// Whatever follows an entry that was cut is read as if nothing had been.
func TestACutEntryCostsNoOthers(t *testing.T) {
	const (
		entry = "__CURSOR=1\n__REALTIME_TIMESTAMP=1795229127500000\nSYSLOG_IDENTIFIER=kata\nMESSAGE=first\n"
		other = "__CURSOR=2\n__REALTIME_TIMESTAMP=1795229127600000\nSYSLOG_IDENTIFIER=kata\nMESSAGE=second\n\n"
	)
	tests := []struct {
		name  string
		text  string
		want  string // messages, and the lines at which they begin
		cut   int64
		lines int64
	}{
		{"another entry", entry + other, "first 1, second 5", 0, 9},
		{"another entry that lacks its cursor", entry + strings.TrimPrefix(other, "__CURSOR=2\n"), "first 1, second 5", 0, 8},
		{"a line of a log", entry + inJournal + "\n" + inJournal + "\n", "first 1, Starting VM 5, Starting VM 6", 1, 6},
		{"a line of no form", entry + "cut here\n" + other, "first 1, second 6", 1, 10},
		{"an entry that has no time", "__CURSOR=1\nMESSAGE=first\n" + inJournal + "\n", "Starting VM 3", 0, 3},
		{"an entry in the middle of its time", "__CURSOR=1\n__REALTIME_TIMEST" + "\x00\x00\x00\x00\x00\x00\x00\x00\n" + other, "second 3", 0, 7},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			all, s := rows(t, "", test.text)
			var got []string
			for _, r := range all {
				got = append(got, fmt.Sprintf("%s %d", r.Message, r.Line))
			}
			if strings.Join(got, ", ") != test.want || s.Cut != test.cut || s.Lines != test.lines {
				t.Errorf("%q of %+v", got, s)
			}
		})
	}
}
