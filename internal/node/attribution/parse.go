package attribution

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

var errForm = errors.New("it is of an unknown form")

// stat is what is taken of /proc/PID/stat, see proc_pid_stat(5).
type stat struct {
	comm    string
	ppid    int
	threads int
	ticks   uint64 // user and system
	start   uint64
	zombie  bool
	kernel  bool
	image   [2]uint64 // arg_start and startstack; 0 where they are hidden
}

const kernelThread = 0x00200000 // PF_KTHREAD of linux/sched.h

// parseStat counts fields from the last parenthesis: the name before it may
// hold anything.
func parseStat(text []byte) (stat, error) {
	begin, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if begin < 0 || end < begin {
		return stat{}, errForm
	}
	s := stat{comm: string(text[begin+1 : end])}
	rest := text[end+1:]
	var user, system, flags uint64
	field := 2 // of proc_pid_stat(5), the name's
	for len(rest) > 0 && field < 48 {
		rest = bytes.TrimLeft(rest, " \n")
		i := bytes.IndexAny(rest, " \n")
		if i < 0 {
			i = len(rest)
		}
		word := rest[:i]
		rest = rest[i:]
		if len(word) == 0 {
			break
		}
		field++
		var into *uint64
		var n uint64
		switch field {
		case 3:
			s.zombie = word[0] == 'Z' || word[0] == 'X'
			continue
		case 4, 20:
			into = &n
		case 9:
			into = &flags
		case 14:
			into = &user
		case 15:
			into = &system
		case 22:
			into = &s.start
		case 28:
			into = &s.image[1]
		case 48:
			into = &s.image[0]
		default:
			continue
		}
		var err error
		if *into, err = strconv.ParseUint(string(word), 10, 64); err != nil {
			return stat{}, errForm
		}
		switch field {
		case 4, 20:
			if n > 1<<22 {
				return stat{}, errForm
			}
			if field == 4 {
				s.ppid = int(n)
			} else {
				s.threads = int(n)
			}
		}
	}
	if field < 22 || user+system > 1<<56 {
		return stat{}, errForm
	}
	s.ticks, s.kernel = user+system, flags&kernelThread != 0
	return s, nil
}

// status is what is taken of /proc/PID/status, see proc_pid_status(5).
type status struct {
	nspid   []int
	rss     int64 // bytes, as those below
	rssAnon int64
	vmPTE   int64
}

// parseStatus reads the lines it needs. A thread of the kernel and a zombie
// have none of memory.
func parseStatus(text []byte) (status, error) {
	var s status
	for line := range bytes.Lines(text) {
		key, value, found := bytes.Cut(line, []byte(":"))
		if !found {
			continue
		}
		var err error
		switch string(key) {
		case "NSpid":
			for _, word := range strings.Fields(string(value)) {
				n, err := strconv.Atoi(word)
				if err != nil || n < 0 || n > 1<<22 || len(s.nspid) == 64 {
					return status{}, errForm
				}
				s.nspid = append(s.nspid, n)
			}
		case "VmRSS":
			s.rss, err = kilobytes(string(value))
		case "RssAnon":
			s.rssAnon, err = kilobytes(string(value))
		case "VmPTE":
			s.vmPTE, err = kilobytes(string(value))
		}
		if err != nil {
			return status{}, err
		}
	}
	return s, nil
}

// kilobytes reads "  123 kB" into bytes.
func kilobytes(value string) (int64, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(value), " ")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || strings.TrimSpace(unit) != "kB" || n < 0 || n > 1<<46 {
		return 0, errForm
	}
	return n << 10, nil
}

// anon reads the anonymous memory of a process from statm: resident less
// shared, in pages. They are the same counters as RssAnon in status, which takes
// the kernel three times as long to write.
func (r *Reader) anon(d folder) (int64, error) {
	text, err := r.file(d, "statm", 256)
	if err != nil {
		return 0, err
	}
	var pages [3]int64
	fields := bytes.Fields(text)
	if len(fields) < len(pages) {
		return 0, errForm
	}
	for i := range pages {
		if pages[i], err = strconv.ParseInt(string(fields[i]), 10, 64); err != nil || pages[i] < 0 || pages[i] > 1<<44 {
			return 0, errForm
		}
	}
	return max(0, pages[1]-pages[2]) * pageSize, nil
}
