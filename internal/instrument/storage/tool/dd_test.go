package tool

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

func TestDDsLastLineIsReadInEveryForm(t *testing.T) {
	const bytes = 41943040000
	for name, tc := range map[string]struct {
		line    string
		bytes   int64
		seconds float64
	}{
		"GNU, as published":         {"41943040000 bytes (42 GB) copied, 376.446 s, 111 MB/s", bytes, 376.446},
		"GNU since 8.24":            {"41943040000 bytes (42 GB, 39 GiB) copied, 376.446 s, 111 MB/s", bytes, 376.446},
		"GNU before 6.0":            {"41943040000 bytes (42 GB) copied, 376.446 seconds, 111 MB/s", bytes, 376.446},
		"GNU with a decimal comma":  {"41943040000 bytes (42 GB, 39 GiB) copied, 376,446 s, 111 MB/s", bytes, 376.446},
		"GNU in German":             {"41943040000 Bytes (42 GB, 39 GiB) kopiert, 376,446 s, 111 MB/s", bytes, 376.446},
		"GNU of one byte":           {"1 byte copied, 3.6095e-05 s, 27.7 kB/s", 1, 3.6095e-05},
		"GNU of few bytes":          {"512 bytes copied, 0.000123 s, 4.2 MB/s", 512, 0.000123},
		"GNU, slow":                 {"4096 bytes (4.1 kB, 4.0 KiB) copied, 10.2 s, 0.4 kB/s", 4096, 10.2},
		"busybox, as published":     {"41943040000 bytes (39.1GB) copied, 347.990191 seconds, 114.9MB/s", bytes, 347.990191},
		"busybox, of kata":          {"41943040000 bytes (39.1GB) copied, 312.486063 seconds, 128.0MB/s", bytes, 312.486063},
		"toybox":                    {"41943040000 bytes (39 G) copied, 347.990191 s, 115 M/s", bytes, 347.990191},
		"BSD":                       {"41943040000 bytes transferred in 376.446 secs (111418477 bytes/sec)", bytes, 376.446},
		"after blanks, with a CR":   {"   41943040000 bytes (42 GB) copied, 376.446 s, 111 MB/s\r", bytes, 376.446},
		"the last one of progress":  {"20971520 bytes (21 MB, 20 MiB) copied, 1 s, 21 MB/s\r41943040 bytes (42 MB, 40 MiB) copied, 2.0 s, 21.0 MB/s", 41943040, 2},
		"below two lines of a fork": {"dd: warning: partial read\n\n41943040000 bytes (42 GB) copied, 376.446 s, 111 MB/s", bytes, 376.446},
	} {
		t.Run(name, func(t *testing.T) {
			for _, way := range []string{"read", "write"} {
				o, records, err := parseDD(tc.line, way)
				f := record.Flow{Bytes: tc.bytes, Bandwidth: float64(tc.bytes) / tc.seconds}
				want := record.Reported{Read: f, Seconds: tc.seconds}
				if way == "write" {
					want = record.Reported{Write: f, Seconds: tc.seconds}
				}
				if err != nil || o.Claim != want || records != nil {
					t.Errorf("%s: %+v %v %v\nwant %+v", way, o, records, err, want)
				}
			}
		})
	}
}

func TestDDsRecordsAreItsRequests(t *testing.T) {
	for _, tc := range []struct {
		file, way string
		records   ddRecords
		bytes     int64
	}{
		{"dd-9.1-write.txt", "write", ddRecords{{10240, 0}, {10240, 0}}, 40 << 20},
		{"dd-9.1-read.txt", "read", ddRecords{{40, 0}, {40, 0}}, 40 << 20},
		{"dd-9.1-progress.txt", "read", ddRecords{{13981, 1}, {13981, 1}}, 40 << 20},
		{"dd-9.1-byte.txt", "write", ddRecords{{0, 1}, {0, 1}}, 1},
	} {
		o, records, err := parseDD(golden(t, tc.file), tc.way)
		c := o.Claim
		f := c.Read
		if tc.way == "write" {
			f = c.Write
		}
		ios := tc.records[0].whole + tc.records[0].cut
		if err != nil || records == nil || *records != tc.records || f.Bytes != tc.bytes || f.IOs != ios ||
			f.Bandwidth != float64(tc.bytes)/c.Seconds || math.Abs(f.IOPS-float64(ios)/c.Seconds) > 1e-6 || (f.Latency != record.Latency{}) {
			t.Errorf("%s: %+v %+v %v", tc.file, c, records, err)
		}
	}
}

func TestDDThatContradictsItselfIsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ text, way, says string }{
		"nothing":                    {"", "read", "no line such as"},
		"records only, of busybox":   {golden(t, "dd-busybox-records-only.txt"), "write", "no line such as"},
		"neither read nor write":     {"1 byte copied, 1 s, 1 B/s", "both", "neither"},
		"another bandwidth":          {"41943040000 bytes (42 GB) copied, 376.446 s, 6500 MB/s", "write", "contradicts itself"},
		"bits for bytes":             {"41943040000 bytes (42 GB) copied, 376.446 s, 891 MB/s", "write", "contradicts itself"},
		"another unit":               {"41943040000 bytes (42 GB) copied, 376.446 s, 111 GB/s", "write", "contradicts itself"},
		"a unit of 1024 that is not": {"41943040000 bytes (42 GB) copied, 376.446 s, 111 MiB/s", "write", "contradicts itself"},
		"BSD's, wrong":               {"41943040000 bytes transferred in 376.446 secs (999 bytes/sec)", "write", "contradicts itself"},
		"no time":                    {"4096 bytes copied, 0 s, 1 B/s", "write", "no time"},
		"infinity":                   {"4096 bytes copied, 0 s, Infinity B/s", "write", "no line such as"},
		"nothing moved":              {"0 bytes copied, 0.1 s, 0.0 kB/s", "write", "moved nothing"},
		"too many bytes":             {"999999999999999999 bytes copied, 1 s, 999 PB/s", "write", "cannot be"},
		"faster than anything":       {"9000000000000000 bytes copied, 1e-9 s, 1 B/s", "write", "cannot be"},
		"longer than anything":       {"4096 bytes copied, 1e300 s, 1 B/s", "write", "cannot be"},
		"three lines of records":     {"1+0 records in\n1+0 records out\n1+0 records in\n1 byte copied, 1 s, 1 B/s", "write", "3 lines of records"},
		"more records than bytes":    {"9+0 records in\n9+0 records out\n1 byte copied, 1 s, 1 B/s", "write", "contradicts itself"},
	} {
		t.Run(name, func(t *testing.T) {
			if c, _, err := parseDD(tc.text, tc.way); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%+v, %v; want %q", c, err, tc.says)
			}
		})
	}
}

func TestDDHasToHaveMovedEveryBlock(t *testing.T) {
	job := storage.Job{Name: "dd", Tool: storage.ToolDD, RW: "write", BS: 4096, Count: 10240}
	whole := golden(t, "dd-9.1-write.txt")
	for name, tc := range map[string]struct {
		job            storage.Job
		stdout, stderr string
		says           string
	}{
		"on standard error":            {job, "", whole, ""},
		"where there is one output":    {job, whole, "", ""},
		"one block less than asked":    {storage.Job{RW: "write", BS: 4096, Count: 10241}, "", whole, "instead of 10241 records"},
		"blocks of another size":       {storage.Job{RW: "write", BS: 512, Count: 10240}, "", whole, "of 512 bytes"},
		"a size instead of a count":    {storage.Job{RW: "write", BS: 4096, Size: 40 << 20}, "", whole, ""},
		"without its lines of records": {job, "", whole[strings.Index(whole, "41943040"):], "how many records"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.job.Tool = storage.ToolDD
			c, version, err := Parse(tc.job, tc.stdout, tc.stderr)
			if tc.says == "" && (err != nil || c.Write.Bytes != 40<<20 || version != "") {
				t.Errorf("%+v %q %v", c, version, err)
			}
			if tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)) {
				t.Errorf("%v, want %q", err, tc.says)
			}
		})
	}
}

func TestDDIsCalledAsPeopleCallIt(t *testing.T) {
	job := func(rw string, sync bool) storage.Job {
		return storage.Job{Name: "dd", Tool: storage.ToolDD, RW: rw, BS: 4096, Count: 1024000, EndFsync: sync}
	}
	at := Place{Program: "/usr/bin/dd", Dir: "/data"}
	direct, device := at, at
	direct.Direct = true
	device.Direct, device.Device = true, "/dev/tare"
	for want, got := range map[string]struct {
		job   storage.Job
		at    Place
		files []File
	}{
		"if=/dev/zero of=/data/test bs=4096 count=1024000 oflag=direct":                   {job("write", false), direct, nil},
		"if=/dev/zero of=/data/test bs=4096 count=1024000 conv=fsync":                     {job("write", true), at, nil},
		"if=/data/test of=/dev/null bs=4096 count=1024000 iflag=direct":                   {job("read", false), direct, []File{{"/data/test", 4096 * 1024000}}},
		"if=/data/test of=/dev/null bs=4096 count=1024000":                                {job("read", false), at, []File{{"/data/test", 4096 * 1024000}}},
		"if=/dev/zero of=/dev/tare bs=4096 count=1024000 oflag=direct conv=notrunc":       {job("write", false), device, []File{{"/dev/tare", 4096 * 1024000}}},
		"if=/dev/zero of=/dev/tare bs=4096 count=1024000 oflag=direct conv=notrunc,fsync": {job("write", true), device, []File{{"/dev/tare", 4096 * 1024000}}},
		"if=/dev/tare of=/dev/null bs=4096 count=1024000 iflag=direct":                    {job("read", false), device, []File{{"/dev/tare", 4096 * 1024000}}},
	} {
		args, err := Command(got.job, got.at)
		if err != nil || strings.Join(args, " ") != "/usr/bin/dd "+want {
			t.Errorf("%q, %v; want %s", args, err, want)
		}
		if files, err := Files(got.job, got.at); err != nil || !slices.Equal(files, got.files) {
			t.Errorf("%s: files %v, %v; want %v", want, files, err, got.files)
		}
	}
	if args, err := Command(job("randread", false), at); err == nil {
		t.Errorf("dd cannot read at random, and is called as %q", args)
	}
}

func FuzzParseDD(f *testing.F) {
	f.Add("41943040000 bytes (39.1GB) copied, 347.990191 seconds, 114.9MB/s")
	f.Add("41943040000 bytes transferred in 376,446 secs (111418477 bytes/sec)")
	fuzz(f, func(text string) (output, error) { o, _, err := parseDD(text, "write"); return o, err }, "dd-9.1-write.txt", "dd-9.1-progress.txt", "dd-9.1-byte.txt")
}
