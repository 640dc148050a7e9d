package tool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tare-bench/tare/internal/instrument/storage"
	"github.com/tare-bench/tare/record"
)

// ddCommand writes zeros to a new file, or reads a file and discards it.
func ddCommand(j storage.Job, at Place) ([]string, error) {
	count, err := ddCount(j)
	if err != nil {
		return nil, err
	}
	file := at.file()
	from, to, direct := "/dev/zero", file, "oflag=direct"
	var conv []string
	switch {
	case j.RW == storage.RWRead:
		from, to, direct = file, "/dev/null", "iflag=direct"
	case at.Device != "":
		conv = append(conv, "notrunc")
	}
	if j.RW == storage.RWWrite && j.EndFsync {
		conv = append(conv, "fsync")
	}
	args := []string{at.Program, "if=" + from, "of=" + to, fmt.Sprintf("bs=%d", j.BS), fmt.Sprintf("count=%d", count)}
	if at.Direct {
		args = append(args, direct)
	}
	if conv != nil {
		args = append(args, "conv="+strings.Join(conv, ","))
	}
	return args, nil
}

// ddFiles returns the file to read. dd creates the file that it writes.
func ddFiles(j storage.Job, at Place) ([]File, error) {
	count, err := ddCount(j)
	if err != nil || at.Device == "" && j.RW == storage.RWWrite {
		return nil, err
	}
	return []File{{Path: at.file(), Size: count * j.BS}}, nil
}

// ddCount returns the number of blocks of a job.
func ddCount(j storage.Job) (int64, error) {
	if j.RW != storage.RWRead && j.RW != storage.RWWrite {
		return 0, fmt.Errorf("job %q: dd reads or writes: it has no %q", j.Name, j.RW)
	}
	if j.Count > 0 && j.BS > 0 && j.Count <= storage.MaxFile/j.BS {
		return j.Count, nil
	}
	size, err := fileSize(j)
	if err != nil {
		return 0, err
	}
	return size / j.BS, nil
}

// parseDDRun requires all blocks, because dd succeeds at the end of a short file, too.
func parseDDRun(j storage.Job, stdout, stderr string) (output, error) {
	text := stderr
	if strings.TrimSpace(text) == "" {
		text = stdout // if the streams are not separate
	}
	o, records, err := parseDD(text, j.RW)
	if err != nil {
		return output{}, err
	}
	count, err := ddCount(j)
	if err != nil {
		return output{}, err
	}
	switch bytes := o.Claim.Read.Bytes + o.Claim.Write.Bytes; {
	case records == nil:
		return output{}, fmt.Errorf("dd did not report the records in and out: %.200q", text)
	case *records != ddRecords{{count, 0}, {count, 0}} || bytes != count*j.BS:
		return output{}, fmt.Errorf("dd moved %d+%d records in, %d+%d out and %d bytes instead of %d records of %d bytes",
			records[0].whole, records[0].cut, records[1].whole, records[1].cut, bytes, count, j.BS)
	}
	return o, nil
}

// ddRecords are the block counts of dd, in and out: whole and partial blocks.
type ddRecords [2]struct{ whole, cut int64 }

// Patterns of dd's last lines. They depend little on words, which vary with the language.
//
//	GNU        41943040000 bytes (42 GB, 39 GiB) copied, 376.446 s, 111 MB/s
//	busybox    41943040000 bytes (39.1GB) copied, 347.990191 seconds, 114.9MB/s
//	BSD, macOS 41943040000 bytes transferred in 376.446 secs (111418477 bytes/sec)
var (
	ddCopied = storage.Pattern(`^([0-9]{1,18}) ?[^\s\d()]{1,30} (?:\([^()]{1,60}\) )?[^\s\d()]{1,30}, ` +
		`([0-9]{1,12}(?:[.,][0-9]{1,12})?(?:e[-+]?[0-9]{1,3})?) [^\s\d()]{1,30}, ` +
		`([0-9]{1,12}(?:[.,][0-9]{1,6})?(?:e[-+]?[0-9]{1,3})?) ?([kKMGTP]?)(i?)(?:B/s|/s)$`)
	ddTransferred = storage.Pattern(`^([0-9]{1,18}) bytes transferred in ([0-9]{1,12}(?:[.,][0-9]{1,12})?) secs \(([0-9]{1,18}) bytes/sec\)$`)
	// In Chinese the line is "记录了256+0 的读入".
	ddRecordLine = storage.Pattern(`^[^\d ]{0,30}([0-9]{1,18})\+([0-9]{1,18}) [^\d]{1,60}$`)
)

// maxDDLines is the maximum of lines of progress.
const maxDDLines = 1 << 20

// parseDD parses the end of dd's output: GNU, busybox, toybox, BSD or macOS. The output
// lacks the direction, so the caller gives "read" or "write". records is nil if its
// lines are missing.
//
// The bandwidth is bytes divided by seconds, which is exact. The printed one is rounded,
// in units of 1000 (GNU) or 1024 (busybox, with the same unit names). The line is
// rejected if neither unit matches.
func parseDD(text, direction string) (o output, records *ddRecords, err error) {
	o.Job = storage.Job{Tool: storage.ToolDD, RW: direction}
	way := slices.Index([]string{storage.RWRead, storage.RWWrite}, direction)
	if way < 0 {
		return output{}, nil, fmt.Errorf("dd reads or writes: the direction %.40q is neither", direction)
	}
	f := []*record.Flow{&o.Claim.Read, &o.Claim.Write}[way]
	end, records, err := ddSummary(text)
	if err == nil {
		f.Bytes, o.Claim.Seconds, err = parseDDEnd(end)
	}
	if err != nil {
		return output{}, nil, err
	}
	f.Bandwidth = float64(f.Bytes) / o.Claim.Seconds
	if records == nil {
		return o, nil, nil
	}
	if f.IOs = records[way].whole + records[way].cut; f.IOs > f.Bytes {
		return output{}, nil, fmt.Errorf("%d records hold more than the reported %d bytes: it contradicts itself", f.IOs, f.Bytes)
	}
	f.IOPS = float64(f.IOs) / o.Claim.Seconds
	if in := records[0]; in.whole > 0 && in.cut == 0 && f.Bytes%in.whole == 0 {
		o.Job.BS, o.Job.Count = f.Bytes/in.whole, in.whole
	}
	return o, records, nil
}

// ddSummary returns the last line, which progress lines resemble, and the records
// before it.
func ddSummary(text string) (end string, records *ddRecords, err error) {
	var found ddRecords
	n := 0
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	if len(lines) > maxDDLines {
		return "", nil, fmt.Errorf("it has %d lines: at most %d are read", len(lines), maxDDLines)
	}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if m := ddRecordLine().FindStringSubmatch(line); m != nil {
			// The pattern allows at most 18 digits.
			whole, _ := strconv.ParseInt(m[1], 10, 64)
			cut, _ := strconv.ParseInt(m[2], 10, 64)
			if whole > maxIOs || cut > maxIOs {
				return "", nil, fmt.Errorf("%d+%d records cannot be", whole, cut)
			}
			if n < len(found) {
				found[n].whole, found[n].cut = whole, cut
			}
			n++
		} else if ddCopied().MatchString(line) || ddTransferred().MatchString(line) {
			end = line
		}
	}
	switch {
	case end == "":
		return "", nil, errors.New("it has no line such as \"4096 bytes (4.1 kB) copied, 0.01 s, 410 kB/s\"")
	case n == 0:
		return end, nil, nil
	case n != len(found):
		return "", nil, fmt.Errorf("it has %d lines of records instead of one in and one out: pass one run at a time", n)
	}
	return end, &found, nil
}

func parseDDEnd(line string) (bytes int64, seconds float64, err error) {
	m := ddCopied().FindStringSubmatch(line)
	if m == nil {
		m = append(ddTransferred().FindStringSubmatch(line), "", "")
	}
	bytes, err = strconv.ParseInt(m[1], 10, 64)
	if err != nil || bytes > maxBytes {
		return 0, 0, fmt.Errorf("%s bytes cannot be", m[1])
	}
	seconds, err = strconv.ParseFloat(strings.Replace(m[2], ",", ".", 1), 64)
	switch {
	case err != nil || !within(seconds, maxRuntime/1000):
		return 0, 0, fmt.Errorf("%.40q seconds cannot be", m[2])
	case bytes == 0:
		return 0, 0, errors.New("dd moved nothing")
	case seconds == 0:
		return 0, 0, errors.New("dd took too little time to report: make the job larger")
	}
	rate := float64(bytes) / seconds
	if !within(rate, maxBandwidth) {
		return 0, 0, fmt.Errorf("%d bytes in %g s cannot be", bytes, seconds)
	}
	printed, err := strconv.ParseFloat(strings.Replace(m[3], ",", ".", 1), 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%.40q is not a number", m[3])
	}
	rounded := 0.5 // of the last digit
	if strings.ContainsAny(m[3], ".,") {
		rounded = 0.05
	}
	for _, base := range []float64{1000, 1024} {
		unit, err := amount("1"+m[4]+m[5], base)
		if err == nil && near(printed*unit, rate, 0.001+1e-6/seconds, rounded*unit) { // busybox prints µs
			return bytes, seconds, nil
		}
	}
	return 0, 0, fmt.Errorf("%d bytes in %g s are not %s %s%sB/s, in units of 1000 or 1024: it contradicts itself", bytes, seconds, m[3], m[4], m[5])
}
