package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/internal/testing/golden"
	"github.com/tare-bench/tare/internal/testing/must"
)

// A case is of a way, "read", "write" or "both", and of a text or "file" and its name.
func TestDDsLastLinesAreReadInEveryForm(t *testing.T) {
	golden.Cases(t, "testdata/cases/dd.txt", func(t *testing.T, input string) string {
		way, text, _ := strings.Cut(input, "\n")
		if name, ok := strings.CutPrefix(text, "file "); ok {
			text = sample(t, name)
		}
		o, records, err := parseDD(text, way)
		if err != nil {
			return err.Error()
		}
		if records != nil {
			return fmt.Sprintf("%s in records %v", must.JSON(t, o.Claim), *records)
		}
		return string(must.JSON(t, o.Claim))
	})
}

func TestDDHasToHaveMovedEveryBlock(t *testing.T) {
	job := storage.Job{Name: "dd", Tool: storage.ToolDD, RW: "write", BS: 4096, Count: 10240}
	whole := sample(t, "dd-9.1-write.txt")
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

func FuzzParseDD(f *testing.F) {
	f.Add("41943040000 bytes (39.1GB) copied, 347.990191 seconds, 114.9MB/s")
	f.Add("41943040000 bytes transferred in 376,446 secs (111418477 bytes/sec)")
	fuzz(f, func(text string) (output, error) { o, _, err := parseDD(text, "write"); return o, err }, "dd-9.1-write.txt", "dd-9.1-progress.txt", "dd-9.1-byte.txt")
}
