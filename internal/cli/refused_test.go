package cli

import (
	"os"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/testing/must"
)

// What cannot be done is refused before anything runs, in words that name the flag or
// the file.
func TestWhatCannotBeDoneIsToldWithWhatToDo(t *testing.T) {
	place(t)
	for name, text := range map[string]string{"taken.jsonl": "mine", "mistake.yaml": "version: 1\nname: x\nmeasure:\n  - lifecycle:\n      rounds: none\n"} {
		must.Write(t, name, text)
	}
	for args, says := range map[string]string{ // what it says, parted by |
		"bpf load -t 0":                         "--time: 0s|100ms",
		"bpf load -t soon":                      "--time|soon",
		"bpf load --idle 1ms":                   "--idle: 1ms|100ms",
		"bpf load --qps -1":                     "--qps: -1",
		"bpf load --qps nan":                    "--qps: ",
		"bpf load -c 0":                         "--connections: 0",
		"bpf load -c 10,many":                   "--connections: |many",
		"bpf load -c 5,5":                       "--connections: 5 is there twice",
		"bpf load --cpus 4x250m -c 2":           "--connections: 2|4 clients",
		"bpf load --cpus all":                   "--cpus: |all",
		"bpf load --cpus 1000x1m":               "--cpus: |256",
		"bpf quota --cpus 0":                    "--cpus: ",
		"bpf load --heavy -1":                   "--heavy: -1",
		"bpf load --heavy 99999999999":          "--heavy: 99999999999|10000000",
		"bpf quota --heavy 0,lots":              "--heavy: |lots",
		"bpf memory --services 0":               "--services: 0",
		"bpf memory --services 131071":          "--services: 131071|131070",
		"bpf memory --services 1,1":             "--services: 1 is there twice",
		"bpf load --rounds 0":                   "--rounds: 0",
		"bpf load --budget 0":                   "--budget: 0s",
		"bpf load --timeout 0":                  "--timeout: 0s",
		"bpf load --datapath mesh":              "--datapath: |mesh|reference",
		"bpf load --datapath reference --kmesh": "--datapath: ",
		"bpf load --kmesh":                      "--url: ",
		"bpf quota --kmesh --heavy 0,5 --url http://127.0.0.1:1/": "--heavy: ",
		"bpf load --name '' --url http://127.0.0.1:1/":            "--name: \"\" is not a name",
		"bpf load --name [ --url http://127.0.0.1:1/":             "--name: ",
		"bpf load --pin x --url http://127.0.0.1:1/":              "--pin: ",
		"bpf load --cgroup x --url http://127.0.0.1:1/":           "--cgroup: ",
		"bpf load --owner 0 --url http://127.0.0.1:1/":            "--owner: 0",
		"bpf load --owner me":                                     "--owner|me",
		"bpf load --url ftp://x/":                                 "--url: |ftp://x/",
		"bpf load --url http://me:secret@x/":                      "--url: ",
		"bpf load --url http://x/\x1b[2J":                         "--url: ",
		"bpf load --format xml":                                   "--format: |xml",
		"bpf load now":                                            "now",
		"bpf load -t 0 --pin x --url http://127.0.0.1:1/":         "--time: |--pin: ",
		"bpf list --interval -1s":                                 "--interval: -1s",
		"bpf list --watch --interval 0":                           "--watch: |--interval",
		"bpf list --watch --format openmetrics":                   "--watch: ",
		"bpf list --format md":                                    "--format: |md|openmetrics",
		"bpf list --name ''":                                      "--name|leave it out",
		"bpf list --name ,":                                       "is not a name",
		"bpf list --pin ''":                                       "is not a name",
		"bpf list --cgroup ''":                                    "is not a name",
		"bpf list --name [":                                       "[",
		"bpf list --owner 4194304":                                "4194304|no such process",
		"bpf list --cgroup /etc":                                  "/etc|cgroup2",
		"overhead host --phases idle,jump":                        "--phases",
		"overhead host --sandboxes 5,1":                           "--sandboxes",
		"overhead host --check lots":                              "--check",
		"overhead host --limit disk=1":                            "--limit",
		"overhead host --hold 10ms":                               "hold",
		"overhead host nosuchruntime":                             "nosuchruntime",
		"storage host --jobs=":                                    "--jobs: \"\" is not a job: ",
		"storage host --tool=cat":                                 "--tool: unknown tool \"cat\"",
		"storage host --scale=0":                                  "--scale: 0 leaves nothing to do",
		"storage host --scale=0%":                                 "--scale: 0 leaves nothing to do",
		"storage host --numjobs=0":                                "--numjobs: 0 threads do nothing",
		"storage host --numjobs=-1":                               "--numjobs: -1 threads do nothing",
		"storage host --tool=dd --numjobs=8":                      "--numjobs: dd has one thread, and not 8",
		"storage host --limit=cpu=0":                              "--limit: cpu=0 is none",
		"storage host --limit=cpu=1,memory=0":                     "--limit: memory=0 is none",
		"storage host --limit=cpu=5000":                           "--limit: 5000 is not a number of CPUs",
		"storage host --volume=floppy":                            "--volume: \"floppy\" is not a volume",
		"redact x -o foo.txt":                                     "--output: foo.txt would be a record|.jsonl.zst",
		"join x -o foo.txt":                                       "--output: foo.txt would be a record|.jsonl.zst",
		"report":                                                  "tare: report: name RECORD|DIR...; see tare report --help",
		"label x.jsonl":                                           "tare: label: name KEY=VALUE...; see tare label --help",
		"import":                                                  "name [LABEL=]FILE...",
		"run":                                                     "tare: run: name PLAN|RECORD; ",
		"run a b":                                                 "tare: run: \"b\" is one too many",
		"gate":                                                    "tare: gate: name BASE NEW; ",
		"compare":                                                 "tare: compare: name OLD NEW [MORE...]; ",
		"redact":                                                  "tare: redact: name RECORD; ",
		"serve a b":                                               "tare: serve: \"b\" is one too many",
		"fleet run":                                               "tare: fleet run: name PLAN|RECORD; ",
		"help foo":                                                "unknown command \"foo\" for \"tare\"",
		"help fleet foo":                                          "unknown command \"foo\" for \"tare fleet\"",
		"completion foo":                                          "unknown command \"foo\" for \"tare completion\"",
		"lifecycle host --seed -1":                                "--seed: \"-1\" is not a whole number from 0 on",
		"storage host --volume=bind=/nonexistent":                 "--volume bind=/nonexistent: |no such file|name a folder that is there",
		"storage host --volume=bind=/etc/passwd":                  "--volume bind=/etc/passwd: it is no folder",
		"storage host --volume=device=/dev/none":                  "--volume: all that is on /dev/none would be destroyed",
		"storage host --runtime-limit=1ms":                        "--runtime-limit: 1ms is not a time",
		"storage host --program=fio=/x":                           "--program: they are paths in a root",
		"storage host --cache=some":                               "--cache: \"some\" is not known",
		"storage host --jobs=read,read":                           "--jobs: \"read 512k\" is there twice",
		"storage host --rounds=0":                                 "--rounds: 0 is not a number of rounds",
		"storage host --rounds=0 --runtime-limit=1ms":             "--runtime-limit: 1ms is not a time",
		"storage host --explain":                                  "unknown flag: --explain",
		"storage host --i-know-this-destroys=x --rounds=1":        "--i-know-this-destroys: \"x\" is not a device",
		"top --once --interval 1ms":                               "--interval: 1ms is not between",
		"top --once --sort size":                                  "--sort: \"size\" is not an order",
		"top --once --engine dokcer":                              "--engine: \"dokcer\" is no engine and no isolation: docker, podman",
		"top --once --format xml":                                 "--format: \"xml\" is not a format",
		"top --once -n -1":                                        "-n:",
		"lifecycle nosuch":                                        "nosuch|known are host, floor, runc|NAME=PATH",
		"lifecycle x=/no/such/runtime":                            "/no/such/runtime|NAME=/path",
		"lifecycle x=":                                            "x=|path",
		"lifecycle host host":                                     "host|twice",
		"lifecycle a\x1b[2Jb":                                     "name",
		"lifecycle host -n 0":                                     "--lanes|0",
		"lifecycle host -n 1,many":                                "--lanes|many",
		"lifecycle host --ops create,jump":                        "jump|runp, create, start, stop, rm, stopp, rmp, run",
		"lifecycle host --precision 200%":                         "--precision",
		"lifecycle host --rounds 0":                               "--rounds|0",
		"lifecycle host floor --baseline runc":                    "baseline|runc|host, floor",
		"lifecycle --fast":                                        "--fast|--help",
		"lifecycle host --format xml":                             "xml|text",
		"lifecycle host -o taken.jsonl":                           "taken.jsonl|-o",
		"lifecycle host -o no/r.jsonl":                            "r.jsonl|-o",
		"report none.jsonl":                                       "none.jsonl",
		"report taken.jsonl":                                      "not a tare record",
		"run mistake.yaml":                                        "mistake.yaml:5:15:",
		"run no.yaml":                                             "no.yaml",
		"report .":                                                "taken.jsonl: not a tare record",
		"report none.jsonl taken.jsonl":                           "none.jsonl: no such file|\n      taken.jsonl: not a tare record",
		"report none.jsonl --format xml":                          "there is no format \"xml\"|parquet",
		"weight":                                                  "weight",
		"lifecyle host":                                           "did you mean tare lifecycle?",
		"bpf lod":                                                 "did you mean tare bpf load?",
		"schema figure":                                           "did you mean tare schema figures?",
	} {
		t.Run(args, func(t *testing.T) {
			if strings.HasPrefix(args, "bpf list") && !strings.HasPrefix(says, "--") {
				needRoot(t)
			}
			refuses(t, words(args), says)
		})
	}
	if b, _ := os.ReadFile("taken.jsonl"); string(b) != "mine" {
		t.Errorf("an existing file was changed: %q", b)
	}
}

// refuses runs a command line that is refused before anything runs.
func refuses(t *testing.T, args []string, says ...string) {
	t.Helper()
	out, stderr := ends(t, ExitUsage, strings.Join(says, "|"), args...)
	if out != "" || strings.ContainsRune(stderr, 0x1b) || len(stderr) > 1000 {
		t.Errorf("tare %q: what is foreign was printed as it is, or there is a report: %.1000q, %.2000q", args, out, stderr)
	}
	if _, err := os.Stat("r.jsonl"); err == nil {
		t.Errorf("tare %q: a run was begun", args)
	}
}
