package tool

import (
	"fmt"
	"path"
	"strings"

	"github.com/tare-bench/tare/internal/plan"
	"github.com/tare-bench/tare/internal/subject"
	"github.com/tare-bench/tare/record"
)

// ddCommand writes zeros to a new file, or reads a file and throws it away.
func ddCommand(j plan.Job, at Place) ([]string, error) {
	if err := at.check(); err != nil {
		return nil, err
	}
	count, err := ddCount(j)
	if err != nil {
		return nil, err
	}
	file := at.Device
	if file == "" {
		file = path.Join(at.Dir, testFile)
	}
	size := []string{fmt.Sprintf("bs=%d", j.BS), fmt.Sprintf("count=%d", count)}
	if j.RW == plan.RWRead {
		args := append([]string{at.Program, "if=" + file, "of=/dev/null"}, size...)
		if at.Direct {
			args = append(args, "iflag=direct")
		}
		return args, nil
	}
	args := append([]string{at.Program, "if=/dev/zero", "of=" + file}, size...)
	if at.Direct {
		args = append(args, "oflag=direct")
	}
	var conv []string
	if at.Device != "" {
		conv = append(conv, "notrunc")
	}
	if j.EndFsync {
		conv = append(conv, "fsync")
	}
	if conv != nil {
		args = append(args, "conv="+strings.Join(conv, ","))
	}
	return args, nil
}

// ddFiles is what is read. dd makes what it writes.
func ddFiles(j plan.Job, at Place) ([]File, error) {
	if err := at.check(); err != nil {
		return nil, err
	}
	count, err := ddCount(j)
	switch {
	case err != nil:
		return nil, err
	case at.Device != "":
		return []File{{Path: at.Device, Size: count * j.BS}}, nil
	case j.RW == plan.RWRead:
		return []File{{Path: path.Join(at.Dir, testFile), Size: count * j.BS}}, nil
	}
	return nil, nil
}

// ddCount is how many blocks a job has.
func ddCount(j plan.Job) (int64, error) {
	if j.RW != plan.RWRead && j.RW != plan.RWWrite {
		return 0, fmt.Errorf("job %q: dd reads or writes: it has no %q", j.Name, j.RW)
	}
	if j.Count > 0 && j.BS > 0 && j.Count <= plan.MaxFile/j.BS {
		return j.Count, nil
	}
	size, err := fileSize(j)
	if err != nil {
		return 0, err
	}
	return size / j.BS, nil
}

// parseDDRun wants all blocks, whole: dd ends well at the end of a short file, too.
func parseDDRun(j plan.Job, e subject.Executed) (record.Claim, error) {
	text := e.Stderr
	if strings.TrimSpace(text) == "" {
		text = e.Output // where they cannot be told apart
	}
	c, records, err := ParseDD(text, j.RW)
	if err != nil {
		return c, err
	}
	count, err := ddCount(j)
	if err != nil {
		return record.Claim{}, err
	}
	switch bytes := c.Read.Bytes + c.Write.Bytes; {
	case records == nil:
		return record.Claim{}, fmt.Errorf("dd does not say how many records went in and out: %.200q", text)
	case *records != DDRecords{In: count, Out: count} || bytes != count*j.BS:
		return record.Claim{}, fmt.Errorf("dd moved %d+%d records in, %d+%d out and %d bytes instead of %d records of %d bytes",
			records.In, records.InPartial, records.Out, records.OutPartial, bytes, count, j.BS)
	}
	return c, nil
}
